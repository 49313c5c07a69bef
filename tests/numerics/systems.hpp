#pragma once
// Small whole systems, and how to solve them on ranks that are threads: shared by the rings above the units.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "hostless/base/rows.hpp"
#include "hostless/problems/problems.hpp"
#include "hostless/solve/solver.hpp"
#include "solve/methods/method_facts.hpp"

namespace hostless::test {

/// A whole matrix, global columns.
struct System {
  std::vector<std::int64_t> offset{0}, column;
  std::vector<double> value;
  std::int64_t rows() const { return static_cast<std::int64_t>(offset.size()) - 1; }

  void row(std::vector<std::pair<std::int64_t, double>> const& entries) {
    for (auto const& [c, v] : entries) {
      column.push_back(c);
      value.push_back(v);
    }
    offset.push_back(static_cast<std::int64_t>(column.size()));
  }
  /// Every entry is stored, zeros too.
  static System dense(std::vector<std::vector<double>> const& a) {
    System s;
    for (auto const& r : a) {
      std::vector<std::pair<std::int64_t, double>> entries;
      for (std::size_t j = 0; j < r.size(); ++j) entries.emplace_back(static_cast<std::int64_t>(j), r[j]);
      s.row(entries);
    }
    return s;
  }
  static System diagonal(std::vector<double> const& d) {
    System s;
    for (std::size_t i = 0; i < d.size(); ++i) s.row({{static_cast<std::int64_t>(i), d[i]}});
    return s;
  }
  /// 2 on the diagonal and -1 beside it; `free`: 1 at both ends, which makes it singular.
  static System path(std::int64_t n, bool free = false) {
    System s;
    for (std::int64_t i = 0; i < n; ++i) {
      std::vector<std::pair<std::int64_t, double>> r;
      if (i > 0) r.emplace_back(i - 1, -1.0);
      r.emplace_back(i, free && (i == 0 || i == n - 1) ? 1.0 : 2.0);
      if (i + 1 < n) r.emplace_back(i + 1, -1.0);
      s.row(r);
    }
    return s;
  }
  static System problem(ProblemOptions const& options) { return whole(*make_problem(options, 1, 0)); }
  static System whole(RowSource const& source) {
    System s;
    RowPanel panel;
    source.panel(0, source.global_rows(), panel);
    s.offset = panel.offset;
    s.column = panel.column;
    s.value = panel.value;
    return s;
  }
  double& at(std::int64_t i, std::int64_t j) {
    for (auto k = offset[static_cast<std::size_t>(i)]; k < offset[static_cast<std::size_t>(i) + 1]; ++k)
      if (column[static_cast<std::size_t>(k)] == j) return value[static_cast<std::size_t>(k)];
    throw std::logic_error("no such entry");
  }
  template <class Real = double>
  std::vector<Real> times(std::vector<Real> const& x) const {
    std::vector<Real> y(x.size(), Real(0));
    for (std::size_t i = 0; i < x.size(); ++i)
      for (auto k = static_cast<std::size_t>(offset[i]); k < static_cast<std::size_t>(offset[i + 1]); ++k)
        y[i] += Real(value[k]) * x[static_cast<std::size_t>(column[k])];
    return y;
  }
};

inline std::vector<double> random_vector(std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> v(static_cast<std::size_t>(n));
  for (double& e : v) e = uniform(random);
  return v;
}

inline bool same_bits(std::vector<double> const& a, std::vector<double> const& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), 8 * a.size()) == 0);
}

/// One rank's rows of a system.
struct Share {
  std::int64_t first, last;
  std::vector<std::int64_t> offset, column;
  std::vector<double> value;
};
/// Contiguous rows; `aligned` as generators do it (multiples of 12), else as evenly as possible.
inline Share share_of(System const& s, int ranks, int rank, bool aligned) {
  std::int64_t const n = s.rows();
  Share share;
  share.first = aligned ? share_first(n, ranks, rank) : piece(rank, ranks, n);
  share.last = aligned ? share_first(n, ranks, rank + 1) : piece(rank + 1, ranks, n);
  std::int64_t const begin = s.offset[static_cast<std::size_t>(share.first)];
  std::int64_t const end = s.offset[static_cast<std::size_t>(share.last)];
  for (auto i = share.first; i <= share.last; ++i)
    share.offset.push_back(s.offset[static_cast<std::size_t>(i)] - begin);
  share.column.assign(s.column.begin() + begin, s.column.begin() + end);
  share.value.assign(s.value.begin() + begin, s.value.begin() + end);
  return share;
}

/// How and where a system is solved.
struct Setting {
  int ranks = 1;
  bool aligned = false;
  MatrixOptions matrix;
  SolveOptions solve;
};

struct Ending {
  Result result;                ///< of rank 0
  std::vector<Result> by_rank;  ///< of all
  std::vector<double> x;        ///< in global order
};

/// Options per rank, for what holds functions or differs between ranks.
using Adjust = std::function<void(int rank, SolveOptions&)>;

/// Solves on threads. Numerical endings must be the same on every rank, or this throws.
inline Ending solve_on_threads(System const& a, std::vector<double> const& b, std::vector<double> const& x0,
                               Setting const& setting, Adjust const& adjust = {}) {
  Ending ending;
  ending.x = x0;
  ending.by_rank.resize(static_cast<std::size_t>(setting.ranks));
  run_with_threads_transport(setting.ranks, [&](Transport& transport) {
    int const rank = transport.group().rank();
    Share const mine = share_of(a, setting.ranks, rank, setting.aligned);
    Matrix const matrix =
        Matrix::from_rows(transport, mine.first, mine.offset, mine.column, mine.value, setting.matrix);
    SolveOptions options = setting.solve;
    if (adjust) adjust(rank, options);
    Solver solver(matrix, options);
    auto const rows = static_cast<std::size_t>(mine.last - mine.first);
    ending.by_rank[static_cast<std::size_t>(rank)] =
        solver.solve({b.data() + mine.first, rows}, {ending.x.data() + mine.first, rows});
  });
  ending.result = ending.by_rank[0];
  for (Result const& r : ending.by_rank) {
    bool const loss = r.status == Status::peer_lost || ending.result.status == Status::peer_lost;
    if (!loss && (r.status != ending.result.status || r.iterations != ending.result.iterations ||
                  !same_bits(r.residual_history, ending.result.residual_history))) {
      throw std::runtime_error("ranks disagree about how the solve ended");
    }
  }
  return ending;
}

inline Ending solve_on_threads(System const& a, std::vector<double> const& b, Setting const& setting,
                               Adjust const& adjust = {}) {
  return solve_on_threads(a, b, std::vector<double>(b.size(), 0.0), setting, adjust);
}

inline double norm(std::vector<double> const& v) {
  long double sum = 0;
  for (double e : v) sum += static_cast<long double>(e) * e;
  return static_cast<double>(std::sqrt(sum));
}
/// |b - A x| in long double.
inline double residual_of(System const& a, std::vector<double> const& b, std::vector<double> const& x) {
  std::vector<long double> const wide(x.begin(), x.end());
  auto const y = a.times<long double>(wide);
  long double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += (b[i] - y[i]) * (b[i] - y[i]);
  return static_cast<double>(std::sqrt(sum));
}

inline ProblemOptions problem(std::string const& kind, std::int64_t nx, std::int64_t ny, std::int64_t nz,
                              double contrast = 100.0, Boundary boundary = Boundary::standard) {
  ProblemOptions options;
  options.kind = kind;
  options.nx = nx;
  options.ny = ny;
  options.nz = nz;
  options.contrast = contrast;
  options.boundary = boundary;
  return options;
}

inline std::vector<Method> all_methods() { return {methods().begin(), methods().end()}; }
template <class Has>
std::vector<Method> methods_that(Has const& has) {
  std::vector<Method> some;
  for (Method method : all_methods())
    if (has(facts_of(method))) some.push_back(method);
  return some;
}
/// Those that solve with a positive definite matrix and no other.
inline std::vector<Method> definite_methods() {
  return methods_that([](MethodFacts const& one) { return one.demands == Demands::positive_definite; });
}

/// The runs that every numerical statement is checked on.
struct RunChoice {
  std::string name;
  RunKind kind;
  int threads, check_interval;
  int gpus = 0;
  std::string gpu_format = "auto";
};
inline std::vector<RunChoice> all_runs() {
  return {{"host", RunKind::host, 1, 1},
          {"persistent2", RunKind::persistent, 2, 1},
          {"persistent3", RunKind::persistent, 3, 1},
          {"graph1", RunKind::graph, 1, 1},
          {"graph3", RunKind::graph, 1, 3}};
}
inline void use(SolveOptions& options, RunChoice const& run) {
  options.run.kind = run.kind;
  options.run.threads = run.threads;
  options.run.check_interval = run.check_interval;
  options.run.gpus = run.gpus;
}
inline void use(Setting& setting, RunChoice const& run) {
  use(setting.solve, run);
  setting.matrix.gpus = run.gpus;
  setting.matrix.gpu_format = run.gpu_format;
}

}  // namespace hostless::test
