#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace hostless {

/// Every call that the readers and writers of files make to the operating system on a file that they opened
/// or are about to: the seam at which tests let calls fail. Same results and errno as the calls of the same
/// names.
class FileCalls {
 public:
  virtual ~FileCalls() = default;
  virtual int open(char const* path, int flags, mode_t mode);
  virtual int close(int file);
  virtual int status(int file, struct stat* status);  ///< fstat
  virtual ssize_t read_at(int file, void* to, std::size_t bytes, std::int64_t offset);
  virtual ssize_t write_at(int file, void const* from, std::size_t bytes, std::int64_t offset);
  /// At the file's own place: of pipes and devices, which have no offsets.
  virtual ssize_t write(int file, void const* from, std::size_t bytes);
  virtual int sync(int file);
  virtual int rename(char const* from, char const* to);
  virtual int remove(char const* path);
};

/// The calls in use.
FileCalls& file_calls();

/// Puts `calls` in use (nullptr: the system's own) until the next call of this function. Not to be called
/// while a reader or writer runs.
void use_file_calls(FileCalls* calls);

}  // namespace hostless
