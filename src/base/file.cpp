#include "base/file.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>
#include <utility>

#include "base/file_error.hpp"
#include "hostless/base/file_calls.hpp"

namespace hostless {
namespace {

// Why a file that is no regular one is not read.
Error wrong_kind(std::string const& path, mode_t mode) {
  if (S_ISDIR(mode))
    return Error(ErrorCode::bad_input, path + ": is a folder (a file is read). Name a file in it.");
  char const* const kind = S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
  return Error(ErrorCode::bad_input, path + ": is not a regular file but " + kind +
                                         " (ranks read parts of a file, and more than once). Write what "
                                         "comes from it to a file, and name that.");
}

}  // namespace

void File::fail(char const* what) const {
  std::string const attempt = std::string(what) + " it";
  throw writes_ ? unwritable(told_, attempt) : unreadable(told_, attempt);
}

File::File(std::string const& path, int flags, unsigned mode, std::string const& told)
    : told_(told), writes_((flags & O_ACCMODE) != O_RDONLY) {
  file_ = file_calls().open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, static_cast<mode_t>(mode));
  if (file_ < 0) fail((flags & O_CREAT) != 0 ? "create" : "open");
  // No destructor runs for a half-made object: it closes itself before it leaves.
  struct stat status {};
  if (file_calls().status(file_, &status) != 0) {
    int const code = errno;
    file_calls().close(file_);
    errno = code;
    fail("look at");
  }
  if (!S_ISREG(status.st_mode)) {
    file_calls().close(file_);
    throw wrong_kind(told_, status.st_mode);
  }
  size_ = status.st_size;
}

File File::to_read(std::string const& path) { return File(path, O_RDONLY, 0, path); }
File File::created(std::string const& path, unsigned mode, std::string const& told) {
  return File(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode, told);
}
File File::to_write(std::string const& path, std::string const& told) {
  return File(path, O_WRONLY | O_NOFOLLOW, 0, told);
}

File::File(File&& other) noexcept
    : told_(std::move(other.told_)),
      writes_(other.writes_),
      file_(std::exchange(other.file_, -1)),
      size_(other.size_) {}

File::~File() {
  if (file_ >= 0) file_calls().close(file_);
}

std::size_t File::read_at(std::int64_t offset, std::span<std::byte> to) const {
  std::size_t done = 0;
  while (done < to.size()) {
    auto const got = file_calls().read_at(file_, to.data() + done, to.size() - done,
                                          offset + static_cast<std::int64_t>(done));
    if (got == 0) break;
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      fail("read");
    }
  }
  return done;
}

void File::write_at(std::int64_t offset, std::span<std::byte const> from) const {
  std::size_t done = 0;
  while (done < from.size()) {
    auto const put = file_calls().write_at(file_, from.data() + done, from.size() - done,
                                           offset + static_cast<std::int64_t>(done));
    if (put > 0) {
      done += static_cast<std::size_t>(put);
    } else if (put == 0 || errno != EINTR) {
      if (put == 0)
        errno = ENOSPC;  // no such thing is specified for regular files: better an end than a loop
      fail("write");
    }
  }
}

void File::finish() {
  if (file_calls().sync(file_) != 0) fail("store");
  if (file_calls().close(std::exchange(file_, -1)) != 0) fail("close");
}

std::string read_whole_file(std::string const& path, std::int64_t most) {
  File const file = File::to_read(path);
  if (file.size() > most) {
    throw Error(ErrorCode::bad_input, path + ": has " + std::to_string(file.size()) +
                                          " bytes (no such file needs more than " + std::to_string(most) +
                                          "). Check that this is the right file.");
  }
  try {
    std::string text(static_cast<std::size_t>(file.size()), '\0');
    text.resize(file.read_at(0, std::as_writable_bytes(std::span(text.data(), text.size()))));
    return text;
  } catch (std::bad_alloc const&) {
    throw Error(ErrorCode::environment, path + ": out of memory (its " + std::to_string(file.size()) +
                                            " bytes do not fit). Use a larger machine.");
  }
}

}  // namespace hostless
