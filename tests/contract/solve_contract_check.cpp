#include "solve_contract_check.hpp"

#include <cstring>
#include <map>
#include <memory>

namespace hostless::contract {
namespace {

double entry(std::int64_t row, std::int64_t factor) {  // in (-1, 1], by global row
  return static_cast<double>((row * factor + 331) % 1009) / 504.5 - 1.0;
}

int threads_of(Cell const& cell) { return solve_options(cell, {}).run.threads; }

class Checker {
 public:
  Checker(Transport& transport, int repetitions) : transport_(transport), repetitions_(repetitions) {}

  void check(Cell const& cell, std::uint64_t number) {
    if (cell.matrix() != of_) {
      matrix_ = std::make_unique<Matrix>(make_matrix(transport_, cell.plan, matrix_options(cell)));
      of_ = cell.matrix();
    }
    Group& group = transport_.group();
    Outcome const expected = share_of(reference_of(cell.plan), *matrix_);
    Schedule schedule(group.rank(), group.size(), threads_of(cell));
    Solver solver(*matrix_, solve_options(cell, [&](int thread) { schedule.arrive(thread); }));
    std::string text;
    for (int round = 0; round <= repetitions_; ++round) {
      schedule.choose(round == 0 ? 0 : 1000 * (number + 1) + static_cast<std::uint64_t>(round));
      std::string const found = solve(*matrix_, solver).difference(expected);
      if (text.empty() && !found.empty()) text = "schedule " + std::to_string(round) + ": " + found;
    }
    ++findings.cells;
    findings.solves += 1 + repetitions_;
    findings.converged += expected.status == Status::converged ? 1 : 0;
    findings.lateness.add(schedule.lateness(group));
    if (!group.any(!text.empty())) return;
    Bytes mine(text.size());
    if (!text.empty()) std::memcpy(mine.data(), text.data(), text.size());
    std::string line = name(cell) + " on " + std::to_string(group.size()) + " ranks:";
    int rank = 0;
    for (Bytes const& part : group.all_gather_bytes(mine)) {
      if (!part.empty())
        line += " rank " + std::to_string(rank) + ", " +
                std::string(reinterpret_cast<char const*>(part.data()), part.size()) + ";";
      ++rank;
    }
    findings.different.push_back(line);
  }

  Findings findings;

 private:
  Outcome const& reference_of(Plan const& plan) {
    auto const found = references_.find(plan);
    if (found != references_.end()) return found->second;
    if (references_.size() > 64) references_.clear();
    Group& group = transport_.group();
    Bytes const mine = group.rank() == 0 ? reference(plan, group.size()).bytes() : Bytes{};
    return references_[plan] = Outcome::from(group.broadcast(mine, 0));
  }

  Transport& transport_;
  int repetitions_;
  std::unique_ptr<Matrix> matrix_;
  std::vector<int> of_;
  std::map<Plan, Outcome> references_;
};

}  // namespace

Outcome share_of(Outcome const& whole, Matrix const& matrix) {
  Outcome mine = whole;
  mine.x.clear();
  for (std::int64_t i = 0; i < matrix.owned(); ++i)
    mine.x.push_back(whole.x[static_cast<std::size_t>(matrix.global_row(i))]);
  return mine;
}

Matrix make_matrix(Transport& transport, Plan const& plan, MatrixOptions const& options) {
  Group& group = transport.group();
  auto const source = make_problem(problem_of(plan.problem).options, group.size(), group.rank());
  return Matrix::from_source(transport, *source, options);
}

Outcome solve(Matrix const& matrix, Solver& solver) {
  for (std::int64_t i = 0; i < matrix.owned(); ++i) {
    auto const at = static_cast<std::size_t>(i);
    solver.b()[at] = entry(matrix.global_row(i), 7919);
    solver.x()[at] = 0.125 * entry(matrix.global_row(i), 104729);
  }
  Result const result = solver.solve();
  return Outcome::of(result, {solver.x().begin(), solver.x().end()});
}

Outcome reference(Plan const& plan, int ranks) {
  Outcome outcome;
  std::vector<double> x(
      static_cast<std::size_t>(make_problem(problem_of(plan.problem).options, 1, 0)->global_rows()));
  run_with_threads_transport(ranks, [&](Transport& transport) {
    Cell const cell{plan, {0, 0, 1}};
    Matrix const matrix = make_matrix(transport, plan, matrix_options(cell));
    Solver solver(matrix, solve_options(cell, {}));
    Outcome mine = solve(matrix, solver);
    for (std::int64_t i = 0; i < matrix.owned(); ++i)  // every rank has rows of its own
      x[static_cast<std::size_t>(matrix.global_row(i))] = mine.x[static_cast<std::size_t>(i)];
    if (transport.group().rank() == 0) outcome = std::move(mine);
  });
  outcome.x = std::move(x);
  return outcome;
}

std::string Findings::summary() const {
  auto const text = [](auto number) { return std::to_string(number); };
  std::string line = text(cells) + " cells, " + text(solves) + " solves, " + text(different.size()) +
                     " differ; " + text(converged) + " cells converge, the others end at the iteration limit";
  if (lateness.told > 0)
    line += "; of " + text(lateness.told) + " delayed arrivals " + text(lateness.last) +
            " were the last of their barrier (by chance " +
            text(static_cast<std::int64_t>(lateness.by_chance)) + ")";
  return line;
}

Findings check(Transport& transport, std::vector<Cell> const& cells, int repetitions,
               std::function<void(std::string const&)> const& tell) {
  Checker checker(transport, repetitions);
  for (std::size_t k = 0; k < cells.size(); ++k) {
    checker.check(cells[k], k);
    if (tell && transport.group().rank() == 0 && (k + 1) % 1080 == 0)
      tell(std::to_string(k + 1) + " of " + std::to_string(cells.size()) + " cells, " +
           std::to_string(checker.findings.different.size()) + " differ");
  }
  return checker.findings;
}

}  // namespace hostless::contract
