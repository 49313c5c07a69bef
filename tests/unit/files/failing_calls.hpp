#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <set>

#include "hostless/base/file_calls.hpp"

namespace hostless::samples {

/// Lets call `number` fail (0: none) with an error of the disk; knows which files are open, and how they
/// ended.
class FailingCalls final : public FileCalls {
 public:
  explicit FailingCalls(int number) : number_(number) {}
  int open(char const* path, int flags, mode_t mode) override {
    if (fails()) return -1;
    int const file = FileCalls::open(path, flags, mode);
    std::lock_guard const lock(guard_);
    if (file >= 0) open_.insert(file);
    return file;
  }
  int close(int file) override {
    {
      std::lock_guard const lock(guard_);
      open_.erase(file);
    }
    bool const writes = (::fcntl(file, F_GETFL) & O_ACCMODE) == O_WRONLY;
    FileCalls::close(file);
    return writes && fails() ? -1 : 0;  // nothing is lost when a file that was only read does not close well
  }
  int status(int file, struct stat* status) override {
    return fails() ? -1 : FileCalls::status(file, status);
  }
  ssize_t read_at(int file, void* to, std::size_t bytes, std::int64_t offset) override {
    return fails() ? -1 : FileCalls::read_at(file, to, bytes, offset);
  }
  ssize_t write_at(int file, void const* from, std::size_t bytes, std::int64_t offset) override {
    return fails() ? -1 : FileCalls::write_at(file, from, bytes, offset);
  }
  ssize_t write(int file, void const* from, std::size_t bytes) override {
    return fails() ? -1 : FileCalls::write(file, from, bytes);
  }
  int sync(int file) override {
    if (fails()) return -1;
    struct stat status {};
    bool const folder = ::fstat(file, &status) == 0 && S_ISDIR(status.st_mode);
    folder_synced_ = folder_synced_ || (folder && renamed_);
    file_synced_ = file_synced_ || (!folder && !renamed_);
    return FileCalls::sync(file);
  }
  int rename(char const* from, char const* to) override {
    if (fails()) return -1;
    renamed_ = true;
    return FileCalls::rename(from, to);
  }
  int calls() const { return calls_; }
  bool all_closed() const { return open_.empty(); }
  /// Whether a file was stored before it got its name, and its folder after that.
  bool stored() const { return file_synced_ && renamed_ && folder_synced_; }

 private:
  bool fails() {
    if (++calls_ != number_) return false;
    errno = EIO;
    return true;
  }
  int number_;
  std::atomic<int> calls_ = 0;
  std::mutex guard_;
  std::set<int> open_;
  std::atomic<bool> renamed_ = false, folder_synced_ = false, file_synced_ = false;
};

}  // namespace hostless::samples
