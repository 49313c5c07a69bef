#pragma once
// Files that are written whole or not at all: under a name of their own beside the target, which they take
// over when every byte is on the disk.

#include <optional>
#include <string>
#include <string_view>

#include "base/file.hpp"

namespace hostless {

/// A file that is written beside `target` and takes its name in the end, so that a failed write leaves an
/// older file as it was. Nobody else can know its name before it is there: it is created exclusively, never
/// through a link, with the permissions of the older file at most. A `target` that is a link stays one, and
/// what it leads to is replaced. The destructor removes what got no name.
class TemporaryFile {
 public:
  /// Errors  environment  it cannot be created, or `target` is there and must not be written
  explicit TemporaryFile(std::string const& target);
  TemporaryFile(TemporaryFile const&) = delete;
  TemporaryFile& operator=(TemporaryFile const&) = delete;
  ~TemporaryFile();
  File const& file() const { return *file_; }
  File& file() { return *file_; }
  std::string const& path() const { return path_; }
  /// After File::finish, of this process and all others that wrote: the file takes the target's name, on the
  /// disk too.
  /// Errors  environment  it does not, or the folder cannot be stored
  void take_name();

 private:
  std::string named_, target_;  // as the caller calls it, and where links lead
  std::string path_;
  std::optional<File> file_;
};

/// Removes what TemporaryFiles of this process have not finished: for a handler of signals that ends the
/// process, which may call it (async-signal-safe).
void remove_unfinished_files() noexcept;

/// Writes `text` to `path`: a regular file through TemporaryFile; a pipe, a device, or a file that is this
/// process's standard output or error already (/dev/stdout in a shell with `> log`) directly. A named pipe
/// must have a reader within 10 s; from then on its reader sets the pace. Errors  environment  it cannot be
/// written
void write_whole_file(std::string const& path, std::string_view text);

/// Whether `write_whole_file` could write `path`, found out before the work whose result goes there. Leaves
/// everything as it is.
/// Errors  environment  it could not
void check_whole_file(std::string const& path);

}  // namespace hostless
