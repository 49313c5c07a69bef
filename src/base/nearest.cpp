#include "base/nearest.hpp"

#include <algorithm>
#include <cstddef>

namespace hostless {
namespace {

// Optimal string alignment distance: Levenshtein's with exchanged neighbours (Damerau, CACM 7(3), 1964).
std::size_t slips(std::string_view one, std::string_view other) {
  std::vector<std::size_t> before, last(other.size() + 1), now(other.size() + 1);
  for (std::size_t j = 0; j <= other.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= one.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (one[i - 1] == other[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before = last;
    last = now;
  }
  return last[other.size()];
}

}  // namespace

std::string nearest(std::string_view written, std::vector<std::string> const& words) {
  constexpr std::size_t longest = 64, letters_a_slip = 3;  // a whole text is no slip
  std::string best;
  if (written.size() < 2 || written.size() > longest) return best;
  std::size_t fewest = std::max<std::size_t>(1, written.size() / letters_a_slip) + 1;
  for (std::string const& word : words) {
    std::size_t const count = word.starts_with(written) ? 1 : slips(written, word);
    if (count >= fewest || count >= word.size()) continue;
    fewest = count;
    best = word;
  }
  return best;
}

std::string did_you_mean(std::string_view written, std::vector<std::string> const& words) {
  std::string const word = nearest(written, words);
  return word.empty() ? word : " Did you mean '" + word + "'?";
}

bool is_same_word(std::string_view one, std::string_view other) {
  auto const small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [&](char a, char b) { return small(a) == small(b); });
}

}  // namespace hostless
