#pragma once
// What is said where a file has another number of columns than are solved for.

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace hostless::files {

/// With advice, without the file.
inline std::string other_columns(std::int64_t there, int asked) {
  return fmt::format("{} column{}, and {} right-hand side{} solved for at once (each needs its own). {}",
                     there, there == 1 ? "" : "s", asked, asked == 1 ? " is" : "s are",
                     there >= 1 && there <= 8
                         ? fmt::format("Use --rhs-columns {}, or save one column.", there)
                         : "Save as many columns as --rhs-columns says, at most 8.");
}

}  // namespace hostless::files
