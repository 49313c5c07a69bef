#include "operate/rectangular.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "hostless/base/error.hpp"
#include "operate/storage.hpp"

namespace hostless {

RectangularMatrix::RectangularMatrix(LocalPanel rows, Tiling const& tiling, ColumnSpace const& columns)
    : block_(tiling.block),
      offset_(std::move(rows.offset)),
      column_(std::move(rows.column)),
      value_(std::move(rows.value)) {
  auto const count = static_cast<std::int64_t>(offset_.size()) - 1;
  if (count != tiling.rows() || tiling.slices < 1 || columns.ghosts_below > columns.ghosts)
    throw Error(ErrorCode::usage,
                fmt::format("{} rows for a tiling of {} in {} slices, and {} ghosts, {} of them below (they "
                            "do not fit together). Give the tiling of these rows",
                            count, tiling.rows(), tiling.slices, columns.ghosts, columns.ghosts_below));
  check_panel({offset_, column_, value_}, 0, count, -columns.ghosts_below,
              columns.owned + columns.ghosts - columns.ghosts_below);
  reads_.first.push_back(0);
  for (int slice = 0; slice < tiling.slices; ++slice) {
    auto const first = static_cast<std::size_t>(tiling.first(slice) * tiling.block);
    auto const last = static_cast<std::size_t>(tiling.first(slice + 1) * tiling.block);
    auto const begin = static_cast<std::ptrdiff_t>(reads_.ghost.size());
    for (auto k = static_cast<std::size_t>(offset_[first]); k < static_cast<std::size_t>(offset_[last]);
         ++k) {
      std::int64_t const column = column_[k];
      if (column < 0) reads_.ghost.push_back(static_cast<std::int32_t>(column + columns.ghosts_below));
      if (column >= columns.owned)
        reads_.ghost.push_back(static_cast<std::int32_t>(column - columns.owned + columns.ghosts_below));
    }
    std::sort(reads_.ghost.begin() + begin, reads_.ghost.end());
    reads_.ghost.erase(std::unique(reads_.ghost.begin() + begin, reads_.ghost.end()), reads_.ghost.end());
    reads_.first.push_back(static_cast<std::int64_t>(reads_.ghost.size()));
    bool const awaits = reads_.first[static_cast<std::size_t>(slice)] != reads_.first.back();
    (awaits ? order_.boundary : order_.interior).push_back(slice);
  }
}

}  // namespace hostless
