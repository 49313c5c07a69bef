#include "operate/ghost_reads.hpp"

#include <algorithm>
#include <utility>

#include "operate/shared_slices.hpp"

namespace hostless {

GhostReader::GhostReader(LocalRows const& rows, Tiling const& tiling, int begin, int end)
    : begin_(begin), end_(end), block_(tiling.block), owned_(rows.owned()), below_(rows.ghosts_below()) {
  reads_.first.assign(1, 0);
  seen_.assign(static_cast<std::size_t>(rows.ghosts() / block_), -1);
}

void GhostReader::add(int slice, std::int64_t, LocalPanel const& panel) {
  while (begin_ < slice) end_slice();
  for (std::int32_t const column : panel.column) {
    if (column >= 0 && column < owned_) continue;
    std::int64_t const ghost = column < 0 ? column + below_ : column - owned_ + below_;
    auto const block_row = static_cast<std::int32_t>(ghost / block_);
    int& seen = seen_[static_cast<std::size_t>(block_row)];
    if (seen == slice) continue;
    seen = slice;
    for (int j = 0; j < block_; ++j) reads_.ghost.push_back(block_row * block_ + j);
  }
}

void GhostReader::end_slice() {
  std::sort(reads_.ghost.begin() + reads_.first.back(), reads_.ghost.end());
  reads_.first.push_back(static_cast<std::int64_t>(reads_.ghost.size()));
  ++begin_;
}

GhostReads GhostReader::take() {
  while (begin_ < end_) end_slice();
  return std::move(reads_);
}

GhostReads ghost_reads(LocalRows const& rows, Tiling const& tiling, int threads) {
  SharedSlices const shared(rows, tiling, threads);
  auto readers = shared.work([&](int begin, int end) { return GhostReader(rows, tiling, begin, end); });
  GhostReads all = readers[0].take();
  for (std::size_t part = 1; part < readers.size(); ++part) {
    GhostReads const next = readers[part].take();
    std::int64_t const before = all.first.back();
    for (std::size_t s = 1; s < next.first.size(); ++s) all.first.push_back(before + next.first[s]);
    all.ghost.insert(all.ghost.end(), next.ghost.begin(), next.ghost.end());
  }
  return all;
}

}  // namespace hostless
