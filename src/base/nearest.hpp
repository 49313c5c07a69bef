#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hostless {

/// Which of `words` somebody may have meant who wrote `written`: one that it is the beginning of, or the one
/// that the fewest slips lead to (a letter too much, too few, another, two exchanged), at most one for every
/// three letters. Empty: none is near. Of equally near ones the first.
std::string nearest(std::string_view written, std::vector<std::string> const& words);

/// For a message about `written`: " Did you mean '...'?", or nothing.
std::string did_you_mean(std::string_view written, std::vector<std::string> const& words);

/// Whether two words differ in nothing but small and capital letters of ASCII.
bool is_same_word(std::string_view one, std::string_view other);

}  // namespace hostless
