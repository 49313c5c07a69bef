#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/file.hpp"
#include "hostless/base/error.hpp"

namespace hostless::files {

[[noreturn]] inline void refuse(std::string const& name, std::string const& why) {
  throw Error(ErrorCode::bad_input, name + ": " + why);
}

/// Bytes by their places: a file, or a member of an archive. One rank's own.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills `to` from byte `offset`; fewer bytes only at the end. Forward reading is cheap everywhere.
  virtual std::size_t read_at(std::int64_t offset, std::span<std::byte> to) = 0;
  virtual std::int64_t size() const = 0;
  /// As messages name it.
  virtual std::string const& name() const = 0;
};

class FileSource final : public ByteSource {
 public:
  explicit FileSource(File const& file) : file_(file) {}
  std::size_t read_at(std::int64_t offset, std::span<std::byte> to) override {
    return file_.read_at(offset, to);
  }
  std::int64_t size() const override { return file_.size(); }
  std::string const& name() const override { return file_.path(); }

 private:
  File const& file_;
};

}  // namespace hostless::files
