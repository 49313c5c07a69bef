#include "solve/caller_rows.hpp"

namespace hostless {

void CallerRows::pattern(std::int64_t first, std::int64_t count, RowPanel& out) const {
  std::call_once(once_, [&] { all_ = surveyor_.pattern(rows_, first_, last_); });
  auto const i = static_cast<std::size_t>(first - first_), n = static_cast<std::size_t>(count);
  std::int64_t const begin = all_.offset[i], before = all_.offset[0];
  out.offset.resize(n + 1);
  for (std::size_t k = 0; k <= n; ++k) out.offset[k] = all_.offset[i + k] - begin;
  out.column.assign(all_.column.begin() + (begin - before),
                    all_.column.begin() + (all_.offset[i + n] - before));
}

void CallerRows::panel(std::int64_t first, std::int64_t count, RowPanel& out) const {
  pattern(first, count, out);
  std::int64_t const begin = all_.offset[static_cast<std::size_t>(first - first_)];
  out.value.resize(out.column.size());
  for (std::size_t k = 0; k < out.value.size(); ++k)
    out.value[k] = static_cast<double>(begin + static_cast<std::int64_t>(k) + 1);
}

}  // namespace hostless
