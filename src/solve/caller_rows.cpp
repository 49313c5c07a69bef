#include "solve/caller_rows.hpp"

#include "base/cut_rows.hpp"

namespace hostless {

void CallerRows::pattern(std::int64_t first, std::int64_t count, RowPanel& out) const {
  std::call_once(once_, [&] { all_ = pattern_scan_.pattern(rows_, first_, last_); });
  cut_pattern(
      first - first_, count, [&](std::int64_t row) { return all_.offset[static_cast<std::size_t>(row)]; },
      [&](std::int64_t k) { return all_.column[static_cast<std::size_t>(k - all_.offset[0])]; }, out);
}

void CallerRows::panel(std::int64_t first, std::int64_t count, RowPanel& out) const {
  pattern(first, count, out);
  std::int64_t const begin = all_.offset[static_cast<std::size_t>(first - first_)];
  out.value.resize(out.column.size());
  for (std::size_t k = 0; k < out.value.size(); ++k)
    out.value[k] = static_cast<double>(begin + static_cast<std::int64_t>(k) + 1);
}

}  // namespace hostless
