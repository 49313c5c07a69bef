#include "hostless/base/file_calls.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace hostless {

int FileCalls::open(char const* path, int flags, mode_t mode) {
  // bounded: callers ask for O_NONBLOCK or make the file
  return ::open(path, flags, mode);
}
int FileCalls::close(int file) { return ::close(file); }
int FileCalls::status(int file, struct stat* status) { return ::fstat(file, status); }
ssize_t FileCalls::read_at(int file, void* to, std::size_t bytes, std::int64_t offset) {
  return ::pread(file, to, bytes, offset);  // bounded: a regular file
}
ssize_t FileCalls::write_at(int file, void const* from, std::size_t bytes, std::int64_t offset) {
  return ::pwrite(file, from, bytes, offset);
}
ssize_t FileCalls::write(int file, void const* from, std::size_t bytes) { return ::write(file, from, bytes); }
int FileCalls::sync(int file) { return ::fsync(file); }
int FileCalls::rename(char const* from, char const* to) { return std::rename(from, to); }
int FileCalls::remove(char const* path) { return ::unlink(path); }

namespace {
FileCalls system_calls;
FileCalls* in_use = &system_calls;
}  // namespace

FileCalls& file_calls() { return *in_use; }
void use_file_calls(FileCalls* calls) { in_use = calls == nullptr ? &system_calls : calls; }

}  // namespace hostless
