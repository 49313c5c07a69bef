#include "transport/agreement.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

namespace hostless {
namespace {

// Commas inside of brackets do not part.
std::vector<std::string> parts_of(std::string const& words) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (std::size_t k = 0; k < words.size(); ++k) {
    char const c = words[k];
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (c == ',' && depth <= 0 && k + 1 < words.size() && words[k + 1] == ' ') {
      parts.emplace_back();
      ++k;
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// The call, and what of it the other has not, so that nobody has to look for it among all options.
std::string only_of(std::string const& mine, std::string const& other) {
  auto const parts = parts_of(mine), theirs = parts_of(other);
  std::string text = parts[0];
  for (std::size_t k = 1; k < parts.size(); ++k)
    if (std::find(theirs.begin(), theirs.end(), parts[k]) == theirs.end()) text += ", " + parts[k];
  return text;
}

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
  throw Error(ErrorCode::usage, "rank 0 was given " + only_of(words(0), words(rank)) + ", and rank " +
                                    std::to_string(rank) + " " + only_of(words(rank), words(0)) +
                                    " (all ranks do one thing together). Make the same call on every rank.");
}

}  // namespace

bool agree(Group& group, std::optional<Error> const& problem, std::string const& same, bool flag) {
  struct Vote {
    std::uint64_t same = 0;
    std::int32_t failed = 0, flag = 0;
  };
  auto const votes = group.all_gather(Vote{std::hash<std::string>{}(same), problem ? 1 : 0, flag ? 1 : 0});
  auto const any = [&](auto const& of) { return std::any_of(votes.begin(), votes.end(), of); };
  if (any([](Vote const& w) { return w.failed != 0; }))
    group.together([&] {
      if (problem) throw Error(*problem);
    });
  if (any([&](Vote const& w) { return w.same != votes[0].same; })) throw_difference(group, same);
  return any([](Vote const& w) { return w.flag != 0; });
}

}  // namespace hostless
