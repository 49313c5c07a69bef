#pragma once
// Ranks on nodes with disks of their own may read different files by one name.

#include <cstdint>
#include <string>

#include "base/file.hpp"
#include "hostless/transport/group.hpp"

namespace hostless::files {

/// What tells a file from others: its length and a hash of its content, of the whole file up to 1 MiB, else of 64
/// blocks of 16 KiB spread evenly from its first byte to its last. A difference between blocks is not seen, unless
/// lengths differ or the file is compressed (whose end holds a checksum of all of it).
struct ContentMark {
  std::int64_t bytes = 0;
  std::uint64_t hash = 0;
  bool operator==(ContentMark const&) const = default;
};
/// Local. Errors  bad_input  it cannot be read
ContentMark mark_of(File const& file);

/// The path of rank `rank`, on all ranks. Collective over group.
std::string path_of(Group& group, std::string const& mine, int rank);

/// Collective over group.
/// Errors  bad_input  a rank reads another file than rank 0
void require_same_content(Group& group, std::string const& path, ContentMark const& mine);

}  // namespace hostless::files
