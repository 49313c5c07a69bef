// Ranks that are processes fall silent or die at every phase of every method: the others end with `peer_lost`
// within the deadline and a second. The same program is the ranks (host_ranks.hpp), with the words
//   <board> silent
//   <board> unwritten
//   <board> forked
//   <board> dead <method> <barrier> <columns>
//   <board> checkpoint|resume <file> <rank> <bytes>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "host_ranks.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/exchange/exchange.hpp"
#include "hostless/exchange/patterns.hpp"
#include "hostless/plan/routes.hpp"
#include "hostless/transport/mpi.hpp"
#include "sample.hpp"
#include "solve/gpu_solver/gpu_trace.hpp"
#include "systems.hpp"

namespace hostless::test {
namespace {

constexpr double silence_s = 0.02;  // deadline where a rank is silent
constexpr double death_s =
    600;  // deadline where one is dead: not it ends the others, but that they see its end
constexpr double patience_s = 120;  // with machines that are busy: less than any deadline that is not meant

// Every verb of the texts: the measure of b, true residual, beginning and the first iterations.
constexpr int first_points = 8;

// What the ranks and the test tell each other, in a file that all map.
struct Board {
  std::atomic<Clock::rep> died_at{0};
  std::atomic<int> kept{0};            // ranks that ended as they should
  std::atomic<pid_t> process[8] = {};  // by rank
  double x[6] = {};
  std::atomic<int> ended[2000] = {};  // by case: ranks whose solve is over
};

class BoardFile {
 public:
  explicit BoardFile(std::string const& path, bool create = false) {
    int const file = open(path.c_str(), O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_TRUNC : 0), 0600);
    if (file < 0 || (create && ftruncate(file, sizeof(Board)) != 0)) throw std::runtime_error("no board");
    void* const at = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at == MAP_FAILED) throw std::runtime_error("no board");
    board_ = create ? new (at) Board : static_cast<Board*>(at);
  }
  ~BoardFile() { munmap(board_, sizeof(Board)); }
  BoardFile(BoardFile const&) = delete;
  BoardFile& operator=(BoardFile const&) = delete;
  Board& operator*() const { return *board_; }
  Board* operator->() const { return board_; }

 private:
  Board* board_;
};

// ---- what a rank does
// ------------------------------------------------------------------------------------------

enum class Point { barrier, callback, function, matrix };  // where a rank can be made to stop
char const* name(Point point) {
  return std::array{"barrier", "callback", "preconditioner", "operator"}[static_cast<std::size_t>(point)];
}

struct Fault {
  Method method;
  RunChoice run;
  Point point;
  int thread;
  int columns = 1;
};

std::vector<Fault> faults() {
  RunChoice const host{"host", RunKind::host, 1, 1}, graph{"graph", RunKind::graph, 1, 2},
      two{"two", RunKind::persistent, 2, 1};
  std::vector<Fault> all;
  for (Method method : all_methods()) {
    all.push_back({method, host, Point::barrier, 0});
    all.push_back({method, graph, Point::barrier, 0});
    all.push_back({method, two, Point::barrier, 1});
    all.push_back({method, host, Point::callback, 0});
    all.push_back({method, two, Point::matrix, 0});
  }
  all.push_back({Method::cg, two, Point::function, 0});
  all.push_back({Method::cg, host, Point::barrier, 0, 3});
  all.push_back({Method::cg, two, Point::callback, 0, 2});
  return all;
}

struct Seen {
  Status status;
  double seconds;
  int passed;  // how often this rank came by the point
  bool tells_of_columns;
};

// Solves on this transport; the last rank calls `stop` when it comes by the point for the time number `at`.
Seen solve(Transport& transport, Fault const& fault, int at, double deadline_s,
           std::function<void()> const& stop) {
  int const ranks = transport.group().size(), rank = transport.group().rank();
  std::atomic<int> passed{0};
  auto const pass = [&] {
    if (passed.fetch_add(1) == at && rank == ranks - 1) stop();
  };
  System const a = System::path(6);
  Share const mine = share_of(a, ranks, rank, false);
  auto const rows = static_cast<std::size_t>(mine.last - mine.first);
  MatrixOptions matrix_options;
  matrix_options.route = Route::three_step;
  matrix_options.ranks_per_node = 2;
  OperatorFunction const diagonal = [&](double const* x, double* y) {
    for (std::size_t i = 0; i < rows; ++i) y[i] = static_cast<double>(mine.first + 1) * x[i];
    pass();
  };
  bool const function = fault.point == Point::matrix;
  Matrix const matrix =
      function
          ? Matrix::from_function(transport, mine.first, mine.last - mine.first, diagonal)
          : Matrix::from_rows(transport, mine.first, mine.offset, mine.column, mine.value, matrix_options);
  SolveOptions options;
  options.method = fault.method;
  options.rtol = 1e-9;
  options.limits = {deadline_s, deadline_s};
  options.check_symmetry = false;
  options.rhs_columns = fault.columns;
  use(options, fault.run);
  if (fault.point == Point::barrier) {
    options.run.disturb = [&](int thread) {
      if (thread == fault.thread) pass();
    };
  }
  if (fault.point == Point::callback) {
    options.callback = [&](Progress const&) {
      pass();
      return false;
    };
  }
  if (fault.point == Point::function) {
    options.preconditioner = PreconditionerKind::function;
    options.preconditioner_function = [&](double const* r, double* z) {
      std::copy_n(r, rows, z);
      pass();
    };
  }
  Solver solver(matrix, options);
  std::vector<double> const b{1, -2, 3, 4, -5, 7};
  std::vector<double> mine_of_b;
  for (std::size_t k = 0; k < rows * static_cast<std::size_t>(fault.columns); ++k)
    mine_of_b.push_back(b[(static_cast<std::size_t>(mine.first) + k % rows + k / rows) % b.size()]);
  std::vector<double> x(mine_of_b.size(), 0.0);
  auto const begin = Clock::now();
  Result const result = solver.solve(mine_of_b, x);
  double const seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  auto const told = static_cast<int>(result.columns.size());
  bool whole = told == (fault.columns == 1 ? 0 : fault.columns);
  for (Result const& one : result.columns) whole = whole && one.status != Status::running;
  return {result.status, seconds, passed.load(), whole};
}

// The last rank is silent until all others have given up. What was not kept, here.
std::string be_silent(Transport& transport, std::atomic<int>& ended, Fault const& fault, int at) {
  int const others = transport.group().size() - 1;
  Clock::time_point awake;
  Seen const seen = solve(transport, fault, at, silence_s, [&] {
    wait_for([&] { return ended.load() == others; }, [] { return false; }, Deadline::after(2 * patience_s));
    awake = Clock::now();
  });
  bool const slept = awake != Clock::time_point{};
  double const seconds = slept ? std::chrono::duration<double>(Clock::now() - awake).count() : seen.seconds;
  if (transport.group().rank() < others) ++ended;
  std::string problem;
  if (seen.status != Status::peer_lost) problem = std::string("ended with ") + name(seen.status);
  if (!seen.tells_of_columns) problem += " does not tell of each column";
  if (seconds > silence_s + patience_s) problem += " took " + std::to_string(seconds) + " s";
  return problem;
}

// All faults, one after the other, over the same transport: what was bound is lost, the group is not.
std::string be_silent_everywhere(Transport& transport, Board& board) {
  Group& group = transport.group();
  std::size_t number = 0;
  for (Fault const& fault : faults()) {
    std::string const what = std::string(name(fault.method)) + " " + fault.run.name + " " + name(fault.point);
    Seen const whole = solve(transport, fault, -1, patience_s, [] {});
    if (whole.status != Status::converged) return what + " ended with " + name(whole.status);
    // Silent before the last sum, a rank may find it complete when it awakes, and end as the sum says: after
    // that the ranks are out of step. fault_threads looks there. Operators may lie behind the sums that they
    // follow.
    int const times = group.max(whole.passed) - (fault.point == Point::matrix ? 3 : 1);
    for (int at = 0; at < times; ++at, ++number) {
      if (!is_tried(number, 4)) continue;
      std::string const problem = be_silent(transport, board.ended[number], fault, at);
      if (group.any(!problem.empty()))
        return what + " number " + std::to_string(at) + ": " + (problem.empty() ? "another rank" : problem);
    }
    if (group.rank() == 0)
      std::printf("kept %s: silent at %s%d places;\n", what.c_str(), is_sample() ? "some of " : "", times);
  }
  return {};
}

void die(Transport& transport, Board& board, Fault const& fault, int at) {
  Seen const seen = solve(transport, fault, at, death_s, [&] {
    board.died_at = Clock::now().time_since_epoch().count();
    std::raise(SIGKILL);
  });
  if (seen.status == Status::peer_lost && seen.tells_of_columns) ++board.kept;
}

// Solves with a checkpoint after every iteration, or goes on from the last one. From iteration 3 on no file
// of rank `victim` may grow beyond `bytes`: it dies by SIGXFSZ in the middle of writing its part.
void checkpoint(Transport& transport, Board& board, std::string const& file, int victim, rlim_t bytes,
                bool resume) {
  int const ranks = transport.group().size(), rank = transport.group().rank();
  System const a = System::path(6);
  Share const mine = share_of(a, ranks, rank, false);
  Matrix const matrix = Matrix::from_rows(transport, mine.first, mine.offset, mine.column, mine.value);
  SolveOptions options;
  options.limits = {patience_s, patience_s};
  (resume ? options.resume_file : options.checkpoint_file) = file;
  options.checkpoint_every = resume ? 0 : 1;
  options.callback = [&](Progress const& progress) {
    rlimit const limit{bytes, bytes}, no_core{0, 0};
    if (progress.iteration != 3 || rank != victim) return false;
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_FSIZE, &limit);
    return false;
  };
  Solver solver(matrix, options);
  std::vector<double> const b{1, -2, 3, 4, -5, 7};
  std::span<double> const x{board.x + mine.first, static_cast<std::size_t>(mine.last - mine.first)};
  std::fill(x.begin(), x.end(), 0.0);
  Status const status = solver.solve({b.data() + mine.first, x.size()}, x).status;
  if (status == (victim < 0 ? Status::converged : Status::peer_lost)) ++board.kept;
}

// A profile that nobody can write: every rank hears of it, and none has left.
void fail_to_write(Transport& transport, Board& board) {
  try {
    gpu::write_trace(transport.group(), "/dev/full/trace.json", {}, true);
  } catch (Error const& e) {
    if (e.code() == ErrorCode::environment && std::string(e.what()).find("/dev/full") == 0) ++board.kept;
  }
  transport.group().barrier();
}

// Two ranks exchange; the last one has a child that ends in order, with all that its parent has made, and is
// killed itself afterwards. Whoever is left hears of it at once.
void fork_and_die(Transport& transport, Board& board) {
  constexpr double limit_s = 600;
  Group& group = transport.group();
  int const last = group.size() - 1;
  auto const me = static_cast<std::int64_t>(group.rank());
  auto const patterns = patterns_of_ghosts(group, std::vector{me},
                                           std::vector{me == last ? std::int64_t{0} : std::int64_t{last}});
  ExchangePlan const plan = make_plan(Route::direct, patterns, NodeMap::blocks(group.size(), group.size()),
                                      group.rank(), {ReuseGuarantee::answer, Space::host, true});
  double owned = 1, ghost = 0;
  auto exchange =
      std::make_unique<Exchange>(transport, plan, std::vector{Field::apart(&owned, &ghost, sizeof owned)},
                                 ExchangeOptions{{limit_s, limit_s}, {}, {}});
  exchange->start();
  if (!exchange->wait()) return;
  group.barrier();
  if (group.rank() == last) {
    if (pid_t const child = fork(); child == 0) {
      exchange->leave();
      exchange.reset();
      _exit(0);
    } else {
      int status = -1;
      waitpid(child, &status, 0);  // bounded: it does nothing else
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) ++board.kept;
    }
    group.barrier();
    exchange->start();
    if (!exchange->wait()) return;  // its child has left, and it has not
    ++board.kept;
    group.barrier();
    board.died_at = Clock::now().time_since_epoch().count();
    kill(getpid(), SIGKILL);
  }
  group.barrier();
  exchange->start();
  if (!exchange->wait()) return;
  ++board.kept;
  group.barrier();
  exchange->start();
  if (exchange->wait()) return;
  if (Clock::now().time_since_epoch().count() - board.died_at <
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_s / 3)).count())
    ++board.kept;
}

int as_rank(HostTransport const& opened, std::vector<std::string> const& words) {
  try {
    BoardFile const board(words.at(0));
    auto const transport = test::open_with_all(opened);
    std::string const wanted = words.at(1);
    board->process[transport->group().rank()] = getpid();
    transport->group().barrier();
    std::string problem;
    if (wanted == "dead") {
      Fault const one{method_from(words.at(2).c_str()),
                      {"host", RunKind::host, 1, 1},
                      Point::barrier,
                      0,
                      std::stoi(words.at(4))};
      die(*transport, *board, one, std::stoi(words.at(3)));
    } else if (wanted == "unwritten") {
      fail_to_write(*transport, *board);
      return 0;
    } else if (wanted == "forked") {
      fork_and_die(*transport, *board);
    } else if (wanted == "silent") {
      problem = be_silent_everywhere(*transport, *board);
      if (problem.empty()) return 0;
    } else {
      checkpoint(*transport, *board, words.at(2), std::stoi(words.at(3)),
                 static_cast<rlim_t>(std::stoll(words.at(4))), wanted == "resume");
    }
    if (!problem.empty()) std::printf("%s\n", problem.c_str());
  } catch (std::exception const& e) {
    std::printf("%s\n", e.what());
  }
  leave_process(4);
}

// ---- the test
// ------------------------------------------------------------------------------------------

class Faults : public testing::TestWithParam<Ranks> {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "hostless-board-" + std::to_string(getpid());
    need(transport());
  }
  void TearDown() override { unlink(path_.c_str()); }
  static HostTransport const& transport() { return tested_transport(std::get<0>(GetParam())); }
  static bool survives() { return transport().capabilities && transport().capabilities->survives_peer_loss; }
  static int ranks() { return std::get<1>(GetParam()); }

  // The exit code.
  int run(std::vector<std::string> words) const {
    words.insert(words.begin(), path_);
    return start_again(transport(), ranks(), words);
  }
  std::string path_;
};

std::vector<Ranks> ranks_of_all() {
  std::vector<Ranks> all;
  for (std::string const& one : names_with_processes())
    all.emplace_back(one, tested_transport(one).library_of_others ? 2 : 3);
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Faults, testing::ValuesIn(ranks_of_all()),
                         [](auto const& one) { return name_of(one.param); });

TEST_P(Faults, SilentAtEveryPointEndInTime) {
  BoardFile const board(path_, true);
  EXPECT_EQ(run({"silent"}), 0) << "the lines above say what was not kept";
}

TEST_P(Faults, AProfileThatCannotBeWrittenIsToldOnAllOfThem) {
  BoardFile const board(path_, true);
  EXPECT_EQ(run({"unwritten"}), 0);
  EXPECT_EQ(board->kept, ranks());
}

double seconds_since(Clock::rep then) {
  return std::chrono::duration<double>(Clock::now() - Clock::time_point(Clock::duration(then))).count();
}

// Seconds from the death of the last rank until no other rank is there any more; negative: none died.
double seconds_of_dying(Board const& board, int ranks) {
  auto const gone = [&](int rank) {  // ended, whether or not its parent has noticed
    std::string const folder = "/proc/" + std::to_string(board.process[rank]);
    std::ifstream about(folder + "/status");
    std::string line;
    while (std::getline(about, line))
      if (line.find("State:") == 0) return line.find('Z') != line.npos;
    return true;
  };
  auto const waited = wait_for(
      [&] {
        bool all = board.died_at != 0;
        for (int r = 0; r + 1 < ranks && all; ++r) all = gone(r);
        return all;
      },
      [] { return false; }, Deadline::after(2 * patience_s));
  return waited == Waited::done ? seconds_since(board.died_at) : -1;
}

// Under an MPI it is often mpirun that ends the others, before they can say anything; that it takes a second
// more to end itself is its own.
TEST_P(Faults, DeadAtEveryPointEndInTime) {
  auto const die = [&](Method method, int at, int columns) {
    BoardFile const board(path_, true);
    double seconds = -1;
    std::thread watch([&] { seconds = seconds_of_dying(*board, ranks()); });
    int const code = run({"dead", name(method), std::to_string(at), std::to_string(columns)});
    watch.join();
    std::string const what = std::string(name(method)) + ", barrier " + std::to_string(at) + ", columns " +
                             std::to_string(columns);
    EXPECT_GE(seconds, 0) << what;
    EXPECT_LT(seconds, patience_s) << what;
    EXPECT_NE(code, 0) << what;
    if (!survives()) return;
    EXPECT_EQ(code, 4) << what;
    EXPECT_EQ(board->kept, ranks() - 1) << what;
  };
  // An mpirun takes a second to start and to end: there each point once, of one method or another.
  int const stride = survives() ? 1 : static_cast<int>(all_methods().size());
  int first = 0;
  for (Method method : all_methods())
    for (int at = first++ % stride; at < first_points; at += stride) die(method, at, 1);
  for (int at = first % stride; at < first_points; at += stride) die(Method::cg, at, 3);
}

TEST(ForkedChild, OfARankIsNoRank) {
  std::string const path = testing::TempDir() + "hostless-forked-" + std::to_string(getpid());
  BoardFile const board(path, true);
  EXPECT_EQ(start_again(tested_transport("processes"), 2, {path, "forked"}), 4);
  unlink(path.c_str());
  EXPECT_EQ(board->kept, 4) << "the child ended; both went on without it; the end of the rank was heard";
}

TEST(Checkpoint, OfBeforeIsWholeWhenARankDiesWhileWriting) {
  std::string const path = testing::TempDir() + "hostless-dying-" + std::to_string(getpid());
  std::string const file = path + ".checkpoint";
  constexpr int ranks = 3;
  auto const run = [&](char const* what, int victim, std::uintmax_t bytes) {
    return start_again(tested_transport("processes"), ranks,
                       {path, what, file, std::to_string(victim), std::to_string(bytes)});
  };
  std::vector<double> whole;
  {
    BoardFile const board(path, true);
    run("checkpoint", -1, 0);
    ASSERT_EQ(board->kept, ranks);
    whole.assign(board->x, board->x + 6);
  }
  auto const size = std::filesystem::file_size(file);
  int deaths = 0;
  for (int victim = 0; victim < ranks; ++victim) {
    for (std::uintmax_t bytes : {std::uintmax_t{100}, size / 2, size - 8 * 3}) {
      std::string const what = "rank " + std::to_string(victim) + ", " + std::to_string(bytes) + " bytes";
      std::filesystem::remove(file);
      BoardFile const board(path, true);
      EXPECT_EQ(run("checkpoint", victim, bytes), 4) << what;
      deaths += board->kept == ranks - 1 ? 1 : 0;  // else its part ends below
      BoardFile const again(path, true);
      run("resume", -1, 0);
      EXPECT_EQ(again->kept, ranks) << what;
      EXPECT_TRUE(same_bits({again->x, again->x + 6}, whole)) << what;
    }
  }
  EXPECT_GE(deaths, 5);
  // What rank 0 was writing when it was killed stays under a name of its own.
  auto const begins = std::filesystem::path(path).filename().string();
  for (auto const& entry : std::filesystem::directory_iterator(std::filesystem::path(path).parent_path())) {
    if (entry.path().filename().string().rfind(begins, 0) == 0) unlink(entry.path().c_str());
  }
}

}  // namespace
}  // namespace hostless::test

int main(int count, char** words) {
  return hostless::test::main_of_ranks(count, words, hostless::test::as_rank);
}
