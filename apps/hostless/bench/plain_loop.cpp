#include "plain_loop.hpp"

#include <algorithm>
#include <cstring>

#include "hostless/base/error.hpp"
#include "stencil/plain_update.hpp"

namespace hostless {

PlainLoop::PlainLoop(Grid const& grid, StencilKernel const& kernel, int threads, WaitLimits const& limits)
    : grid_(grid), kernel_(kernel), threads_(threads), barrier_(threads, {limits.first_s, limits.first_s}) {
  kernel_.update = plain_update(kernel.name, kernel.axes, kernel.value_bytes);
  std::size_t bytes = kernel.value_bytes;
  for (std::size_t a = 0; a < 3; ++a) {
    bool const stays = grid.boundary[a] == GridBoundary::dirichlet;
    fixed_[a] = stays ? kernel.radius[a] : 0;
    around_[a] = stays ? 0 : kernel.radius[a];
    along_[a] = grid.extent[a] + 2 * around_[a];
    bytes *= static_cast<std::size_t>(along_[a]);
  }
  for (Arrays& arrays : arrays_)
    arrays.assign(static_cast<std::size_t>(kernel.fields), std::vector<std::byte>(bytes));
}

CellArray PlainLoop::cells(int which) {
  auto& field = arrays_[static_cast<std::size_t>(taken_ % 2)][static_cast<std::size_t>(which)];
  auto const bytes = static_cast<std::int64_t>(kernel_.value_bytes);
  return {field.data() + byte_of(0, 0, 0), {along_[1] * along_[2] * bytes, along_[2] * bytes, bytes}};
}

void PlainLoop::step(Rows& rows, std::int64_t first, std::int64_t last, Arrays const& from,
                     Arrays& to) const {
  std::int64_t const low = std::max(first, fixed_[0]), high = std::min(last, grid_.extent[0] - fixed_[0]);
  if (high <= low || grid_.extent[1] <= 2 * fixed_[1] || grid_.extent[2] <= 2 * fixed_[2]) return;
  for (int f = 0; f < kernel_.fields; ++f) {
    std::byte const* const old = from[static_cast<std::size_t>(f)].data();
    for (int a = -kernel_.radius[0]; a <= kernel_.radius[0]; ++a)
      for (int b = -kernel_.radius[1]; b <= kernel_.radius[1]; ++b)
        rows.in[static_cast<std::size_t>(kernel_.row(f, a, b))] =
            old + byte_of(low + a, fixed_[1] + b, fixed_[2]);
    rows.out[static_cast<std::size_t>(f)] =
        to[static_cast<std::size_t>(f)].data() + byte_of(low, fixed_[1], fixed_[2]);
  }
  bool const planes = grid_.extent[1] > 1;
  CellBlock block{rows.out.data(),
                  rows.in.data(),
                  rows.strides.data(),
                  along_[2],
                  high - low,
                  grid_.extent[2] - 2 * fixed_[2],
                  kernel_.parameters.data()};
  if (planes) {
    block.planes = block.rows, block.rows = grid_.extent[1] - 2 * fixed_[1];
    block.to_plane = along_[1] * along_[2];
  } else {
    std::fill(rows.strides.begin(), rows.strides.end(), block.out_stride = along_[1] * along_[2]);
  }
  kernel_.update(block);
}

namespace {
/// The cell of the grid that cell -k, and cell n - 1 + k, is read from.
struct Sources {
  std::int64_t below, above;
};
Sources sources(GridBoundary boundary, std::int64_t n, std::int64_t k) {
  if (boundary == GridBoundary::periodic) return {n - k, k - 1};
  return {k - 1, n - k};
}
}  // namespace

/// Around the rows of a plane, and around the plane.
void PlainLoop::fill_rows(std::byte* field, std::int64_t plane) const {
  std::size_t const bytes = kernel_.value_bytes;
  auto const& n = grid_.extent;
  for (std::int64_t k = 1; k <= around_[2]; ++k) {
    Sources const from = sources(grid_.boundary[2], n[2], k);
    std::int64_t const below = byte_of(0, 0, -k) - byte_of(0, 0, from.below);
    std::int64_t const above = byte_of(0, 0, n[2] - 1 + k) - byte_of(0, 0, from.above);
    for (std::int64_t b = 0; b < n[1]; ++b) {
      std::byte* const low = field + byte_of(plane, b, from.below);
      std::byte* const high = field + byte_of(plane, b, from.above);
      if (bytes == 4) {
        std::memcpy(low + below, low, 4), std::memcpy(high + above, high, 4);
      } else {
        std::memcpy(low + below, low, 8), std::memcpy(high + above, high, 8);
      }
    }
  }
  std::size_t const row = static_cast<std::size_t>(along_[2]) * bytes;
  for (std::int64_t k = 1; k <= around_[1]; ++k) {
    Sources const from = sources(grid_.boundary[1], n[1], k);
    std::memcpy(field + byte_of(plane, -k, -around_[2]), field + byte_of(plane, from.below, -around_[2]),
                row);
    std::memcpy(field + byte_of(plane, n[1] - 1 + k, -around_[2]),
                field + byte_of(plane, from.above, -around_[2]), row);
  }
}

/// The planes beyond the ends that are read from those in [first, last).
void PlainLoop::fill_planes(std::byte* field, std::int64_t first, std::int64_t last) const {
  std::size_t const bytes = static_cast<std::size_t>(along_[1] * along_[2]) * kernel_.value_bytes;
  auto const copy = [&](std::int64_t to, std::int64_t from) {
    if (from < first || from >= last) return;
    std::memcpy(field + byte_of(to, -around_[1], -around_[2]),
                field + byte_of(from, -around_[1], -around_[2]), bytes);
  };
  for (std::int64_t k = 1; k <= around_[0]; ++k) {
    Sources const from = sources(grid_.boundary[0], grid_.extent[0], k);
    copy(-k, from.below);
    copy(grid_.extent[0] - 1 + k, from.above);
  }
}

void PlainLoop::fill_around(std::int64_t first, std::int64_t last, Arrays& arrays) const {
  for (auto& field : arrays) {
    if (around_[1] + around_[2] > 0)
      for (std::int64_t a = first; a < last; ++a) fill_rows(field.data(), a);
    if (around_[0] > 0) fill_planes(field.data(), first, last);
  }
}

void PlainLoop::steps(int thread, std::int64_t count) try {
  barrier_.arrive([&] {
    if (taken_ > 0) return;
    fill_around(0, grid_.extent[0], arrays_[0]);
    arrays_[1] = arrays_[0];  // what never changes is in both
  });
  std::int64_t const first = grid_.extent[0] * thread / threads_;
  std::int64_t const last = grid_.extent[0] * (thread + 1) / threads_;
  Rows rows{std::vector<void const*>(static_cast<std::size_t>(kernel_.rows_read())),
            std::vector<std::int64_t>(static_cast<std::size_t>(kernel_.rows_read()), along_[2]),
            std::vector<void*>(static_cast<std::size_t>(kernel_.fields))};
  for (std::int64_t k = 0; k < count; ++k) {
    auto const now = static_cast<std::size_t>((taken_ + k) % 2);
    step(rows, first, last, arrays_[now], arrays_[1 - now]);
    fill_around(first, last, arrays_[1 - now]);
    barrier_.arrive([] {});
  }
  barrier_.arrive([&] { taken_ += count; });
} catch (host::ThreadLost const&) {
  throw Error(ErrorCode::peer_lost,
              "a thread of the plain loop did not come (the others wait). Start it again.");
}

}  // namespace hostless
