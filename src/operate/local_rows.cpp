#include "hostless/operate/local_rows.hpp"

#include <fmt/format.h>

#include "hostless/base/error.hpp"
#include "hostless/operate/pattern_differs.hpp"
#include "storage.hpp"

namespace hostless {

void LocalRowArrays::panel(std::int64_t first_row, std::int64_t count, LocalPanel& out) const {
  out.offset.resize(static_cast<std::size_t>(count) + 1);
  std::int64_t const first = all_.offset[first_row], last = all_.offset[first_row + count];
  for (std::int64_t i = 0; i <= count; ++i) out.offset[i] = all_.offset[first_row + i] - first;
  out.column.assign(all_.column.begin() + first, all_.column.begin() + last);
  out.value.assign(all_.value.begin() + first, all_.value.begin() + last);
}

PatternDiffers::PatternDiffers(std::int64_t local_row, std::int64_t named)
    : Error(
          ErrorCode::usage,
          fmt::format("row {} does not have the pattern that the matrix was built with (values are replaced "
                      "in place). Build a new matrix for a new pattern.",
                      named)),
      local_row_(local_row) {}

void check_panel(LocalPanel const& panel, std::int64_t first_row, std::int64_t count,
                 std::int64_t first_column, std::int64_t last_column, bool update) {
  auto const sized = static_cast<std::int64_t>(panel.offset.size());
  if (sized != count + 1 || panel.offset[0] != 0 ||
      panel.offset[count] != static_cast<std::int64_t>(panel.column.size()) ||
      panel.column.size() != panel.value.size()) {
    throw Error(
        ErrorCode::usage,
        fmt::format("the panel of rows {} to {} has {} offsets, {} columns and {} values (they do not fit "
                    "together). Give rows + 1 offsets from 0 on, and a column for every value.",
                    first_row, first_row + count, sized, panel.column.size(), panel.value.size()));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (panel.offset[i + 1] < panel.offset[i]) {
      throw Error(ErrorCode::usage,
                  fmt::format("row {} ends before it begins (offsets {} and {}). Give offsets that "
                              "do not fall.",
                              first_row + i, panel.offset[i], panel.offset[i + 1]));
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t before = first_column - 1;
    for (std::int64_t k = panel.offset[i]; k < panel.offset[i + 1]; ++k) {
      std::int64_t const column = panel.column[k];
      // What the matrix does not know has no local number: another pattern, not a mistake in the numbers.
      if (update && (column < first_column || column >= last_column))
        throw PatternDiffers(first_row + i, first_row + i);
      if (column <= before || column >= last_column) {
        throw Error(
            ErrorCode::usage,
            fmt::format(
                "row {} holds local column {} after {} (columns rise inside a row and lie in [{}, {})). "
                "Sort the row, merge duplicates and use local numbers.",
                first_row + i, column, before, first_column, last_column));
      }
      before = column;
    }
  }
}

}  // namespace hostless
