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

constexpr std::int64_t sampled_blocks = 64, sampled_bytes = 16 << 10;

// By words, not by bytes as `Hash`: all ranks wait for it.
std::uint64_t hash_of_words(std::uint64_t hash, std::span<std::byte const> bytes) {
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
      std::max<std::int64_t>(mark.bytes - sampled_bytes, 0);  // where the last block begins
  std::int64_t const count = mark.bytes <= sampled_blocks * sampled_bytes
                                 ? (mark.bytes + sampled_bytes - 1) / sampled_bytes
                                 : sampled_blocks;
  std::vector<std::byte> block(static_cast<std::size_t>(sampled_bytes));
  for (std::int64_t k = 0; k < count; ++k) {
    std::int64_t const begin =
        count == sampled_blocks
            ? last / (sampled_blocks - 1) * k + last % (sampled_blocks - 1) * k / (sampled_blocks - 1)
            : k * sampled_bytes;
    mark.hash = hash_of_words(mark.hash, std::span(block).first(file.read_at(begin, block)));
  }
  return mark;
}

std::string path_of(Group& group, std::string const& mine, int rank) {
  auto const bytes = std::as_bytes(std::span(mine));
  Bytes const path = group.broadcast(Bytes(bytes.begin(), bytes.end()), rank);
  return {reinterpret_cast<char const*>(path.data()), path.size()};
}

void require_same_content(Group& group, std::string const& path, ContentMark const& mine) {
  auto const all = group.all_gather(mine);
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    std::string const other = path_of(group, path, static_cast<int>(r));
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
