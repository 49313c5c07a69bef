#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string>

#include "base/whole_file.hpp"
#include "hostless/transport/group.hpp"

namespace hostless::files {

/// A file that all ranks write parts of, by TemporaryFile: it gets its name when every rank is done, so a
/// failed write leaves an older file of that name as it was.
class SharedOutput {
 public:
  /// Collective over group.
  /// Errors  usage        `path` is there and no regular file
  ///         environment  it cannot be created
  SharedOutput(Group& group, std::string const& path);
  SharedOutput(SharedOutput const&) = delete;
  SharedOutput& operator=(SharedOutput const&) = delete;
  /// This rank's; call it inside Group::together.
  void write_at(std::int64_t offset, std::span<std::byte const> from) const;
  /// Collective over group: the file is whole and gets its name.
  void commit();

 private:
  Group& group_;
  std::optional<TemporaryFile> created_;  // rank 0's
  std::optional<File> opened_;            // of the others
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
