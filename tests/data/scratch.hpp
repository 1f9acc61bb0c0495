// Files for tests of readers: a folder that goes away, and random datasets.
#pragma once

#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/random.hpp"
#include "margrave/dataset.hpp"
#include "margrave/error.hpp"
#include "margrave/io.hpp"

namespace margrave::test {

class ScratchFolder {
 public:
  // In memory where that is possible: atomic files are synced, and a disk takes its time for thousands of
  // them. Large files go to disk.
  explicit ScratchFolder(bool large = false) {
    const std::filesystem::path memory = "/dev/shm";
    const bool use_memory =
        !large && std::filesystem::is_directory(memory) && ::access(memory.c_str(), W_OK) == 0;
    std::string name =
        ((use_memory ? memory : std::filesystem::temp_directory_path()) / "margrave-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw IoError("mkdtemp");
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(file(name), std::ios::binary) << content;
    return file(name);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

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
