// What can go wrong when margrave is called. A run that ends early is not an error: see Status in report.hpp.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace margrave {

/// Base of everything the library throws on purpose.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The call itself is wrong: an unknown option, a value out of range, an oracle that does not fit the graphs.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// A file could not be opened, read, written, synced or renamed.
class IoError : public Error {
 public:
  using Error::Error;
};

/// The library caught itself in a contradiction, such as a duality gap
/// below zero beyond rounding. A bug, never the caller's fault.
class InternalError : public Error {
 public:
  using Error::Error;
};

/// A place in an input file. Lines and columns count from 1; 0 means "the file as a whole".
struct Location {
  std::string file;
  std::uint64_t line = 0;
  std::uint64_t column = 0;
};

/// The bytes of a data, model, checkpoint or template file are not what they have to be.
class InputError : public Error {
 public:
  InputError(Location where, const std::string& what);
  const Location& where() const noexcept { return where_; }
  /// The reason alone, without the place.
  const std::string& reason() const noexcept { return reason_; }

 private:
  Location where_;
  std::string reason_;
};

}  // namespace margrave
