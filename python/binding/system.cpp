#include "system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <span>

#include "hostless/base/error.hpp"
#include "hostless/transport/mpi.hpp"
#include "ranks.hpp"
#include "solve/matrix/memory_need.hpp"
#include "transport/agreement.hpp"

namespace hostless::python {
namespace {

// A user's function may think for hours, or stop in a debugger: nobody is lost meanwhile, and a rank that is
// a thread of this process cannot die alone. A day is no time that somebody waits for.
constexpr double patient_s = 86400;

}  // namespace

/// What one rank keeps between calls; touched by its own thread only.
struct System::Rank {
  std::optional<Matrix> matrix;
  std::optional<Solver> solver;
  std::vector<OptionValue> key;    // what the solver was made for; another one is made when it changes
  std::vector<double> one, other;  // this rank's rows, in the caller's order
};

System::System(Arrays const& arrays, Choices const& choices, int ranks)
    : ranks_(ranks), global_rows_(arrays.columns), last_row_(arrays.rows) {
  if (arrays.rows != arrays.columns)
    throw Error(ErrorCode::usage, "the matrix is not square (the method needs A = A'). Pass all its rows.");
  keep(choices);
  MatrixOptions const options = choices.matrix_options();
  rank_.resize(static_cast<std::size_t>(std::max(ranks, 0)));
  team_ = std::make_unique<ThreadTeam>(ranks, [this](Transport& t) { forget(t); });
  make(arrays, options);
}

System::System(GpuRows const& rows, bool same_bits, Choices const& choices, int ranks)
    : ranks_(ranks), global_rows_(rows.rows), last_row_(rows.rows) {
  keep(choices);
  MatrixOptions const options = choices.matrix_options();
  rank_.resize(static_cast<std::size_t>(std::max(ranks, 0)));
  team_ = std::make_unique<ThreadTeam>(ranks, [this](Transport& t) { forget(t); });
  make([&](Transport& transport) { return Matrix::from_gpu_rows(transport, rows, same_bits, options); });
}

void System::keep(Choices const& choices) {
  gpus_ = choices.solve.run.gpus;
  threads_ = choices.solve.run.threads;
  layout_ = layout_settings(choices);
}

System::System(std::int64_t size, Operator apply, nanobind::object callable)
    : global_rows_(size),
      last_row_(size),
      operator_(std::move(apply)),
      callable_(std::move(callable)),
      rank_(1) {
  team_ = std::make_unique<ThreadTeam>(1, [this](Transport& t) { forget(t); });
  team_->run([this](Transport& transport) {
    auto call = [this](double const* x, double* y) {
      // A function that raised has no product: NaN ends what is under way.
      if (team_->ask([&] { operator_(x, y); }, true)) return;
      std::fill_n(y, rows(), std::numeric_limits<double>::quiet_NaN());
    };
    rank_of(transport).matrix.emplace(Matrix::from_function(transport, 0, rows(), call));
  });
}

System::System(std::string const& vendor, int fortran_communicator, bool by_reach) : mpi_(true), rank_(1) {
  MpiVendor const mpi = mpi_vendor_from(vendor);
  team_ = std::make_unique<ThreadTeam>([=] { return open_communicator(mpi, fortran_communicator, by_reach); },
                                       [this](Transport& t) { forget(t); });
}

void System::lay_out(Arrays const& arrays, Choices const& choices) {
  keep(choices);
  global_rows_ = arrays.columns;
  first_row_ = arrays.first_row;
  last_row_ = arrays.first_row + arrays.rows;
  std::optional<MatrixOptions> options;
  std::optional<Error> problem;
  try {
    options = choices.matrix_options();
  } catch (Error const& e) {
    problem = e;
  }
  agree(problem);
  make(arrays, *options);
}

bool System::agree(std::optional<Error> const& problem, std::string const& same, bool flag) {
  if (!mpi_) {
    if (problem) throw Error(*problem);
    return flag;
  }
  bool anybodys = false;
  team_->run(
      [&](Transport& transport) { anybodys = hostless::agree(transport.group(), problem, same, flag); });
  return anybodys;
}

System::~System() {
  if (!team_ || team_->is_here()) return;
  static_cast<void>(team_.release());  // see Crew::is_here
  for (auto& rank : rank_) static_cast<void>(rank.release());
}

System::Rank& System::rank_of(Transport& transport) {
  auto& slot = rank_[mpi_ ? 0 : static_cast<std::size_t>(transport.group().rank())];
  if (!slot) slot = std::make_unique<Rank>();
  return *slot;
}

void System::forget(Transport& transport) {
  rank_[mpi_ ? 0 : static_cast<std::size_t>(transport.group().rank())].reset();
}

void System::make(Arrays const& arrays, MatrixOptions const& options) {
  make([&](Transport& transport) {
    MatrixOptions mine = options;
    mine.format.threads = threads_;
    mine.host_layout = gpus_ == 0;
    Group& group = transport.group();
    auto const share = [&](int rank) { return share_first(arrays.columns, group.size(), rank); };
    std::int64_t const first = mpi_ ? first_row_ : share(group.rank()),
                       last = mpi_ ? last_row_ : share(group.rank() + 1);
    auto const source = rows_of(arrays, first, last);
    constexpr int vectors = 5;  // of cg, the method with the fewest
    auto const entries =
        arrays.offset_at(last - arrays.first_row) - arrays.offset_at(first - arrays.first_row);
    require_memory(group,
                   least_need(static_cast<double>(last - first), static_cast<double>(entries), mine,
                              group.size(), vectors),
                   "a matrix of " + std::to_string(arrays.columns) + " rows");
    return Matrix::from_source(transport, *source, mine);
  });
}

void System::make(std::function<Matrix(Transport&)> const& make_matrix) {
  auto const begin = Clock::now();
  SetupWatch watch;
  auto const job = [&](Transport& transport) {
    Rank& rank = rank_of(transport);
    rank.matrix.emplace(make_matrix(transport));
    auto communication = gather_communication(*rank.matrix);
    Group& group = transport.group();
    if (mpi_ || group.rank() == 0) {
      communication_ = std::move(communication);
      entries_ = rank.matrix->global_entries();
      lost_blocks_ = rank.matrix->lost_blocks();
      ranks_ = group.size();
    }
  };
  team_->run(job, &watch);
  time_input_s_ = std::chrono::duration<double>(Clock::now() - begin).count();
}

SolveOptions System::solve_options(Choices const& choices, Hooks const& hooks, Rank& rank,
                                   Transport& transport) {
  SolveOptions s = choices.solve;
  s.run.kind = choices.run_kind();
  s.run.stop_requested = [this] { return team_->stop(); };
  s.run.stop_reason = [this, number = transport.group().rank()] {
    std::string const why = team_->why_stopped();
    return why.empty() ? fmt::format("the interpreter of rank {} is ending", number)
                       : fmt::format("rank {} raised {}", number, why);
  };
  s.run.function_failed = [this] { return team_->function_failed(); };
  // Arrays of a whole matrix have been compared entry by entry.
  s.symmetry_compared = !mpi_ && !operator_;
  if (hooks.preconditioner) {
    s.preconditioner = PreconditionerKind::function;
    s.preconditioner_function = [this, &rank, &transport](double const* r, double* z) {
      precondition(rank, transport, r, z);
    };
  }
  if (hooks.callback) {
    s.callback_reads_x = true;
    s.callback = [this, &rank, &transport](Progress const& p) {
      return p.iteration > 0 && !show(rank, transport, p.x);
    };
  }
  if (!mpi_ && (hooks.callback || hooks.preconditioner || operator_)) s.limits = {patient_s, patient_s};
  return s;
}

void System::bind(Rank& rank, Choices const& choices, Hooks const& hooks, Transport& transport) {
  std::vector<OptionValue> key = {static_cast<bool>(hooks.callback), static_cast<bool>(hooks.preconditioner)};
  for (Option const& one : all_options())
    if (one.of_solve && one.read != nullptr && one.name != "rtol" && one.name != "atol")
      key.push_back(one.read(choices));
  if (rank.solver && rank.key == key) {
    rank.solver->set_tolerances(choices.solve.rtol, choices.solve.atol);
    rank.solver->set_time_spent(time_spent_s_);
    return;
  }
  rank.solver.reset();  // before another one takes as much memory
  rank.solver.emplace(*rank.matrix, solve_options(choices, hooks, rank, transport));
  rank.solver->set_time_spent(time_spent_s_);
  rank.key = std::move(key);
  if (mpi_ || transport.group().rank() == 0) ++solvers_made_;
}

double* System::mine(std::vector<double>& all, Rank const& rank) const {
  return all.data() + (rank.matrix->first_row() - first_row_);
}

// Puts x together, in the caller's order, and has it shown. False: the solve should end.
bool System::show(Rank& rank, Transport& transport, std::span<double const> x) {
  Matrix const& m = *rank.matrix;
  m.from_local(x, {mine(shown_, rank), static_cast<std::size_t>(m.last_row() - m.first_row())});
  if (!mpi_) transport.group().barrier();
  if (!mpi_ && transport.group().rank() != 0) return true;  // the first rank asks all to stop
  return team_->ask([this] { hooks_->callback(shown_.data()); });
}

void System::precondition(Rank& rank, Transport& transport, double const* r, double* z) {
  Matrix const& m = *rank.matrix;
  auto const count = static_cast<std::size_t>(m.last_row() - m.first_row());
  auto const owned = static_cast<std::size_t>(m.owned());
  m.from_local({r, owned}, {mine(shown_, rank), count});
  if (!mpi_) transport.group().barrier();
  if (mpi_ || transport.group().rank() == 0) {
    bool const good = team_->ask([this] { hooks_->preconditioner(shown_.data(), answered_.data()); }, true);
    // Where it raised, the next sum tells all ranks to end: until then anything finite, or they had another
    // ending.
    if (!good) answered_ = shown_;
  }
  if (!mpi_) transport.group().barrier();
  m.to_local({mine(answered_, rank), count}, {z, owned});
}

Result System::solve(Choices const& choices, Hooks const& hooks, double const* b, double* x, bool single) {
  team_->check_usable();  // before anything of a solve under way is changed
  hooks_ = &hooks;
  auto const all = static_cast<std::size_t>(rows());
  if (hooks.callback || hooks.preconditioner) shown_.resize(all);
  if (hooks.preconditioner) answered_.resize(all);
  Result result;
  team_->run([&](Transport& transport) {
    Rank& rank = rank_of(transport);
    bind(rank, choices, hooks, transport);
    Matrix const& m = *rank.matrix;
    std::int64_t const at = m.first_row() - first_row_;
    auto const count = static_cast<std::size_t>(m.last_row() - m.first_row());
    auto const columns = static_cast<std::size_t>(choices.solve.rhs_columns);
    auto const share = [&](auto* values, std::size_t column) {
      return std::span(values + column * all + at, count);
    };
    Solver& solver = *rank.solver;
    solver.round_answers(single);
    for (std::size_t c = 0; c < columns; ++c) {
      m.to_local(share(b, c), solver.b(static_cast<int>(c)));
      m.to_local(share(x, c), solver.x(static_cast<int>(c)));
    }
    Result mine = solver.solve();
    for (std::size_t c = 0; c < columns && mine.status != Status::peer_lost; ++c)
      m.from_local(solver.x(static_cast<int>(c)), share(x, c));
    if (mpi_ || transport.group().rank() == 0) result = std::move(mine);
  });
  return result;
}

Result System::solve(Choices const& choices, GpuVectors const& vectors) {
  Result result;
  team_->run([&](Transport& transport) {
    Rank& rank = rank_of(transport);
    bind(rank, choices, {}, transport);
    Result mine = rank.solver->solve(vectors);
    if (transport.group().rank() == 0) result = std::move(mine);
  });
  return result;
}

void System::multiply(Choices const& choices, double const* x, double* y) {
  team_->run([&](Transport& transport) {
    Rank& rank = rank_of(transport);
    if (!rank.solver) {
      Choices any = choices;  // who multiplies asks nothing of A
      any.solve.check_symmetry = false;
      bind(rank, any, {}, transport);
    }
    Matrix const& m = *rank.matrix;
    std::int64_t const at = m.first_row() - first_row_;
    auto const count = static_cast<std::size_t>(m.last_row() - m.first_row());
    rank.one.resize(static_cast<std::size_t>(m.owned()));
    rank.other.resize(rank.one.size());
    m.to_local({x + at, count}, rank.one);
    rank.solver->multiply(rank.one, rank.other);
    m.from_local(rank.other, {y + at, count});
  });
}

void System::update_values(Arrays const& arrays) {
  team_->run([&](Transport& transport) {
    Rank& rank = rank_of(transport);
    rank.matrix->update_values(*rows_of(arrays, rank.matrix->first_row(), rank.matrix->last_row()));
  });
}

void System::update_values(GpuRows const& rows, bool same_bits) {
  team_->run([&](Transport& transport) { rank_of(transport).matrix->update_gpu_rows(rows, same_bits); });
}

void System::close(bool leaving) {
  team_->close_unless_running(leaving);
  drop_callable();
}

}  // namespace hostless::python
