#pragma once
// What is said where a file has another number of columns than are solved for.

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace hostless::files {

/// With advice, without the file, which may be that of b or of the guess.
inline std::string other_columns(std::int64_t there, int asked) {
  std::string const use = there == 1 ? "Leave --rhs-columns out" : fmt::format("Use --rhs-columns {}", there);
  std::string const save = asked > 1 && there > asked ? fmt::format("{} of its {} columns", asked, there)
                           : asked > 1                ? fmt::format("{} columns", asked)
                                                      : fmt::format("one of its {} columns", there);
  bool const fits = there >= 1 && there <= 8;
  return fmt::format(
      "{} column{}, and {} right-hand side{} solved for at once (each needs its own, and a guess needs as "
      "many "
      "columns as b). {}",
      there, there == 1 ? "" : "s", asked, asked == 1 ? " is" : "s are",
      fits ? fmt::format("{} if b has as many, or save {}.", use, save) : fmt::format("Save {}.", save));
}

}  // namespace hostless::files
