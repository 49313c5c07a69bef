#include "files/content/same_content.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "base/hash.hpp"
#include "hostless/base/error.hpp"

namespace hostless::files {
namespace {

constexpr std::int64_t blocks = 64, block_bytes = 16 << 10;

// By words, not by bytes as `Hash`: all ranks wait for it.
std::uint64_t added(std::uint64_t hash, std::span<std::byte const> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    hash = mixed(hash ^ word) + 1;
  }
  return hash;
}

}  // namespace

ContentMark mark_of(File const& file) {
  ContentMark mark{file.size(), 0};
  std::int64_t const last =
      std::max<std::int64_t>(mark.bytes - block_bytes, 0);  // where the last block begins
  std::int64_t const count =
      mark.bytes <= blocks * block_bytes ? (mark.bytes + block_bytes - 1) / block_bytes : blocks;
  std::vector<std::byte> block(static_cast<std::size_t>(block_bytes));
  for (std::int64_t k = 0; k < count; ++k) {
    std::int64_t const begin =
        count == blocks ? last / (blocks - 1) * k + last % (blocks - 1) * k / (blocks - 1) : k * block_bytes;
    mark.hash = added(mark.hash, std::span(block).first(file.read_at(begin, block)));
  }
  return mark;
}

void require_same_content(Group& group, std::string const& path, ContentMark const& mine) {
  auto const all = group.all_gather(mine);
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    Bytes const name =
        group.broadcast(Bytes(std::as_bytes(std::span(path)).begin(), std::as_bytes(std::span(path)).end()),
                        static_cast<int>(r));
    std::string const other(reinterpret_cast<char const*>(name.data()), name.size());
    std::string const how = all[r].bytes == all[0].bytes
                                ? fmt::format("of the same {} bytes but other content", all[0].bytes)
                                : fmt::format("of {} bytes instead of {}", all[r].bytes, all[0].bytes);
    throw Error(
        ErrorCode::bad_input,
        fmt::format("{}: rank {} reads another file than rank 0, {} (each rank reads a part, and the parts "
                    "would not fit). Give all ranks the same file.",
                    other, r, how));
  }
}

}  // namespace hostless::files
