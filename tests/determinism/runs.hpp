// What determinism tests do with runs: bytes of their models, interruptions.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>

#include "margrave/error.hpp"
#include "margrave/model.hpp"
#include "margrave/train.hpp"
#include "support/problems.hpp"
#include "support/scratch_folder.hpp"

namespace margrave::test {

inline Dataset many_chains() {
  return random_chains(71, {.examples = 60, .states = 4, .shortest = 1, .longest = 6, .inputs = 12});
}

inline TrainOptions few_epochs(TrainOptions options) {
  options.gap = 1e-9;
  options.max_epochs = 6;
  options.evaluate_every = 2;
  return options;
}

// The bytes of the model file: weights, certificate and everything else.
inline std::string model_bytes(const TrainResult& result, const ScratchFolder& folder) {
  save_model(result.model, folder.file("model"));
  return read_file(folder.file("model"));
}

// The model has the same bytes on so many threads each.
inline void expect_one_set_of_bytes(const Dataset& data, const TrainOptions& given,
                                    std::initializer_list<int> threads = {1, 1, 2, 3, 7, 16}) {
  const ScratchFolder folder;
  std::set<std::string> bytes;
  for (const int count : threads) {
    TrainOptions options = given;
    options.threads = count;
    bytes.insert(model_bytes(train(data, options), folder));
  }
  EXPECT_EQ(bytes.size(), 1U);
}

// Runs until on_progress was called `blocks` times, writing a checkpoint.
inline TrainResult train_for(const Dataset& data, TrainOptions options, const std::string& checkpoint,
                             std::uint64_t blocks) {
  std::atomic<bool> stop = false;
  std::uint64_t calls = 0;
  Hooks hooks;
  hooks.stop = &stop;
  hooks.on_progress = [&](std::uint64_t, double) { stop = ++calls >= blocks; };
  options.checkpoint = checkpoint;
  return train(data, options, hooks);
}

// Stopped after so many blocks and resumed on another number of threads, a run ends with the bits of one that
// was never stopped. At least `least` of the stops come before its end.
inline void expect_bits_after_interruptions(const Dataset& data, const TrainOptions& options,
                                            std::initializer_list<std::uint64_t> stops, int least) {
  const ScratchFolder folder;
  const std::string wanted = model_bytes(train(data, options), folder);
  int interrupted = 0;
  for (const std::uint64_t blocks : stops) {
    SCOPED_TRACE(blocks);
    const TrainResult first = train_for(data, options, folder.file("checkpoint"), blocks);
    if (first.report.status != Status::interrupted) continue;
    ++interrupted;
    TrainOptions again = options;
    again.resume = folder.file("checkpoint");
    again.threads = blocks % 2 == 0 ? 1 : 5;
    EXPECT_EQ(model_bytes(train(data, again), folder), wanted);
  }
  EXPECT_GE(interrupted, least);
}

// A checkpoint with one bit turned, or cut off, is refused.
inline void expect_damage_is_refused(const Dataset& data, TrainOptions options) {
  const ScratchFolder folder;
  options.max_epochs = 2;
  options.checkpoint = folder.file("checkpoint");
  train(data, options);
  const std::string bytes = read_file(folder.file("checkpoint"));
  options.checkpoint.clear();
  options.resume = folder.file("damaged");
  for (std::size_t at = 0; at < bytes.size(); at += bytes.size() / 40 + 1) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    folder.write("damaged", damaged);
    EXPECT_THROW(train(data, options), InputError) << "byte " << at;
    folder.write("damaged", bytes.substr(0, at));
    EXPECT_THROW(train(data, options), InputError) << at << " bytes";
  }
}

}  // namespace margrave::test
