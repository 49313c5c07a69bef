#include "plain_loop.hpp"

#include "hostless/base/error.hpp"

namespace hostless {

PlainLoop::PlainLoop(Grid const& grid, StencilKernel const& kernel, int threads, WaitLimits const& limits)
    : grid_(grid), kernel_(kernel), threads_(threads), barrier_(threads, {limits.first_s, limits.first_s}) {
  std::size_t bytes = kernel.value_bytes;
  for (std::int64_t const extent : grid.extent) bytes *= static_cast<std::size_t>(extent);
  for (Arrays& arrays : arrays_)
    arrays.assign(static_cast<std::size_t>(kernel.fields), std::vector<std::byte>(bytes));
}

std::byte* PlainLoop::field(int which) {
  return arrays_[static_cast<std::size_t>(taken_ % 2)][static_cast<std::size_t>(which)].data();
}

void PlainLoop::update(std::array<std::int64_t, 3> const& first, std::int64_t rows, Arrays const& from,
                       Arrays& to) const {
  auto const& n = grid_.extent;
  auto const bytes = static_cast<std::int64_t>(kernel_.value_bytes);
  auto const at = [&](std::int64_t a, std::int64_t b, std::int64_t c) {
    return ((a * n[1] + b) * n[2] + c) * bytes;
  };
  std::vector<void const*> in(static_cast<std::size_t>(kernel_.rows_read()));
  std::vector<std::int64_t> const strides(in.size(), n[2]);
  std::vector<void*> out;
  for (int f = 0; f < kernel_.fields; ++f) {
    std::byte const* const old = from[static_cast<std::size_t>(f)].data();
    for (int a = -kernel_.radius[0]; a <= kernel_.radius[0]; ++a)
      for (int b = -kernel_.radius[1]; b <= kernel_.radius[1]; ++b)
        in[static_cast<std::size_t>(kernel_.row(f, a, b))] = old + at(first[0] + a, first[1] + b, first[2]);
    out.push_back(to[static_cast<std::size_t>(f)].data() + at(first[0], first[1], first[2]));
  }
  kernel_.update({out.data(), in.data(), strides.data(), n[2], rows, n[2] - 2 * kernel_.radius[2],
                  kernel_.parameters.data()});
}

void PlainLoop::step(int thread, Arrays const& from, Arrays& to) const {
  auto const& n = grid_.extent;
  auto const& radius = kernel_.radius;
  std::int64_t const low = radius[0], planes = n[0] - 2 * radius[0];
  std::int64_t const first = low + planes * thread / threads_, last = low + planes * (thread + 1) / threads_;
  if (last <= first || n[2] <= 2 * radius[2]) return;
  if (n[1] == 1 && radius[1] == 0) return update({first, 0, radius[2]}, last - first, from, to);
  if (n[1] <= 2 * radius[1]) return;
  for (std::int64_t a = first; a < last; ++a)
    update({a, radius[1], radius[2]}, n[1] - 2 * radius[1], from, to);
}

void PlainLoop::steps(int thread, std::int64_t count) try {
  barrier_.arrive([&] {
    if (taken_ == 0) arrays_[1] = arrays_[0];  // what never changes is in both
  });
  for (std::int64_t k = 0; k < count; ++k) {
    auto const now = static_cast<std::size_t>((taken_ + k) % 2);
    step(thread, arrays_[now], arrays_[1 - now]);
    barrier_.arrive([] {});
  }
  barrier_.arrive([&] { taken_ += count; });
} catch (host::ThreadLost const&) {
  throw Error(ErrorCode::peer_lost,
              "a thread of the plain loop did not come (the others wait). Start it again.");
}

}  // namespace hostless
