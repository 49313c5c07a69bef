#include "system.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <tuple>

#include "hostless/base/error.hpp"
#include "hostless/transport/mpi.hpp"
#include "solve/matrix/memory_need.hpp"

namespace hostless::python {
namespace {

// A user's function may think for hours, or stop in a debugger: nobody is lost meanwhile, and a rank that is
// a thread of this process cannot die alone. A day is no time that somebody waits for.
constexpr double patient_s = 86400;

MpiVendor vendor_from(std::string const& text) {
  for (MpiVendor vendor : {MpiVendor::openmpi, MpiVendor::mpich}) {
    if (text == name(vendor)) return vendor;
  }
  throw Error(ErrorCode::usage, "unknown MPI '" + text + "'. Use openmpi or mpich.");
}

// Names the first rank that was called otherwise than rank 0. Collective; throws the same on every rank.
[[noreturn]] void throw_difference(Group& group, std::string const& mine) {
  Bytes text(mine.size());
  std::memcpy(text.data(), mine.data(), mine.size());
  auto const all = group.all_gather_bytes(text);
  auto const words = [&](std::size_t rank) {
    return std::string(reinterpret_cast<char const*>(all[rank].data()), all[rank].size());
  };
  auto const other = std::find_if(all.begin(), all.end(), [&](Bytes const& b) { return b != all[0]; });
  auto const rank = static_cast<std::size_t>(other - all.begin());
  throw Error(ErrorCode::usage,
              "rank 0 was given " + words(0) + ", and rank " + std::to_string(rank) + " " + words(rank) +
                  " (all ranks of a communicator solve one system). Make the same call on every rank.");
}

}  // namespace

/// What one rank keeps between calls; touched by its own thread only.
struct System::Rank {
  // What a solver was made for; another one is made when it changes.
  using Key =
      std::tuple<Method, PreconditionerKind, RunKind, Reduction, std::int64_t, bool, bool, int, double>;
  std::optional<Matrix> matrix;
  std::optional<Solver> solver;
  Key key;
  std::vector<double> one, other;  // this rank's rows, in the caller's order
};

System::System(Arrays const& arrays, LayoutWords const& layout, std::uint64_t seed, int ranks, int gpus,
               int threads)
    : ranks_(ranks), gpus_(gpus), threads_(threads), global_rows_(arrays.columns), last_row_(arrays.rows) {
  if (arrays.rows != arrays.columns)
    throw Error(ErrorCode::usage, "the matrix is not square (the method needs A = A'). Pass all its rows.");
  MatrixOptions const options = layout.parse(seed, gpus);
  rank_.resize(static_cast<std::size_t>(std::max(ranks, 0)));
  team_ = std::make_unique<ThreadTeam>(ranks, [this](Transport& t) { forget(t); });
  make(arrays, options);
}

System::System(GpuRows const& rows, bool same_bits, LayoutWords const& layout, std::uint64_t seed, int ranks,
               int gpus)
    : ranks_(ranks), gpus_(gpus), global_rows_(rows.rows), last_row_(rows.rows) {
  MatrixOptions const options = layout.parse(seed, gpus);
  rank_.resize(static_cast<std::size_t>(std::max(ranks, 0)));
  team_ = std::make_unique<ThreadTeam>(ranks, [this](Transport& t) { forget(t); });
  make([&](Transport& transport) { return Matrix::from_gpu_rows(transport, rows, same_bits, options); });
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
      if (team_->ask([&] { operator_(x, y); })) return;
      std::fill_n(y, rows(), std::numeric_limits<double>::quiet_NaN());
    };
    rank_of(transport).matrix.emplace(Matrix::from_function(transport, 0, rows(), call));
  });
}

System::System(std::string const& vendor, int fortran_communicator, int threads)
    : threads_(threads), mpi_(true), rank_(1) {
  MpiVendor const mpi = vendor_from(vendor);
  team_ = std::make_unique<ThreadTeam>([=] { return open_mpi_transport(mpi, fortran_communicator); },
                                       [this](Transport& t) { forget(t); });
}

void System::lay_out(Arrays const& arrays, LayoutWords const& layout, std::uint64_t seed) {
  global_rows_ = arrays.columns;
  first_row_ = arrays.first_row;
  last_row_ = arrays.first_row + arrays.rows;
  std::optional<MatrixOptions> options;
  std::optional<Error> problem;
  try {
    options = layout.parse(seed);
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
  struct Word {
    std::uint64_t same = 0;
    std::int32_t failed = 0, flag = 0;
  };
  bool anybodys = false;
  team_->run([&](Transport& transport) {
    Group& group = transport.group();
    auto const words = group.all_gather(Word{std::hash<std::string>{}(same), problem ? 1 : 0, flag ? 1 : 0});
    auto const any = [&](auto const& of) { return std::any_of(words.begin(), words.end(), of); };
    anybodys = any([](Word const& w) { return w.flag != 0; });
    if (any([](Word const& w) { return w.failed != 0; }))
      group.together([&] {
        if (problem) throw Error(*problem);
      });
    if (any([&](Word const& w) { return w.same != words[0].same; })) throw_difference(group, same);
  });
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
      ranks_ = group.size();
    }
  };
  team_->run(job, &watch);
  time_input_s_ = std::chrono::duration<double>(Clock::now() - begin).count();
}

SolveOptions System::solve_options(SolveWords const& words, Rank& rank, Transport& transport) {
  SolveOptions s;
  s.method = method_from(words.method.c_str());
  s.run.kind = run_kind_from(words.run.c_str());
  s.run.gpus = gpus_;
  s.run.threads = words.threads;
  s.run.stop_requested = [this] { return team_->stop(); };
  s.reduction = reduction_from(words.reduction.c_str());
  s.rtol = words.rtol;
  s.atol = words.atol;
  s.max_iterations = words.max_iterations;
  s.divergence_limit = words.divergence_limit;
  // Arrays of a whole matrix have been compared entry by entry.
  s.symmetry_tolerance = words.symmetry_tolerance;
  s.check_symmetry = mpi_ || static_cast<bool>(operator_);
  s.preconditioner = preconditioner_from(words.preconditioner.c_str());
  if (words.has_function) {
    s.preconditioner = PreconditionerKind::function;
    s.preconditioner_function = [this, &rank, &transport](double const* r, double* z) {
      precondition(rank, transport, r, z);
    };
  }
  if (words.has_callback) {
    s.callback_reads_x = true;
    s.callback = [this, &rank, &transport](Progress const& p) {
      return p.iteration > 0 && !show(rank, transport, p.x);
    };
  }
  if (!mpi_ && (words.has_callback || words.has_function || operator_)) s.limits = {patient_s, patient_s};
  return s;
}

void System::bind(Rank& rank, SolveWords const& words, Transport& transport) {
  SolveOptions options;
  transport.group().together([&] { options = solve_options(words, rank, transport); });
  Rank::Key const key{options.method,     options.preconditioner, options.run.kind,
                      options.reduction,  options.max_iterations, words.has_callback,
                      words.has_function, words.threads,          words.divergence_limit};
  if (rank.solver && rank.key == key) return rank.solver->set_tolerances(words.rtol, words.atol);
  rank.solver.reset();  // before another one takes as much memory
  rank.solver.emplace(*rank.matrix, std::move(options));
  rank.key = key;
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
    bool const good = team_->ask([this] { hooks_->preconditioner(shown_.data(), answered_.data()); });
    if (!good) std::fill(answered_.begin(), answered_.end(), std::numeric_limits<double>::quiet_NaN());
  }
  if (!mpi_) transport.group().barrier();
  m.to_local({mine(answered_, rank), count}, {z, owned});
}

Result System::solve(SolveWords const& words, Hooks const& hooks, double const* b, double* x) {
  team_->check_usable();  // before anything of a solve under way is changed
  hooks_ = &hooks;
  auto const all = static_cast<std::size_t>(rows());
  if (words.has_callback || words.has_function) shown_.resize(all);
  if (words.has_function) answered_.resize(all);
  Result result;
  team_->run([&](Transport& transport) {
    Rank& rank = rank_of(transport);
    bind(rank, words, transport);
    Matrix const& m = *rank.matrix;
    std::int64_t const at = m.first_row() - first_row_;
    auto const count = static_cast<std::size_t>(m.last_row() - m.first_row());
    Result mine = rank.solver->solve({b + at, count}, {x + at, count});
    if (mpi_ || transport.group().rank() == 0) result = std::move(mine);
  });
  return result;
}

Result System::solve(SolveWords const& words, GpuVectors const& vectors) {
  Result result;
  team_->run([&](Transport& transport) {
    Rank& rank = rank_of(transport);
    bind(rank, words, transport);
    Result mine = rank.solver->solve(vectors);
    if (transport.group().rank() == 0) result = std::move(mine);
  });
  return result;
}

void System::multiply(double symmetry_tolerance, double const* x, double* y) {
  team_->run([&](Transport& transport) {
    Rank& rank = rank_of(transport);
    if (!rank.solver) {
      SolveWords words;
      words.symmetry_tolerance = symmetry_tolerance;
      if (gpus_ > 0) words.run = "auto";
      bind(rank, words, transport);
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

void System::close() {
  team_->close_unless_running();
  drop_callable();
}

}  // namespace hostless::python
