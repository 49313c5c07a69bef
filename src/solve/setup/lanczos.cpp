#include "solve/setup/lanczos.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "solve/methods/conjugate_gradient.impl.hpp"
#include "solve/methods/run_text.impl.hpp"

namespace hostless {
namespace {

/// p = M r / |r|, in the norm of M.
template <class M>
struct Normalised : Preconditioned<Normalised, M> {
  M m;
  double by;
  template <class Other>
  HOSTLESS_HOST_DEVICE Normalised(Normalised<Other> const& same, M inner) : m(inner), by(same.by) {}
  HOSTLESS_HOST_DEVICE Normalised(M inner, double inverse_norm) : m(inner), by(inverse_norm) {}
  template <class L, class Sums, class P, class R>
  HOSTLESS_HOST_DEVICE void operator()(State const&, L block_row, Sums const&, P const& p, R const& r) const {
    double z[L::rows];
    m.apply(block_row, r, z);
    for (int j = 0; j < L::rows; ++j) p(block_row, j) = by * z[j];
  }
};

/// v' = r / |r|; r = q - alpha v' - |r| v; v = v'; sums (r, M r).
template <class M>
struct Orthogonalised : Preconditioned<Orthogonalised, M> {
  M m;
  double by, norm, alpha;
  template <class Other>
  HOSTLESS_HOST_DEVICE Orthogonalised(Orthogonalised<Other> const& same, M inner)
      : m(inner), by(same.by), norm(same.norm), alpha(same.alpha) {}
  HOSTLESS_HOST_DEVICE Orthogonalised(M inner, double inverse_norm, double norm_of_r, double rayleigh)
      : m(inner), by(inverse_norm), norm(norm_of_r), alpha(rayleigh) {}
  template <class L, class Sums, class R, class V, class Q>
  HOSTLESS_HOST_DEVICE void operator()(State const&, L block_row, Sums const& sum, R const& r, V const& v,
                                       Q const& q) const {
    for (int j = 0; j < L::rows; ++j) {
      double const now = by * r(block_row, j);
      r(block_row, j) = __builtin_fma(-norm, v(block_row, j), __builtin_fma(-alpha, now, q(block_row, j)));
      v(block_row, j) = now;
    }
    double z[L::rows];
    m.apply(block_row, r, z);
    for (int j = 0; j < L::rows; ++j) sum.add(0, r(block_row, j) * z[j]);
  }
};

/// Sums (r, M r).
template <class M>
struct SquareInM : Preconditioned<SquareInM, M> {
  M m;
  template <class Other>
  HOSTLESS_HOST_DEVICE SquareInM(SquareInM<Other> const&, M inner) : m(inner) {}
  HOSTLESS_HOST_DEVICE explicit SquareInM(M inner) : m(inner) {}
  template <class L, class Sums, class R>
  HOSTLESS_HOST_DEVICE void operator()(State const&, L block_row, Sums const& sum, R const& r) const {
    double z[L::rows];
    m.apply(block_row, r, z);
    for (int j = 0; j < L::rows; ++j) sum.add(0, r(block_row, j) * z[j]);
  }
};

/// True when no eigenvalue is >= x: all pivots of x I - T are positive.
bool lies_above(double x, std::span<double const> diagonal, std::span<double const> beside) {
  double pivot = x - diagonal[0];
  for (std::size_t i = 1; i < diagonal.size(); ++i) {
    if (!(pivot > 0)) return false;
    pivot = x - diagonal[i] - beside[i - 1] / pivot * beside[i - 1];
  }
  return pivot > 0;
}

}  // namespace

double largest_eigenvalue(std::span<double const> diagonal, std::span<double const> beside) {
  double low = -std::numeric_limits<double>::infinity(), high = low;  // by the discs of Gershgorin
  for (std::size_t i = 0; i < diagonal.size(); ++i) {
    double const radius =
        (i > 0 ? std::abs(beside[i - 1]) : 0.0) + (i < beside.size() ? std::abs(beside[i]) : 0.0);
    if (!std::isfinite(diagonal[i]) || !std::isfinite(radius))
      return std::numeric_limits<double>::quiet_NaN();
    low = std::max(low, diagonal[i]);
    high = std::max(high, diagonal[i] + radius);
  }
  for (;;) {
    double const middle = low + (high - low) / 2;
    if (!(middle > low && middle < high)) return high;
    (lies_above(middle, diagonal, beside) ? high : low) = middle;
  }
}

double largest_ritz_value(host::Engine& engine, AnyPreconditioner const& m, LanczosVectors const& vectors) {
  State& state = engine.state;
  state = State{};
  std::fill_n(vectors.v, engine.tiling.rows(), 0.0);
  auto const execute = [&](auto const& text) { run_text(engine, RunKind::host, text); };
  auto const memory = [](double* values) { return InMemory{values}; };
  InMemory const r = memory(vectors.r), v = memory(vectors.v), q = memory(vectors.q), p = memory(vectors.p);
  execute([&](auto& run) { run.rows(into(ScalarIndex::measured), SquareInM{m}, NoDecision{}, reads(r)); });
  std::vector<double> diagonal, beside;
  double const& measured = state.value[ScalarIndex::measured];  // (r, M r), and in between p' A p
  while (state.status == Status::running && measured > 0 && std::isfinite(measured)) {
    double const norm = std::sqrt(measured), by = 1.0 / norm;
    // The vector that is left is a rounding error: the space is used up, and its Ritz values are eigenvalues.
    if (!diagonal.empty() && norm <= 1e-10 * std::abs(diagonal.back())) break;
    if (diagonal.size() == static_cast<std::size_t>(lanczos_steps)) break;
    if (!diagonal.empty()) beside.push_back(norm);
    execute([&](auto& run) {
      run.publish(p, Normalised{m, by}, reads(r));
      run.sweep(p, into(ScalarIndex::measured), ProductDot{}, NoDecision{}, q);
    });
    diagonal.push_back(measured);
    execute([&](auto& run) {
      run.rows(into(ScalarIndex::measured), Orthogonalised{m, by, norm, diagonal.back()}, NoDecision{}, r, v,
               reads(q));
    });
  }
  if (!std::isfinite(measured) || state.status != Status::running)
    return std::numeric_limits<double>::quiet_NaN();
  return diagonal.empty() ? 0.0 : largest_eigenvalue(diagonal, beside);
}

}  // namespace hostless
