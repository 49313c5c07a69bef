#pragma once
// What is said where a file has another number of columns than are solved for.

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace hostless::files {

/// With advice, without the file.
inline std::string other_columns(std::int64_t there, int asked) {
  bool const fits = there >= 1 && there <= 8;
  std::string const advice =
      there == 1  ? "Leave --rhs-columns out, or save more columns."
      : asked > 1 ? (fits ? fmt::format("Use --rhs-columns {}.", there)
                          : fmt::format("Save {} of its {} columns.", asked, there))
                  : (fits ? fmt::format("Use --rhs-columns {}, or save one of its {} columns.", there, there)
                          : fmt::format("Save one of its {} columns.", there));
  return fmt::format("{} column{}, and {} right-hand side{} solved for at once (each needs its own). {}",
                     there, there == 1 ? "" : "s", asked, asked == 1 ? " is" : "s are", advice);
}

}  // namespace hostless::files
