#include "agreement.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>

namespace hostless::python {
namespace {

// Names the first rank that was called otherwise than rank 0. Collective; throws the same on every rank.
[[noreturn]] void throw_difference(Group& group, std::string const& mine) {
  Bytes text(mine.size());
  if (!mine.empty()) std::memcpy(text.data(), mine.data(), mine.size());
  auto const all = group.all_gather_bytes(text);
  auto const words = [&](std::size_t rank) {
    return std::string(reinterpret_cast<char const*>(all[rank].data()), all[rank].size());
  };
  auto const other = std::find_if(all.begin(), all.end(), [&](Bytes const& b) { return b != all[0]; });
  auto const rank = static_cast<std::size_t>(other - all.begin());
  throw Error(ErrorCode::usage, "rank 0 was given " + words(0) + ", and rank " + std::to_string(rank) + " " +
                                    words(rank) +
                                    " (all ranks do one thing together). Make the same call on every rank.");
}

}  // namespace

bool agree(Group& group, std::optional<Error> const& problem, std::string const& same, bool flag) {
  struct Word {
    std::uint64_t same = 0;
    std::int32_t failed = 0, flag = 0;
  };
  auto const words = group.all_gather(Word{std::hash<std::string>{}(same), problem ? 1 : 0, flag ? 1 : 0});
  auto const any = [&](auto const& of) { return std::any_of(words.begin(), words.end(), of); };
  if (any([](Word const& w) { return w.failed != 0; }))
    group.together([&] {
      if (problem) throw Error(*problem);
    });
  if (any([&](Word const& w) { return w.same != words[0].same; })) throw_difference(group, same);
  return any([](Word const& w) { return w.flag != 0; });
}

}  // namespace hostless::python
