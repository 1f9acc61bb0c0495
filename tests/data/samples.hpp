// Data for tests of readers: lines, compressed text, random datasets.
#pragma once

#include <zlib.h>

#include <string>

#include "base/random.hpp"
#include "margrave/dataset.hpp"
#include "margrave/error.hpp"
#include "margrave/io.hpp"
#include "support/scratch_folder.hpp"

namespace margrave::test {

inline std::string gzipped(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// One line of `letter` data.
inline std::string letter_line(int id, char letter, int next, int word, int position, int fold,
                               unsigned pixels = 5) {
  std::string line = std::to_string(id) + "\t" + letter + "\t" + std::to_string(next) + "\t" +
                     std::to_string(word) + "\t" + std::to_string(position) + "\t" + std::to_string(fold);
  for (unsigned p = 0; p < 128; ++p) line += p % pixels == 0 ? "\t1" : "\t0";
  return line + "\t\n";
}

// Any dataset that jsonl can say: templates of every kind, dense, sparse and per-state inputs, unlabelled
// variables, loss weights.
Dataset random_dataset(std::uint64_t seed);

}  // namespace margrave::test
