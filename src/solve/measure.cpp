#include "solve/methods.hpp"
#include "solve/run_text.impl.hpp"

namespace hostless {
namespace {

/// Sums (b, b) and b.
struct SquareAndSum {
  template <class L, class Sums, class B>
  HOSTLESS_ANYWHERE void operator()(State const&, L leaf, Sums const& sum, B const& b) const {
    for (int j = 0; j < L::rows; ++j) {
      double const value = b(leaf, j);
      sum.add(0, value * value);
      sum.add(1, value);
    }
  }
};

}  // namespace

void measure(host::Engine& engine, double* b) {
  run_text(engine, RunKind::host, [&](auto& run) {
    run.rows(into(&State::rr, &State::rz), SquareAndSum{}, NoDecision{}, run.keep(b));
  });
}

}  // namespace hostless
