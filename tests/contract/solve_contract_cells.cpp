#include "solve_contract_cells.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "hostless/problems/problems.hpp"

namespace hostless::contract {
namespace {

constexpr std::size_t axes = 8;
using Point =
    std::array<int, axes>;  // problem, partition, slices, method, preconditioner, run, route, format
constexpr Point sizes = {4, 2, 3, 3, 3, 5, 3, 6};
constexpr std::array<int, 3> slice_numbers = {0, 3, 40};  // 0: as the library chooses

Cell cell_of(Point const& p) { return {{p[0], p[1], p[2], p[3], p[4]}, {p[5], p[6], p[7]}}; }

struct Pair {
  std::size_t a, b;
  int i, j;
  auto operator<=>(Pair const&) const = default;
};

// Pairs that axis `k` with value `v` closes with the axes of `point` that have one (others are -1).
int closes(std::set<Pair> const& open, Point const& point, std::size_t k, int v) {
  int count = 0;
  for (std::size_t other = 0; other < axes; ++other) {
    if (other == k || point[other] < 0) continue;
    bool const before = other < k;
    count += static_cast<int>(
        open.count(before ? Pair{other, k, point[other], v} : Pair{k, other, v, point[other]}));
  }
  return count;
}

struct ProblemChoice {
  ProblemOptions options;
  int block;
};

ProblemChoice problem_of(int index) {
  ProblemOptions o;
  o.contrast = 100;
  switch (index) {
    case 0:
      o.kind = "elasticity-hex8";
      o.nx = 5, o.ny = 4, o.nz = 6;
      return {o, 0};
    case 1:
      o.kind = "poisson7";
      o.nx = o.ny = o.nz = 8;
      return {o, 1};
    case 2:
      o.kind = "circuit";
      o.nx = 20, o.ny = 18;
      return {o, 1};
    default:
      o.kind = "poisson7";
      o.nx = 6, o.ny = 8, o.nz = 8;
      return {o, 2};
  }
}

FormatRequest format_of(int index, int block) {
  static constexpr std::array<char const*, 3> formats = {"csr", "bsr", "sell"};
  std::string const format = formats[static_cast<std::size_t>(index / 2)];
  // Rows without blocks have no block format: whole diagonals take that place.
  if (format == "bsr" && block == 1) return FormatRequest::from("sell", "auto");
  return FormatRequest::from(format, index % 2 == 0 ? "16" : "32");
}

MatrixOptions matrix_options(Cell const& cell, int block) {
  MatrixOptions m;
  m.block = block;
  m.partition =
      cell.plan.partition == 0 ? MatrixOptions::Partition::contiguous : MatrixOptions::Partition::metis;
  m.slices = slice_numbers[static_cast<std::size_t>(cell.plan.slices)];
  m.route =
      std::array{Route::direct, Route::two_step, Route::three_step}[static_cast<std::size_t>(cell.way.route)];
  m.ranks_per_node = 2;
  m.format = format_of(cell.way.format, block);
  return m;
}

SolveOptions solve_options(Cell const& cell, std::function<void(int)> const& disturb) {
  SolveOptions s;
  s.method = static_cast<Method>(cell.plan.method);
  s.preconditioner = static_cast<PreconditionerKind>(cell.plan.preconditioner);
  s.rtol = 1e-3;
  s.max_iterations = 25;  // some plans converge before, others end here: both endings are compared
  switch (cell.way.run) {
    case 0:
      break;
    case 1:
    case 2:
      s.run.kind = RunKind::persistent;
      s.run.lanes = cell.way.run + 1;
      break;
    default:
      s.run.kind = RunKind::graph;
      s.run.check_interval = cell.way.run == 3 ? 1 : 3;
  }
  s.run.disturb = disturb;
  s.limits = {120, 120};
  return s;
}

double entry(std::int64_t row, std::int64_t factor) {  // in (-1, 1], by global row
  return static_cast<double>((row * factor + 331) % 1009) / 504.5 - 1.0;
}

}  // namespace

std::string name(Cell const& c) {
  static constexpr std::array<char const*, 4> problems = {"elasticity", "poisson7", "circuit",
                                                          "poisson7-by-2"};
  static constexpr std::array<char const*, 5> runs = {"host", "persistent-2", "persistent-3", "graph-1",
                                                      "graph-3"};
  static constexpr std::array<char const*, 3> routes = {"direct", "two_step", "three_step"};
  static constexpr std::array<char const*, 6> formats = {"csr16", "csr32",  "bsr16",
                                                         "bsr32", "sell16", "sell32"};
  auto const at = [](auto const& names, int i) { return std::string(names[static_cast<std::size_t>(i)]); };
  return at(problems, c.plan.problem) + (c.plan.partition == 0 ? " contiguous" : " metis") + " slices " +
         std::to_string(slice_numbers[static_cast<std::size_t>(c.plan.slices)]) + " " +
         hostless::name(static_cast<Method>(c.plan.method)) + " " +
         hostless::name(static_cast<PreconditionerKind>(c.plan.preconditioner)) + " | " +
         at(runs, c.way.run) + " " + at(routes, c.way.route) + " " + at(formats, c.way.format);
}

std::vector<Cell> pairwise_cover() {
  std::set<Pair> open;
  for (std::size_t a = 0; a < axes; ++a)
    for (std::size_t b = a + 1; b < axes; ++b)
      for (int i = 0; i < sizes[a]; ++i)
        for (int j = 0; j < sizes[b]; ++j) open.insert({a, b, i, j});
  std::vector<Cell> cells;
  while (!open.empty()) {
    Point point;
    point.fill(-1);
    Pair const seed = *open.begin();
    point[seed.a] = seed.i;
    point[seed.b] = seed.j;
    for (std::size_t k = 0; k < axes; ++k) {
      if (point[k] >= 0) continue;
      int best = -1, value = 0;
      for (int step = 0; step < sizes[k]; ++step) {  // ties go to another value every time
        int const v = (step + static_cast<int>(cells.size())) % sizes[k];
        int const count = closes(open, point, k, v);
        if (count > best) {
          best = count;
          value = v;
        }
      }
      point[k] = value;
    }
    for (std::size_t a = 0; a < axes; ++a)
      for (std::size_t b = a + 1; b < axes; ++b) open.erase({a, b, point[a], point[b]});
    cells.push_back(cell_of(point));
  }
  return cells;
}

std::vector<Cell> full_product() {
  std::vector<Cell> cells;
  Point point{};
  for (bool more = true; more;) {
    cells.push_back(cell_of(point));
    std::size_t k = axes;  // the last axis runs fastest, so that cells of one plan follow each other
    for (more = false; k-- > 0 && !more;) {
      more = ++point[k] < sizes[k];
      if (!more) point[k] = 0;
    }
  }
  return cells;
}

std::vector<Cell> chosen_cells() {
  return std::getenv("HOSTLESS_FULL_PRODUCT") != nullptr ? full_product() : pairwise_cover();
}

Bytes Outcome::bytes() const {
  std::vector<double> all{static_cast<double>(status), static_cast<double>(iterations),
                          static_cast<double>(restarts), true_residual, static_cast<double>(history.size())};
  all.insert(all.end(), history.begin(), history.end());
  all.insert(all.end(), x.begin(), x.end());
  Bytes raw(all.size() * sizeof(double));
  std::memcpy(raw.data(), all.data(), raw.size());
  return raw;
}

Outcome Outcome::from(Bytes const& raw) {
  std::vector<double> all(raw.size() / sizeof(double));
  std::memcpy(all.data(), raw.data(), raw.size());
  Outcome o;
  o.status = static_cast<Status>(static_cast<int>(all[0]));
  o.iterations = static_cast<std::int64_t>(all[1]);
  o.restarts = static_cast<std::int64_t>(all[2]);
  o.true_residual = all[3];
  auto const end = all.begin() + 5 + static_cast<std::ptrdiff_t>(all[4]);
  o.history.assign(all.begin() + 5, end);
  o.x.assign(end, all.end());
  return o;
}

std::string Outcome::difference(Outcome const& other) const {
  if (status != other.status)
    return std::string("status ") + hostless::name(status) + ", not " + hostless::name(other.status);
  if (iterations != other.iterations)
    return std::to_string(iterations) + " iterations, not " + std::to_string(other.iterations);
  if (restarts != other.restarts)
    return std::to_string(restarts) + " restarts, not " + std::to_string(other.restarts);
  auto const first = [](std::vector<double> const& a, std::vector<double> const& b) {
    std::size_t i = 0;
    while (i < a.size() && i < b.size() && std::memcmp(&a[i], &b[i], sizeof(double)) == 0) ++i;
    return i == a.size() && i == b.size() ? -1 : static_cast<std::int64_t>(i);
  };
  if (auto const i = first(history, other.history); i >= 0)
    return "residual " + std::to_string(i) + " differs";
  if (auto const i = first(x, other.x); i >= 0) return "x[" + std::to_string(i) + "] differs";
  if (std::memcmp(&true_residual, &other.true_residual, sizeof(double)) != 0)
    return "the true residual differs";
  return {};
}

Outcome solve(Transport& transport, Cell const& cell, std::function<void(int)> const& disturb) {
  Group& group = transport.group();
  ProblemChoice const problem = problem_of(cell.plan.problem);
  auto const source = make_problem(problem.options, group.size(), group.rank());
  int const block = problem.block == 0 ? 3 : problem.block;
  Matrix const matrix = Matrix::from_source(transport, *source, matrix_options(cell, block));
  Solver solver(matrix, solve_options(cell, disturb));
  std::vector<double> b, x;
  for (auto row = matrix.first_row(); row < matrix.last_row(); ++row) {
    b.push_back(entry(row, 7919));
    x.push_back(0.125 * entry(row, 104729));
  }
  Result const result = solver.solve(b, x);
  Outcome outcome{result.status,        result.iterations,       result.restarts,
                  result.true_residual, result.residual_history, {}};
  Bytes mine(x.size() * sizeof(double));
  if (!mine.empty()) std::memcpy(mine.data(), x.data(), mine.size());
  for (Bytes const& part : group.all_gather_bytes(mine)) {
    auto const before = outcome.x.size();
    outcome.x.resize(before + part.size() / sizeof(double));
    if (!part.empty()) std::memcpy(outcome.x.data() + before, part.data(), part.size());
  }
  return outcome;
}

Outcome reference(Plan const& plan, int ranks) {
  Outcome outcome;
  run_with_threads_transport(ranks, [&](Transport& transport) {
    Outcome mine = solve(transport, {plan, {0, 0, 1}});
    if (transport.group().rank() == 0) outcome = std::move(mine);
  });
  return outcome;
}

std::function<void(int)> delays(std::uint64_t seed) {
  auto const calls = std::make_shared<std::atomic<std::uint64_t>>(seed << 32);
  return [calls](int lane) {
    std::uint64_t z =
        calls->fetch_add(1, std::memory_order_relaxed) * 0x9e3779b97f4a7c15ull + static_cast<unsigned>(lane);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z ^= z >> 29;
    if ((z & 7) == 0) std::this_thread::yield();
    if ((z & 63) == 1) std::this_thread::sleep_for(std::chrono::microseconds((z >> 8) % 150));
  };
}

std::vector<std::string> differences(Transport& transport, std::vector<Cell> const& cells, int repetitions) {
  Group& group = transport.group();
  std::vector<std::string> all;
  std::map<Plan, Outcome> references;
  for (std::size_t k = 0; k < cells.size(); ++k) {
    Cell const& cell = cells[k];
    if (references.count(cell.plan) == 0) {
      if (references.size() > 64) references.clear();  // the full product walks plan by plan
      Bytes const mine = group.rank() == 0 ? reference(cell.plan, group.size()).bytes() : Bytes{};
      references[cell.plan] = Outcome::from(group.broadcast(mine, 0));
    }
    int const rounds = k % 8 == 0 ? 1 + repetitions : 1;
    for (int round = 0; round < rounds; ++round) {
      auto const seed =
          1000 * k + 10 * static_cast<std::uint64_t>(round) + static_cast<std::uint64_t>(group.rank());
      Outcome const got = solve(transport, cell, round == 0 ? std::function<void(int)>() : delays(seed));
      std::string const text = got.difference(references[cell.plan]);
      if (!group.any(!text.empty())) continue;
      all.push_back(name(cell) + " on " + std::to_string(group.size()) + " ranks, schedule " +
                    std::to_string(round) + ": " + (text.empty() ? "another rank differs" : text));
    }
  }
  return all;
}

}  // namespace hostless::contract
