#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hostless {

/// An open regular file of this process.
///
/// `to_read` is how every file that somebody names as input is opened: it never waits (a pipe nobody writes
/// to would hold it for ever) and takes nothing but regular files, since ranks read parts of a file, each its
/// own, and most of them twice.
class File {
 public:
  /// Errors  bad_input  it cannot be opened, or is a folder, a pipe or a device
  static File to_read(std::string const& path);
  /// Creates the file, never one that is there, nor through a link. `told`: what messages call it.
  /// Errors  environment  it cannot be created
  static File created(std::string const& path, unsigned mode, std::string const& told);
  /// Opens a file that `created` made; never through a link.
  /// Errors  environment  it cannot be opened
  static File to_write(std::string const& path, std::string const& told);

  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  ~File();
  std::string const& path() const { return told_; }  ///< as messages name it
  std::int64_t size() const { return size_; }        ///< when it was opened
  /// Fills `to` from byte `offset`; returns how many bytes there were (fewer only at the end of the file).
  /// Errors  bad_input  it cannot be read
  std::size_t read_at(std::int64_t offset, std::span<std::byte> to) const;
  /// Errors  environment  it cannot be written
  void write_at(std::int64_t offset, std::span<std::byte const> from) const;
  /// Puts everything written on the disk and closes; only after it is a written file known to be whole.
  /// Errors  environment  it cannot be stored
  void finish();

 private:
  File(std::string const& path, int flags, unsigned mode, std::string const& told);
  [[noreturn]] void fail(char const* what) const;
  std::string told_;
  bool writes_;
  int file_ = -1;
  std::int64_t size_ = 0;
};

/// All bytes of a file that is read at once.
/// Errors  bad_input    it cannot be opened or read, or has more than `most` bytes
///         environment  no memory for it
std::string read_whole_file(std::string const& path, std::int64_t most);

}  // namespace hostless
