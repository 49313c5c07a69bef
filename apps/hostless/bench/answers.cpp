#include "answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/counted.hpp"

namespace hostless {
namespace {

bool same_bits(std::span<double const> one, std::span<double const> other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size_bytes()) == 0;
}

// FNV-1a of words instead of bytes.
std::uint64_t followed_by(std::uint64_t digest, std::uint64_t word) {
  digest = (digest ^ word) * 0x100000001b3u;
  return digest ^ digest >> 32;
}
std::uint64_t digest_of(std::span<double const> values) {
  std::uint64_t digest = 0xcbf29ce484222325u;
  for (double const value : values) {
    std::uint64_t word;
    std::memcpy(&word, &value, sizeof word);
    digest = followed_by(digest, word);
  }
  return digest;
}

std::span<double const> as_span(double const& value) { return {&value, 1}; }

}  // namespace

Compared Answers::compare(std::string const& question, Answer answer, std::int64_t brief_iterations) {
  Compared result;
  result.digest = followed_by(digest_of(answer.history), digest_of(as_span(answer.true_residual)));
  for (std::uint64_t const share : group_.all_gather(digest_of(answer.x)))
    result.digest = followed_by(result.digest, share);
  auto& others = answers_[question];
  std::string what;
  bool is_first = true;
  for (Answer const& other : others) {
    if (what.empty()) what = difference(answer, other);
    is_first = is_first && other.is_brief != answer.is_brief;
  }
  result.differs = !what.empty();
  result.bits = result.differs   ? "DIFFER: " + what
                : others.empty() ? "first"
                : is_first       ? fmt::format("equal for {}", counted(brief_iterations, "iteration"))
                                 : "equal";
  if (is_first) others.push_back(std::move(answer));
  return result;
}

// Collective: what differs on any rank; empty: nothing.
std::string Answers::difference(Answer const& one, Answer const& other) {
  std::string what;
  auto const look = [&](bool same, char const* name) {
    if (group_.any(!same)) what += fmt::format("{}{}", what.empty() ? "" : ", ", name);
  };
  if (one.is_brief != other.is_brief) {
    std::size_t const both = std::min(one.history.size(), other.history.size());
    look(same_bits(std::span(one.history).first(both), std::span(other.history).first(both)),
         "the beginning of the history");
    return what;
  }
  look(same_bits(one.x, other.x), "x");
  look(same_bits(one.history, other.history), "history");
  look(same_bits(as_span(one.true_residual), as_span(other.true_residual)), "true residual");
  return what;
}

}  // namespace hostless
