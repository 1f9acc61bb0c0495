#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/data/samples.hpp"

namespace margrave::test {

// Reading `content` must fail at this place for a reason that contains `reason`.
inline void expect_input_error(const std::string& content, const ReadOptions& options, std::uint64_t line,
                               std::uint64_t column, const std::string& reason) {
  const ScratchFolder folder;
  const std::string path = folder.write("data", content);
  try {
    read_data(path, options);
    ADD_FAILURE() << "no error, but expected: " << reason;
  } catch (const InputError& error) {
    EXPECT_EQ(error.where().file, path);
    EXPECT_EQ(error.where().line, line) << error.what();
    EXPECT_EQ(error.where().column, column) << error.what();
    EXPECT_NE(error.reason().find(reason), std::string::npos) << error.what();
  }
}

}  // namespace margrave::test
