#include "base/whole_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/file_error.hpp"
#include "hostless/base/file_calls.hpp"
#include "hostless/base/wait.hpp"

namespace hostless {
namespace {

// The temporary files that there are now, for a handler of signals: it may take no lock and no memory.
struct Trace {
  std::array<char, 4096> path{};
  std::atomic<int> state{free};
  enum : int { free, taken, there };
};
std::array<Trace, 16> traces;
static_assert(std::atomic<int>::is_always_lock_free);

void leave_trace(std::string const& path) {
  for (Trace& trace : traces) {
    int expected = Trace::free;
    if (path.size() >= trace.path.size() || !trace.state.compare_exchange_strong(expected, Trace::taken))
      continue;
    std::copy_n(path.c_str(), path.size() + 1, trace.path.data());
    trace.state = Trace::there;
    return;
  }
}

void remove_trace(std::string const& path) {
  for (Trace& trace : traces)
    if (trace.state == Trace::there && path == trace.path.data()) {
      trace.state = Trace::free;
      return;
    }
}

// Where links lead; the last one may lead to nothing yet.
std::string behind_links(std::string const& path) {
  constexpr int most = 40;  // as the kernel
  std::filesystem::path at = path;
  std::error_code failed;
  for (int k = 0; k < most; ++k) {
    auto const next = std::filesystem::read_symlink(at, failed);
    if (failed) return at.string();  // no link
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  errno = ELOOP;
  throw unwritable(path, "write it");
}

// A name that nobody can guess, in the target's folder, which is of the same file system.
std::string temporary_name(std::string const& target) {
  auto const slash = target.rfind('/');
  std::size_t const begin = slash == std::string::npos ? 0 : slash + 1;
  constexpr std::size_t longest = 200;  // of the 255 bytes that names may have
  std::string name = target.substr(0, begin) + target.substr(begin, longest) + ".";
  std::array<unsigned char, 8> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), GRND_NONBLOCK) != static_cast<ssize_t>(bytes.size())) {
    auto const ticks = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
    for (std::size_t k = 0; k < bytes.size(); ++k)
      bytes[k] =
          static_cast<unsigned char>((ticks ^ static_cast<std::uint64_t>(::getpid()) << 32) >> (8 * k));
  }
  for (unsigned char const byte : bytes) {
    name += "0123456789abcdef"[byte >> 4];
    name += "0123456789abcdef"[byte & 15];
  }
  return name + ".partial";
}

void sync_folder_of(std::string const& target, std::string const& named) {
  auto const slash = target.rfind('/');
  std::string const folder = slash == std::string::npos ? "." : target.substr(0, slash + 1);
  int const opened = file_calls().open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (opened < 0) {
    if (errno == EACCES) return;  // a folder to write into and not to look into
    throw unwritable(named, "open the folder of it");
  }
  bool const stored = file_calls().sync(opened) == 0 || errno == EINVAL || errno == ENOTSUP;  // it need not
  int const code = errno;
  file_calls().close(opened);
  errno = code;
  if (!stored) throw unwritable(named, "store the folder of it");
}

// Standard output or error, if `there` is one of them; else -1.
int standard_stream(struct stat const& there) {
  for (int const file : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat own {};
    if (::fstat(file, &own) == 0 && own.st_dev == there.st_dev && own.st_ino == there.st_ino) return file;
  }
  return -1;
}

void write_all(int file, std::string const& path, std::string_view text) {
  while (!text.empty()) {
    auto const put = file_calls().write(file, text.data(), text.size());
    if (put >= 0) {
      text.remove_prefix(static_cast<std::size_t>(put));
    } else if (errno != EINTR) {
      throw unwritable(path, "write it");
    }
  }
}

// Opens a pipe or a device. A pipe that nobody reads yet says ENXIO: opening it would wait for ever.
int opened_to_write(std::string const& path) {
  constexpr double reader_s = 10;
  int file = -1;
  auto const try_it = [&] {
    file = file_calls().open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    return file >= 0 || (errno != ENXIO && errno != EINTR);
  };
  Deadline const deadline = Deadline::after(reader_s);
  while (!try_it() && !deadline.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (file < 0) throw unwritable(path, "open it");
  int const flags = ::fcntl(file, F_GETFL);
  ::fcntl(file, F_SETFL,
          flags & ~O_NONBLOCK);  // bounded: its reader sets the pace, which is the caller's own
  return file;
}

void write_directly(std::string const& path, std::string_view text) {
  int const file = opened_to_write(path);
  try {
    write_all(file, path, text);
  } catch (Error const&) {
    file_calls().close(file);
    throw;
  }
  if (file_calls().close(file) != 0) throw unwritable(path, "write it");
}

}  // namespace

TemporaryFile::TemporaryFile(std::string const& target) : named_(target), target_(behind_links(target)) {
  struct stat older {};
  unsigned mode = 0666;
  if (::stat(target_.c_str(), &older) == 0) {
    if (!S_ISREG(older.st_mode)) {
      throw Error(ErrorCode::environment,
                  named_ + ": is not a regular file (renaming would replace it). Name a regular file.");
    }
    if (::access(target_.c_str(), W_OK) != 0) throw unwritable(named_, "write it");
    mode = older.st_mode & 0777u;
  }
  std::string const path = temporary_name(target_);
  try {
    file_.emplace(File::created(path, mode, named_));
    path_ = path;
    leave_trace(path_);
  } catch (...) {
    if (file_ || errno != EEXIST) file_calls().remove(path.c_str());  // created, and then not to be looked at
    throw;
  }
}

TemporaryFile::~TemporaryFile() {
  if (path_.empty()) return;
  remove_trace(path_);
  file_calls().remove(path_.c_str());
}

void TemporaryFile::take_name() {
  if (file_calls().rename(path_.c_str(), target_.c_str()) != 0)
    throw unwritable(named_, "give the finished file its name");
  remove_trace(path_);
  path_.clear();
  sync_folder_of(target_, named_);
}

void remove_unfinished_files() noexcept {
  for (Trace const& trace : traces)
    if (trace.state == Trace::there) ::unlink(trace.path.data());
}

void write_whole_file(std::string const& path, std::string_view text) {
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0 && !S_ISDIR(there.st_mode)) {
    if (int const stream = standard_stream(there); stream >= 0) {
      std::fflush(stream == STDOUT_FILENO ? stdout : stderr);  // what was printed before comes before
      return write_all(stream, path, text);
    }
    if (!S_ISREG(there.st_mode)) return write_directly(path, text);
  }
  TemporaryFile file(path);
  file.file().write_at(0, std::as_bytes(std::span(text.data(), text.size())));
  file.file().finish();
  file.take_name();
}

void check_whole_file(std::string const& path) {
  struct stat there {};
  bool const is_there = ::stat(path.c_str(), &there) == 0;
  if (is_there && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode)) {
    // Not opened: the reader of a pipe would see it opened and closed.
    if (::access(path.c_str(), W_OK) != 0) throw unwritable(path, "write it");
    return;
  }
  if (is_there && standard_stream(there) >= 0) return;
  TemporaryFile const probe(path);
}

}  // namespace hostless
