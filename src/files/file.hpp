#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>

#include "hostless/transport/group.hpp"

namespace hostless::files {

/// An open regular file of this rank.
///
/// Errors  usage        there is no such file, or it is a folder, a pipe or a device
///         environment  the machine refuses or fails a call
class File {
 public:
  static File to_read(std::string const& path);
  static File to_write(std::string const& path, bool create);
  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  ~File();
  std::string const& path() const { return path_; }
  std::int64_t size() const { return size_; }  ///< when it was opened
  /// Fills `to` from byte `offset`; returns how many bytes there were (fewer only at the end of the file).
  std::size_t read_at(std::int64_t offset, std::span<std::byte> to) const;
  void write_at(std::int64_t offset, std::span<std::byte const> from) const;
  /// Puts everything written on the disk and closes; only after it is a written file known to be whole.
  void finish();

 private:
  File(std::string const& path, int flags);
  [[noreturn]] void fail(char const* what, bool writes) const;
  std::string path_;
  int file_ = -1;
  std::int64_t size_ = 0;
};

/// A file that all ranks write parts of under a temporary name; it gets its name when every rank is done, so
/// a failed write leaves an older file of that name as it was.
class SharedOutput {
 public:
  /// Collective over group.
  SharedOutput(Group& group, std::string const& path);
  ~SharedOutput();
  SharedOutput(SharedOutput const&) = delete;
  SharedOutput& operator=(SharedOutput const&) = delete;
  /// This rank's; call it inside Group::together.
  void write_at(std::int64_t offset, std::span<std::byte const> from) const { file_->write_at(offset, from); }
  /// Collective over group: the file is whole and gets its name.
  void commit();

 private:
  Group& group_;
  std::string path_, temporary_;
  std::unique_ptr<File> file_;
  bool created_ = false;
};

/// Runs `read` and makes an allocation that failed outside Group::together an Error too.
template <class Work>
auto memory_checked(std::string const& path, Work&& work) {
  try {
    return work();
  } catch (std::bad_alloc const&) {
    throw Error(
        ErrorCode::environment,
        path + ": out of memory (this rank's share does not fit). Use more ranks or a larger machine.");
  }
}

}  // namespace hostless::files
