#pragma once
// Archives as NumPy writes them: members that are stored or deflated, with ZIP64 where they are large.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "files/byte_source.hpp"

namespace hostless::files {

/// What an archive's directory says of a member; checked against the file, not yet against the member's
/// bytes.
struct ZipMember {
  std::string name;
  bool deflated = false;
  std::uint32_t crc = 0;
  std::int64_t packed = 0, bytes = 0;  ///< in the archive, and unpacked
  std::int64_t data = 0;               ///< where it lies in the file
};

/// The directory. One rank's own.
/// Errors  bad_input  no archive, cut short, encrypted, packed by other methods, or of more than a thousand
/// members
std::vector<ZipMember> zip_members(File const& file);

/// A member's bytes; going back in a deflated one starts over. `file` outlives it.
std::unique_ptr<ByteSource> zip_member(File const& file, ZipMember const& member);

/// Unpacks a whole member.
/// Errors  bad_input  its bytes are damaged or not as many as the directory says
void verify(File const& file, ZipMember const& member);

}  // namespace hostless::files
