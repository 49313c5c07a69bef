#include "files/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/file_error.hpp"
#include "hostless/files/file_calls.hpp"

namespace hostless::files {

void File::fail(char const* what, bool writes) const {
  std::string const attempt = std::string(what) + " it";
  throw writes ? unwritable(path_, attempt) : unreadable(path_, attempt);
}

File::File(std::string const& path, int flags) : path_(path) {
  file_ = file_calls().open(path.c_str(), flags | O_CLOEXEC, 0666);
  bool const writes = (flags & O_ACCMODE) != O_RDONLY;
  if (file_ < 0) fail(writes ? "write" : "open", writes);
  // No destructor runs for a half-made object: it closes itself before it leaves.
  struct stat status {};
  if (file_calls().status(file_, &status) != 0) {
    int const code = errno;
    file_calls().close(file_);
    errno = code;
    fail("look at", writes);
  }
  if (!S_ISREG(status.st_mode)) {
    file_calls().close(file_);
    throw Error(
        ErrorCode::usage,
        path_ + ": is not a regular file (ranks read and write their own parts of it). Name a regular file.");
  }
  size_ = status.st_size;
}

File File::to_read(std::string const& path) { return File(path, O_RDONLY); }
File File::to_write(std::string const& path, bool create) {
  return File(path, create ? O_WRONLY | O_CREAT | O_TRUNC : O_WRONLY);
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), size_(other.size_) {}

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
      fail("read", false);
    }
  }
  return done;
}

void File::write_at(std::int64_t offset, std::span<std::byte const> from) const {
  std::size_t done = 0;
  while (done < from.size()) {
    auto const put = file_calls().write_at(file_, from.data() + done, from.size() - done,
                                           offset + static_cast<std::int64_t>(done));
    if (put >= 0) {
      done += static_cast<std::size_t>(put);
    } else if (errno != EINTR) {
      fail("write", true);
    }
  }
}

void File::finish() {
  if (file_calls().sync(file_) != 0) fail("store", true);
  if (file_calls().close(std::exchange(file_, -1)) != 0) fail("close", true);
}

SharedOutput::SharedOutput(Group& group, std::string const& path)
    : group_(group), path_(path), temporary_(path + ".partial") {
  auto const open = [&](bool create) { file_ = std::make_unique<File>(File::to_write(temporary_, create)); };
  try {
    group_.together([&] {
      if (group_.rank() != 0) return;
      std::error_code ignored;
      auto const now = std::filesystem::status(path_, ignored).type();
      if (now != std::filesystem::file_type::not_found && now != std::filesystem::file_type::regular) {
        throw Error(ErrorCode::usage,
                    path_ + ": is not a regular file (renaming would replace it). Name a regular file.");
      }
      created_ = true;
      open(true);
    });
    group_.together([&] {
      if (group_.rank() != 0) open(false);
    });
  } catch (...) {
    if (created_) file_calls().remove(temporary_.c_str());
    throw;
  }
}

SharedOutput::~SharedOutput() {
  if (created_) file_calls().remove(temporary_.c_str());
}

void SharedOutput::commit() {
  group_.together([&] { file_->finish(); });
  group_.together([&] {
    if (group_.rank() != 0) return;
    if (file_calls().rename(temporary_.c_str(), path_.c_str()) != 0) {
      throw Error(ErrorCode::environment,
                  fmt::format("{}: cannot give the finished file its name ({}). Check permissions.", path_,
                              std::strerror(errno)));
    }
    created_ = false;
  });
}

}  // namespace hostless::files
