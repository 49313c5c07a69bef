#pragma once
// The promise "Order of sums", written a second time from its text, directly and slowly (no tiling object, no padding
// tricks, no kernels), which the library is compared with, bit for bit.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "systems.hpp"

namespace hostless::test {

/// Who owns which rows, in which order, and how they are cut: what a plan says.
struct OrderedPlan {
  std::vector<std::vector<std::int64_t>> rows;  ///< by rank: global row of every local row
  int block = 1;
  int slices = 1;
  int threads_per_row = 1;
};

class Ordered {
 public:
  /// Lets tests perturb what contributes: value of local row i of rank r.
  using Values = std::vector<std::vector<double>>;

  Ordered(System const& a, OrderedPlan plan)
      : a_(a), plan_(std::move(plan)), owner_(static_cast<std::size_t>(a.rows())) {
    for (std::size_t r = 0; r < plan_.rows.size(); ++r)
      for (std::size_t i = 0; i < plan_.rows[r].size(); ++i)
        owner_[static_cast<std::size_t>(plan_.rows[r][i])] = {r, i};
    for (std::size_t r = 0; r < plan_.rows.size(); ++r) order_columns(r);
  }

  Values scatter(std::vector<double> const& global) const {
    Values v;
    for (auto const& rows : plan_.rows) {
      v.emplace_back();
      for (std::int64_t row : rows) v.back().push_back(global[static_cast<std::size_t>(row)]);
    }
    return v;
  }
  std::vector<double> gather(Values const& v) const {
    std::vector<double> global(owner_.size());
    for (std::size_t r = 0; r < v.size(); ++r)
      for (std::size_t i = 0; i < v[r].size(); ++i)
        global[static_cast<std::size_t>(plan_.rows[r][i])] = v[r][i];
    return global;
  }

  /// 1. Row: products in rising local column, acc = fma(value, x, acc) from +0.0; product k goes to
  /// accumulator k mod threads_per_row, and 3. combines them.
  Values times(Values const& x) const {
    Values y = x;
    for (std::size_t r = 0; r < x.size(); ++r) {
      for (std::size_t i = 0; i < x[r].size(); ++i) {
        std::vector<double> sum(static_cast<std::size_t>(plan_.threads_per_row), +0.0);
        std::size_t k = 0;
        for (auto const& [item, value] : entries_[r][i]) {
          double& into = sum[k++ % sum.size()];
          into = std::fma(value, x[item[0]][item[1]], into);
        }
        y[r][i] =
            tree(0, plan_.threads_per_row, [&](std::int64_t l) { return sum[static_cast<std::size_t>(l)]; });
      }
    }
    return y;
  }

  /// 2. and 3. of values that contribute, one a row.
  double sum(Values const& contribution) const {
    std::map<std::array<std::int64_t, 3>, double> accumulator;  // by (rank, slice, accumulator)
    for (std::size_t r = 0; r < contribution.size(); ++r) {
      auto const block_rows = static_cast<std::int64_t>(contribution[r].size()) / plan_.block;
      for (std::int64_t s = 0; s < plan_.slices; ++s) {
        std::int64_t const first = first_of_slice(block_rows, s), end = first_of_slice(block_rows, s + 1);
        for (std::int64_t block_row = first; block_row < end; ++block_row) {
          double& into = accumulator[{static_cast<std::int64_t>(r), s, (block_row - first) % 256}];
          for (std::int64_t j = 0; j < plan_.block; ++j)
            into += contribution[r][static_cast<std::size_t>(block_row * plan_.block + j)];
        }
      }
    }
    auto const ranks = static_cast<std::int64_t>(contribution.size());
    return tree(0, padded(ranks), [&](std::int64_t r) {
      return tree(0, padded(plan_.slices), [&](std::int64_t s) {
        return tree(0, 256, [&](std::int64_t l) {
          auto const at = accumulator.find({r, s, l});
          return at == accumulator.end() ? +0.0 : at->second;
        });
      });
    });
  }
  double dot(Values const& u, Values const& v) const {
    Values product = u;
    for (std::size_t r = 0; r < u.size(); ++r)
      for (std::size_t i = 0; i < u[r].size(); ++i) product[r][i] = u[r][i] * v[r][i];
    return sum(product);
  }

 private:
  std::int64_t first_of_slice(std::int64_t block_rows,
                              std::int64_t s) const {  // large ones at multiples of 32
    std::int64_t const even = block_rows * s / plan_.slices;
    return s == plan_.slices || block_rows / plan_.slices < 64 ? even : (even + 31) / 32 * 32;
  }
  static std::int64_t padded(std::int64_t n) { return n <= 1 ? 1 : 2 * padded((n + 1) / 2); }
  /// The balanced binary tree over [first, first + n), from the root down.
  template <class BlockRow>
  static double tree(std::int64_t first, std::int64_t n, BlockRow const& block_row) {
    if (n == 1) return block_row(first);
    double const left = tree(first, n / 2, block_row);
    double const right = tree(first + n / 2, n / 2, block_row);
    return left + right;
  }
  /// Local columns rise by (rank, its local order): ghosts of lower ranks, owned rows, ghosts of higher ones.
  void order_columns(std::size_t r) {
    entries_.emplace_back();
    for (std::int64_t row : plan_.rows[r]) {
      std::map<std::array<std::size_t, 2>, double> ordered;
      for (auto k = a_.offset[static_cast<std::size_t>(row)];
           k < a_.offset[static_cast<std::size_t>(row) + 1]; ++k) {
        auto const [rank, i] = owner_[static_cast<std::size_t>(a_.column[static_cast<std::size_t>(k)])];
        ordered[{rank, i}] = a_.value[static_cast<std::size_t>(k)];
      }
      entries_.back().emplace_back(ordered.begin(), ordered.end());
    }
  }

  System const& a_;
  OrderedPlan plan_;
  std::vector<std::pair<std::size_t, std::size_t>> owner_;
  std::vector<std::vector<std::vector<std::pair<std::array<std::size_t, 2>, double>>>> entries_;
};

/// Solves on threads and says how the plan ordered the rows.
inline Ending solve_aligned(System const& a, int ranks, Setting const& setting, std::vector<double> const& b,
                            OrderedPlan& plan) {
  Ending ending;
  ending.x.assign(b.size(), 0.0);
  plan.rows.assign(static_cast<std::size_t>(ranks), {});
  run_with_threads_transport(ranks, [&](Transport& transport) {
    int const rank = transport.group().rank();
    Share const mine = share_of(a, ranks, rank, true);
    Matrix const matrix =
        Matrix::from_rows(transport, mine.first, mine.offset, mine.column, mine.value, setting.matrix);
    for (std::int64_t i = 0; i < matrix.owned(); ++i)
      plan.rows[static_cast<std::size_t>(rank)].push_back(matrix.global_row(i));
    if (rank == 0) {
      plan.block = matrix.sweep().tiling.block;
      plan.slices = matrix.sweep().tiling.slices;
      plan.threads_per_row = matrix.sweep().tiling.threads_per_row;
    }
    Solver solver(matrix, setting.solve);
    auto const rows = static_cast<std::size_t>(mine.last - mine.first);
    Result const result = solver.solve({b.data() + mine.first, rows}, {ending.x.data() + mine.first, rows});
    if (rank == 0) ending.result = result;
  });
  return ending;
}

struct OrderedSolve {
  Status status;
  int restarts;
  double true_residual;
  std::vector<double> history, x;
};

/// The methods over `Ordered`. The recurrence proposes an end; the true residual b - A x decides, and where
/// it disagrees the recurrence starts anew from it.
class OrderedMethods {
 public:
  OrderedMethods(System const& a, OrderedPlan const& plan, std::vector<double> const& b,
                 PreconditionerKind preconditioner, double rtol)
      : o_(a, plan), b_(o_.scatter(b)), x_(o_.scatter(std::vector<double>(b.size(), 0.0))) {
    std::int64_t const block = preconditioner == PreconditionerKind::block_jacobi ? plan.block : 1;
    for (auto const& rows : plan.rows) {
      inverse_.emplace_back();
      for (std::size_t i = 0; i < rows.size(); i += static_cast<std::size_t>(block)) {
        Square diagonal(static_cast<std::size_t>(block),
                        std::vector<double>(static_cast<std::size_t>(block)));
        for (std::size_t j = 0; j < diagonal.size(); ++j)
          for (std::size_t k = 0; k < diagonal.size(); ++k)
            diagonal[j][k] = entry(a, rows[i + j], rows[i + k]);
        if (preconditioner == PreconditionerKind::none) diagonal = {{1.0}};
        inverse_.back().push_back(preconditioner == PreconditionerKind::block_jacobi
                                      ? inverse(diagonal)
                                      : Square{{1.0 / diagonal[0][0]}});
      }
    }
    double const size = std::sqrt(o_.dot(b_, b_));
    target_ = rtol * size;
    propose_at_ = std::max(target_, 0x1p-52 * size);
  }

  OrderedSolve solve(Method method) {
    for (int true_residuals = 0;; ++true_residuals) {
      double const rr = true_square(), true_residual = std::sqrt(rr);
      if (true_residuals == 0) {
        history_.push_back(true_residual);
        best_ = first_ = rr;
      } else {
        useless_ = true_residual <= 0.5 * std::sqrt(best_) ? 0 : useless_ + 1;
        best_ = std::min(best_, rr);
      }
      bool const met = true_residual <= target_;
      if (met || useless_ >= 3)
        return {met ? Status::converged : Status::stagnated,
                true_residuals - (met && true_residuals > 0 ? 1 : 0), true_residual, history_, o_.gather(x_)};
      if (!iterate(method))
        return {Status::stagnated, true_residuals, true_residual, history_, o_.gather(x_)};
    }
  }

 private:
  using Values = Ordered::Values;
  using Square = std::vector<std::vector<double>>;

  /// r = b - A x, and its square.
  double true_square() {
    r_ = o_.times(x_);
    each(r_, [&](auto r, auto i) { return b_[r][i] - r_[r][i]; });
    return o_.dot(r_, r_);
  }
  /// From a true residual to where the next is asked for. False: the solve stagnates here.
  bool iterate(Method method) {
    switch (method) {
      case Method::cg:
        cg();
        return true;
      case Method::single_reduction_cg:
        single_reduction();
        return true;
      case Method::pipelined_cg:
        pipelined();
        return true;
      case Method::bicgstab:
        bicgstab();
        return true;
      case Method::minres:
        return minres();
      case Method::cr:
        return conjugate_residuals();
    }
    throw std::logic_error(std::string("nobody has written a second time: ") + name(method));
  }
  static double entry(System const& a, std::int64_t i, std::int64_t j) {
    for (auto k = a.offset[static_cast<std::size_t>(i)]; k < a.offset[static_cast<std::size_t>(i) + 1]; ++k)
      if (a.column[static_cast<std::size_t>(k)] == j) return a.value[static_cast<std::size_t>(k)];
    return 0.0;
  }
  /// (L L')^-1 = Y' Y with Y = L^-1: every number is what is there first, then fma by fma in rising index.
  static Square inverse(Square const& a) {
    std::size_t const n = a.size();
    Square l(n, std::vector<double>(n)), y = l, result = l;
    auto const minus = [&](double v, auto const& left, auto const& right, std::size_t from, std::size_t to) {
      for (std::size_t k = from; k < to; ++k) v = std::fma(-left(k), right(k), v);
      return v;
    };
    for (std::size_t i = 0; i < n; ++i) {
      auto const row = [&](std::size_t k) { return l[i][k]; };
      for (std::size_t j = 0; j <= i; ++j) {
        double const v = minus(
            a[i][j], row, [&](std::size_t k) { return l[j][k]; }, 0, j);
        l[i][j] = i == j ? std::sqrt(v) : v / l[j][j];
      }
      for (std::size_t c = 0; c <= i; ++c)
        y[i][c] = minus(
                      i == c ? 1.0 : 0.0, row, [&](std::size_t k) { return y[k][c]; }, c, i) /
                  l[i][i];
    }
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t k = std::max(i, j); k < n; ++k)
          result[i][j] = std::fma(y[k][i], y[k][j], result[i][j]);
    return result;
  }

  template <class Formula>
  void each(Values& v, Formula const& formula) {
    for (std::size_t r = 0; r < v.size(); ++r)
      for (std::size_t i = 0; i < v[r].size(); ++i) v[r][i] = formula(r, i);
  }
  Values preconditioned(Values const& v) {
    Values z = v;
    each(z, [&](auto r, auto i) {
      std::size_t const n = inverse_[r][0].size();
      std::vector<double> const& row = inverse_[r][i / n][i % n];
      if (n == 1) return row[0] * v[r][i];
      double sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum = std::fma(row[k], v[r][i / n * n + k], sum);
      return sum;
    });
    return z;
  }
  /// y = a x + y, rounded once.
  void add(Values& y, double a, Values const& x) {
    each(y, [&](auto r, auto i) { return std::fma(a, x[r][i], y[r][i]); });
  }
  /// y = x + b y, rounded once.
  void direct(Values& y, double b, Values const& x) {
    each(y, [&](auto r, auto i) { return std::fma(b, y[r][i], x[r][i]); });
  }
  /// Logs the residual of a step; true when it proposes an end.
  bool log() {
    history_.push_back(std::sqrt(o_.dot(r_, r_)));
    return history_.back() <= propose_at_;
  }

  void cg() {
    Values p = preconditioned(r_);
    double rz = o_.dot(r_, p);
    for (;;) {
      Values const q = o_.times(p);
      double const alpha = rz / o_.dot(p, q);
      add(x_, alpha, p);
      add(r_, -alpha, q);
      if (log()) return;
      Values const z = preconditioned(r_);
      double const next = o_.dot(r_, z);
      direct(p, next / rz, z);
      rz = next;
    }
  }
  void single_reduction() {
    Values u = preconditioned(r_), w = o_.times(u), p = u, s = w;
    double gamma = o_.dot(r_, u), alpha = gamma / o_.dot(w, u);
    for (;;) {
      add(x_, alpha, p);
      add(r_, -alpha, s);
      u = preconditioned(r_);
      w = o_.times(u);
      if (log()) return;
      double const next = o_.dot(r_, u), beta = next / gamma;
      double const divisor = o_.dot(w, u) - beta * next / alpha;
      if (!(divisor > 0)) return;  // the recurrence is used up
      alpha = next / divisor;
      gamma = next;
      direct(p, beta, u);
      direct(s, beta, w);
    }
  }
  void pipelined() {
    Values u = preconditioned(r_), w = o_.times(u), m = preconditioned(w), n = o_.times(m);
    Values z = n, s = w, p = u;
    double gamma = o_.dot(r_, u), alpha = gamma / o_.dot(w, u);
    for (;;) {
      add(x_, alpha, p);
      add(r_, -alpha, s);
      add(w, -alpha, z);
      if (log()) return;
      u = preconditioned(r_);
      double const next = o_.dot(r_, u), beta = next / gamma;
      double const divisor = o_.dot(w, u) - beta * next / alpha;
      if (!(divisor > 0)) return;
      alpha = next / divisor;
      gamma = next;
      n = o_.times(preconditioned(w));
      direct(z, beta, n);
      direct(s, beta, w);
      direct(p, beta, u);
    }
  }

  void bicgstab() {
    Values const shadow = r_;
    Values p = r_;
    double rho = o_.dot(r_, r_);
    double const size = std::sqrt(rho);
    for (;;) {
      Values g = preconditioned(p);
      Values const v = o_.times(g);
      double const alpha = rho / o_.dot(shadow, v);
      if (!std::isfinite(alpha)) return;
      add(x_, alpha, g);
      add(r_, -alpha, v);
      g = preconditioned(r_);
      Values const t = o_.times(g);
      double const omega = o_.dot(t, r_) / o_.dot(t, t);
      if (std::sqrt(o_.dot(r_, r_)) <= propose_at_ || !std::isfinite(omega)) {
        log();
        return;
      }
      add(x_, omega, g);
      add(r_, -omega, t);
      double const next = o_.dot(shadow, r_), beta = next / rho * (alpha / omega);
      if (log() || omega == 0 || std::abs(next) <= 1e-16 * history_.back() * size) return;
      rho = next;
      add(p, -omega, v);
      direct(p, beta, r_);
    }
  }
  /// False: A r has vanished where no step has been made.
  bool conjugate_residuals() {
    Values z = preconditioned(r_), w = o_.times(z), p = z, q = w;
    double rz = o_.dot(r_, z), zw = o_.dot(z, w);
    for (bool first = true;; first = false) {
      double const qq = o_.dot(q, preconditioned(q)), size = std::sqrt(qq) / std::sqrt(rz);
      norm_ = std::max(norm_, size);
      bool const is_rounding = std::abs(zw) <= 0x1p-49 * norm_ * rz;
      if (first && is_rounding && size <= 0x1p-20 * norm_) return false;
      if (qq == 0 || is_rounding || std::abs(zw) <= 1e-14 * std::sqrt(rz) * std::sqrt(qq)) return true;
      add(x_, zw / qq, p);
      add(r_, -(zw / qq), q);
      z = preconditioned(r_);
      rz = o_.dot(r_, z);
      if (log() || rz <= 0) return true;
      w = o_.times(z);
      double const next = o_.dot(z, w), beta = next / zw;
      zw = next;
      direct(p, beta, z);
      direct(q, beta, w);
    }
  }
  /// False: no step made the true residual smaller, for the second time.
  bool minres() {
    Values const zero = o_.scatter(std::vector<double>(o_.gather(x_).size(), 0.0));
    Values y = r_, before = zero, w = zero, w_before = zero, z = preconditioned(y);
    double beta = std::sqrt(o_.dot(y, z)), by_before = 0, residual = beta;
    if (std::exchange(disagreed_, false)) milestone_ = 5 * beta;
    double cosine = -1, sine = 0, delta_next = 0, epsilon_next = 0;
    for (bool fresh = true;; fresh = false) {
      double const scale = 1 / beta;
      Values v = z;
      each(v, [&](auto r, auto i) { return scale * z[r][i]; });
      Values const a_v = o_.times(v);
      each(before, [&](auto r, auto i) { return std::fma(-by_before, before[r][i], a_v[r][i]); });
      double const diagonal = o_.dot(v, before), by_newest = diagonal * scale;
      std::swap(y, before);
      each(y, [&](auto r, auto i) { return std::fma(-by_newest, before[r][i], y[r][i]); });
      z = preconditioned(y);
      double const next = std::sqrt(o_.dot(y, z));
      double const gamma_bar = sine * delta_next - cosine * diagonal;
      double const delta = cosine * delta_next + sine * diagonal, epsilon = epsilon_next;
      delta_next = -cosine * next;
      norm_ = std::max(norm_, std::abs(diagonal) + (fresh ? 0.0 : beta) + next);
      double const near = fresh && stood_ ? 1e-10 : 1e-12;
      stood_ = std::max(std::abs(gamma_bar), std::abs(delta_next)) <= near * norm_;
      if (stood_) return !fresh;
      double const larger = std::max(std::abs(gamma_bar), next);
      double const ratio = std::min(std::abs(gamma_bar), next) / larger;
      double const gamma = larger * std::sqrt(1 + ratio * ratio), scaled = 1 / gamma;
      epsilon_next = sine * next;
      cosine = gamma_bar / gamma;
      sine = next / gamma;
      double const step = cosine * residual, take = residual * cosine / gamma, keep = sine * sine;
      residual = sine * residual;
      by_before = next / beta;
      beta = next;
      each(v, [&](auto r, auto i) { return std::fma(-epsilon, w_before[r][i], v[r][i]); });
      each(v, [&](auto r, auto i) { return scaled * std::fma(-delta, w[r][i], v[r][i]); });
      w_before = w;
      w = v;
      add(x_, step, w);
      each(r_, [&](auto r, auto i) { return std::fma(keep, r_[r][i], -take * y[r][i]); });
      double const square = o_.dot(r_, r_), x_square = o_.dot(x_, x_);
      bool const ends = log() || beta == 0, has_fallen = residual <= 0.1 * milestone_;
      if (milestone_ == 0 || has_fallen) {
        milestone_ = residual * (useless_ > 0 ? 5 : 1);
        x_square_then_ = x_square;
      }
      if (ends) return true;
      double const sizes = norm_ * (std::sqrt(square) * std::sqrt(x_square));
      if (residual * residual > 8 * 2.3e-16 * sizes) {
        if (x_square <= 100 * x_square_then_) continue;
        double const fallen_by = milestone_ - residual;
        double const image = std::max(fallen_by * (milestone_ + residual), 0x1p-52 * residual * residual);
        milestone_ = residual, x_square_then_ = x_square;
        if (std::sqrt(image) * residual > 1e-13 * sizes || fallen_by > 1e-4 * residual) continue;
        useless_ = 2;  // x grows along a null vector
        best_ = std::min(best_, square);
        return true;
      }
      if (useless_ > 1 || square <= 0x1p-104 * first_) return true;
      if (has_fallen ? !is_right(square) : x_square > 100 * x_square_then_) return true;
    }
  }
  /// Whether b - A x is what a recurrence says of it, and leaves something to do.
  bool is_right(double square) {
    double const rr = true_square();
    disagreed_ = !(rr <= 2 * square);
    if (disagreed_) return false;
    best_ = std::min(best_, rr);
    return std::sqrt(rr) > target_;
  }

  Ordered o_;
  Values b_, x_, r_;
  std::vector<std::vector<Square>> inverse_;  ///< by rank and block row, or row
  double target_ = 0, propose_at_ = 0, best_ = 0, first_ = 0;
  int useless_ = 0;
  double norm_ = 0;                           // of what CR or MINRES has seen of A
  double milestone_ = 0, x_square_then_ = 0;  // where it last looked how far it has come
  bool disagreed_ = false;                    // the true residual, when it did
  bool stood_ = false;                        // its last step was none
  std::vector<double> history_;
};

}  // namespace hostless::test
