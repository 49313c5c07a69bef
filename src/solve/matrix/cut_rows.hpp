#pragma once

#include <cstdint>

#include "hostless/base/rows.hpp"

namespace hostless {

/// The pattern of `count` compressed rows from row `at` on, as a panel of their own. offset_at(row) counts
/// entries before a row, from whatever number; column_at(place) is asked for places between those.
template <class OffsetAt, class ColumnAt>
void cut_pattern(std::int64_t at, std::int64_t count, OffsetAt const& offset_at, ColumnAt const& column_at,
                 RowPanel& out) {
  std::int64_t const begin = offset_at(at), end = offset_at(at + count);
  out.offset.resize(static_cast<std::size_t>(count) + 1);
  for (std::int64_t i = 0; i <= count; ++i)
    out.offset[static_cast<std::size_t>(i)] = offset_at(at + i) - begin;
  out.column.resize(static_cast<std::size_t>(end - begin));
  for (std::int64_t k = begin; k < end; ++k) out.column[static_cast<std::size_t>(k - begin)] = column_at(k);
}

}  // namespace hostless
