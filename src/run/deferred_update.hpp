#pragma once
// The half of a body's work that nothing waits for, which a run may put off (decision 0017).

#include <concepts>

#include "hostless/base/host_device.hpp"
#include "hostless/run/state.hpp"

namespace hostless {

/// x += step p.
template <class L, class X, class P>
HOSTLESS_HOST_DEVICE void advance(double step, L block_row, X const& x, P const& p) {
  for (int j = 0; j < L::rows; ++j) x(block_row, j) = __builtin_fma(step, p(block_row, j), x(block_row, j));
}

struct Advance {
  double step;
  template <class L, class Sums, class X, class P>
  HOSTLESS_HOST_DEVICE void operator()(State const&, L block_row, Sums const&, X const& x, P const& p) const {
    advance(step, block_row, x, p);
  }
};
/// x along p, then p anew by `form` of p and what it is formed of.
template <class Form>
struct AdvanceThen {
  double step;
  Form form;
  template <class L, class Sums, class P, class From, class X>
  HOSTLESS_HOST_DEVICE void operator()(State const& s, L block_row, Sums const& sum, P const& p,
                                       From const& from, X const& x) const {
    advance(step, block_row, x, p);
    form(s, block_row, sum, p, from);
  }
};

/// Of fields x, r, q and p it does `advance` of x by `step(state)` along p, and `now()` with r and q.
template <class Body>
concept DeferrableUpdate = requires(Body const& body, State const& state) {
  { Body::step(state) } -> std::same_as<double>;
  body.now();
};

}  // namespace hostless
