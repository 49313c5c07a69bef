#include "hostless/plan/partition.hpp"

#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "base/setup_watch.hpp"
#include "hostless/base/error.hpp"
#include "plan/metis.hpp"

namespace hostless {
namespace {

struct Graph {
  std::vector<std::int64_t> first{0};
  std::vector<std::int32_t> neighbour;
};

Graph grid(int n) {
  Graph graph;
  for (int y = 0; y < n; ++y)
    for (int x = 0; x < n; ++x) {
      graph.neighbour.push_back(y * n + x);  // the diagonal of a matrix
      if (x > 0) graph.neighbour.push_back(y * n + x - 1);
      if (x + 1 < n) graph.neighbour.push_back(y * n + x + 1);
      if (y > 0) graph.neighbour.push_back((y - 1) * n + x);
      if (y + 1 < n) graph.neighbour.push_back((y + 1) * n + x);
      graph.first.push_back(static_cast<std::int64_t>(graph.neighbour.size()));
    }
  return graph;
}

std::vector<int> sizes(std::vector<std::int32_t> const& part, int parts) {
  std::vector<int> size(static_cast<std::size_t>(parts), 0);
  for (auto p : part) ++size.at(static_cast<std::size_t>(p));
  return size;
}

// METIS needs a second for it.
Graph large() { return grid(1000); }

TEST(Partition, IsLeftWhenTheSetUpShallEnd) {
  Graph const graph = large();
  SetupWatch watch;
  WatchedBy const watched(&watch);
  std::atomic<bool> inside{true};
  std::thread asks([&] {
    char const* what = nullptr;
    while (inside && (what == nullptr || std::string(what) != "partitioning by METIS"))
      what = watch.look().what;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    watch.stop();
  });
  auto const begin = std::chrono::steady_clock::now();
  try {
    partition_graph(graph.first, graph.neighbour, 64, 1);
    ADD_FAILURE() << "it was not left";
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), ErrorCode::aborted);
  }
  inside = false;
  asks.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(240));
  // The one that was left behind is waited for, and the next gives what it always gives.
  WatchedBy const unwatched(nullptr);
  Graph const small = grid(20);
  EXPECT_EQ(partition_graph(small.first, small.neighbour, 4, 7),
            partition_graph(small.first, small.neighbour, 4, 7));
}

std::atomic<int> terminations{0};

// One that misses its filter is refused for that, where there are any.
bool calls_are_filtered() {
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr) != 0 && errno == EFAULT;
}

TEST(Partition, ATerminationSignalIsTheProgramsOwn) {
  struct sigaction own {
  }, before{};
  own.sa_handler = [](int) { ++terminations; };
  own.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &own, &before);
  Graph const graph = large();
  auto const expected = partition_graph(graph.first, graph.neighbour, 8, 1);
  std::atomic<bool> over{false};
  // Where METIS can be kept from setting handlers it has no moment of peace.
  auto const pause = std::chrono::microseconds(calls_are_filtered() ? 200 : 50'000);
  std::thread signals([&] {
    while (!over) {
      std::this_thread::sleep_for(pause);
      kill(getpid(), SIGTERM);
    }
  });
  EXPECT_EQ(partition_graph(graph.first, graph.neighbour, 8, 1), expected);
  over = true;
  signals.join();
  EXPECT_GT(terminations, 2);
  struct sigaction now {};
  sigaction(SIGTERM, &before, &now);
  EXPECT_EQ(now.sa_handler, own.sa_handler);
  EXPECT_EQ(now.sa_flags & SA_RESTART, SA_RESTART);
}

/// METIS at work on the large graph, on a thread of its own.
class AtWork {
 public:
  AtWork() {
    char const* what = nullptr;
    while (!over_ && (what == nullptr || std::string(what) != "partitioning by METIS"))
      what = watch_.look().what;
    // Else METIS's handlers are seen a little later, and taken away.
    std::this_thread::sleep_for(std::chrono::milliseconds(calls_are_filtered() ? 20 : 200));
    EXPECT_FALSE(over_) << "it was over before anything could be tried";
  }
  AtWork(AtWork const&) = delete;
  AtWork& operator=(AtWork const&) = delete;
  ~AtWork() { thread_.join(); }

 private:
  Graph const graph_ = large();
  SetupWatch watch_;
  std::atomic<bool> over_{false};
  std::thread thread_{[this] {
    WatchedBy const watched(&watch_);
    partition_graph(graph_.first, graph_.neighbour, 64, 1);
    over_ = true;
  }};
};

TEST(Partition, AHandlerThatIsSetMeanwhileStays) {
  struct sigaction before {
  }, own{}, now{};
  own.sa_handler = [](int) { ++terminations; };
  {
    AtWork const at_work;
    sigaction(SIGTERM, &own, &before);
  }
  sigaction(SIGTERM, &before, &now);
  EXPECT_EQ(now.sa_handler, own.sa_handler);
}

/// How a child ends that does `work`, which is to end it.
int ending_of(std::function<void()> const& work) {
  pid_t const child = fork();
  if (child == 0) {
    alarm(60);
    work();
    _exit(99);
  }
  int status = -1;
  waitpid(child, &status, 0);  // bounded: by the child's alarm
  return status;
}

void set_abort_handler() {
  struct sigaction own {};
  own.sa_handler = [](int) { _exit(77); };
  sigaction(SIGABRT, &own, nullptr);
}

// METIS's handler would jump to where METIS began, on another thread.
TEST(Partition, AnAbortIsTheProgramsOwn) {
  int const handled = ending_of([] {
    set_abort_handler();
    AtWork const at_work;
    std::abort();
  });
  EXPECT_TRUE(WIFEXITED(handled) && WEXITSTATUS(handled) == 77) << handled;
  int const plain = ending_of([] {
    AtWork const at_work;
    std::abort();
  });
  EXPECT_TRUE(WIFSIGNALED(plain) && WTERMSIG(plain) == SIGABRT) << plain;
  int const sent = ending_of([] {  // by nobody's thread
    set_abort_handler();
    AtWork const at_work;
    kill(getpid(), SIGABRT);
    pause();
  });
  EXPECT_TRUE(WIFEXITED(sent) && WEXITSTATUS(sent) == 77) << sent;
}

TEST(Partition, AForkedChildHasTheProgramsHandlers) {
  int const status = ending_of([] {
    set_abort_handler();
    AtWork const at_work;
    int const inner = ending_of([] { std::abort(); });
    _exit(WIFEXITED(inner) ? WEXITSTATUS(inner) : 1);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 77) << status;
  int const after = ending_of([] {  // and the program has them back when METIS is over
    set_abort_handler();
    Graph const small = grid(20);
    partition_graph(small.first, small.neighbour, 4, 7);
    std::abort();
  });
  EXPECT_TRUE(WIFEXITED(after) && WEXITSTATUS(after) == 77) << after;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// METIS aborts where it gets no memory; that is an error of its call, whatever the program does with aborts.
TEST(Partition, WithoutMemoryItIsAnError) {
  int const status = ending_of([] {
    set_abort_handler();
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(3);  // METIS says it, too
    Graph const graph = large();
    int times = 0;
    for (rlim_t const mib : {20, 24, 28, 32, 48}) {  // for stacks of threads, and some of what METIS takes
      MetisGraph copy;
      copy.first.assign(graph.first.begin(), graph.first.end());
      copy.neighbour.assign(graph.neighbour.begin(), graph.neighbour.end());
      rlimit before{};
      getrlimit(RLIMIT_AS, &before);
      std::ifstream statm("/proc/self/statm");
      rlim_t pages = 0;
      statm >> pages;
      rlimit const low{pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (mib << 20), before.rlim_max};
      setrlimit(RLIMIT_AS, &low);
      std::string said;
      try {
        run_metis(std::move(copy), 64, 1);
      } catch (Error const& error) {
        said = error.what();
      }
      setrlimit(RLIMIT_AS, &before);
      if (said.find("out of memory") != std::string::npos) ++times;
    }
    if (times == 0) _exit(2);
    Graph const small = grid(20);  // and the next is as ever
    _exit(partition_graph(small.first, small.neighbour, 4, 7).size() == 400 ? 0 : 1);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

TEST(Partition, AForkedChildDoesNotWaitForThreadsThatItHasNot) {
  Graph const small = grid(20);
  auto const expected = partition_graph(small.first, small.neighbour, 4, 7);
  int status = -1;
  {
    AtWork const at_work;
    pid_t const child = fork();
    if (child == 0) {
      alarm(60);
      _exit(partition_graph(small.first, small.neighbour, 4, 7) == expected ? 0 : 1);
    }
    waitpid(child, &status, 0);  // bounded: by the child's alarm
  }
  EXPECT_EQ(status, 0);
}

TEST(Partition, IsBalancedAndCutsLittle) {
  Graph const graph = grid(32);
  for (int parts : {2, 3, 7, 8}) {
    auto const part = partition_graph(graph.first, graph.neighbour, parts, 1);
    ASSERT_EQ(part.size(), 1024u);
    for (int size : sizes(part, parts)) {
      EXPECT_GE(size, 1024 / parts * 8 / 10);
      EXPECT_LE(size, 1024 / parts * 11 / 10 + 1);
    }
    int cut = 0;
    for (std::size_t v = 0; v < 1024; ++v)
      for (auto k = graph.first[v]; k < graph.first[v + 1]; ++k)
        cut += part[v] != part[static_cast<std::size_t>(graph.neighbour[static_cast<std::size_t>(k)])];
    // Strips of whole rows cut 64 ends for each border, a random partition 30 times that.
    EXPECT_LE(cut, 96 * (parts - 1));
    EXPECT_EQ(part, partition_graph(graph.first, graph.neighbour, parts, 1));
  }
}

TEST(Partition, OnePartAndMorePartsThanVertices) {
  Graph const graph = grid(2);
  EXPECT_EQ(partition_graph(graph.first, graph.neighbour, 1, 1), (std::vector<std::int32_t>{0, 0, 0, 0}));
  for (int parts : {4, 5, 9})
    EXPECT_EQ(partition_graph(graph.first, graph.neighbour, parts, 1),
              (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_TRUE(partition_graph(std::vector<std::int64_t>{0}, {}, 3, 1).empty());
}

TEST(Partition, NoPartStaysEmpty) {
  // A star is hard to split; so are graphs without edges and with hardly more vertices than parts.
  for (int n : {9, 10, 17}) {
    Graph star, points;
    for (int v = 0; v < n; ++v) {
      for (int u = v == 0 ? 1 : 0; u < (v == 0 ? n : 1); ++u) star.neighbour.push_back(u);
      star.first.push_back(static_cast<std::int64_t>(star.neighbour.size()));
      points.first.push_back(0);
    }
    for (Graph const& graph : {star, points})
      for (int parts = 2; parts < n; ++parts) {
        auto const part = partition_graph(graph.first, graph.neighbour, parts, 5);
        for (int size : sizes(part, parts)) EXPECT_GT(size, 0) << n << " vertices, " << parts << " parts";
      }
  }
}

TEST(Partition, OppositeEdgesAreAddedAndRepeatsDropped) {
  // A path given by its upper half only, twice, equals the whole path.
  Graph half, whole;
  int const n = 40;
  for (int v = 0; v < n; ++v) {
    if (v + 1 < n) half.neighbour.insert(half.neighbour.end(), {v + 1, v + 1});
    half.first.push_back(static_cast<std::int64_t>(half.neighbour.size()));
    if (v > 0) whole.neighbour.push_back(v - 1);
    if (v + 1 < n) whole.neighbour.push_back(v + 1);
    whole.first.push_back(static_cast<std::int64_t>(whole.neighbour.size()));
  }
  EXPECT_EQ(partition_graph(half.first, half.neighbour, 4, 3),
            partition_graph(whole.first, whole.neighbour, 4, 3));
}

TEST(Partition, RefusesWhatIsNoGraph) {
  std::vector<std::int64_t> const first{0, 1, 2};
  EXPECT_THROW(partition_graph(first, std::vector<std::int32_t>{0, 2}, 2, 1), Error);
  EXPECT_THROW(partition_graph(first, std::vector<std::int32_t>{-1, 0}, 2, 1), Error);
  EXPECT_THROW(partition_graph(first, std::vector<std::int32_t>{0}, 2, 1), Error);
  EXPECT_THROW(partition_graph(first, std::vector<std::int32_t>{0, 1}, 0, 1), Error);
  EXPECT_THROW(partition_graph(std::vector<std::int64_t>{0, 3, 2}, std::vector<std::int32_t>{0, 1}, 2, 1),
               Error);
  EXPECT_THROW(partition_graph({}, {}, 2, 1), Error);
}

struct PartitionFile : ::testing::Test {
  std::string const path = (std::filesystem::path(::testing::TempDir()) / "hostless_partition.txt").string();
  void TearDown() override { std::filesystem::remove(path); }
  void write(std::string const& text) { std::ofstream(path, std::ios::binary) << text; }
  std::string problem(ErrorCode code = ErrorCode::bad_input) {
    try {
      read_partition(path, 3, 4);
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), code);
      return error.what();
    }
    return "accepted";
  }
};

TEST_F(PartitionFile, IsReadBack) {
  std::vector<std::int32_t> const part{3, 0, 2};
  write_partition(path, part);
  EXPECT_EQ(read_partition(path, 3, 4), part);
  write("3\r\n 0\t\r\n2");
  EXPECT_EQ(read_partition(path, 3, 4), part);
  write("");
  EXPECT_TRUE(read_partition(path, 0, 4).empty());
}

TEST_F(PartitionFile, ErrorsNameFileAndLine) {
  struct {
    char const *text, *line, *part;
  } const all[] = {{"0\n4\n0\n", ":2: ", "'4' is not a part"},
                   {"0\n0\n-1\n", ":3: ", "'-1'"},
                   {"0\nx\n0\n", ":2: ", "'x'"},
                   {"0 1\n0\n0\n", ":1: ", "'0 1'"},
                   {"0\n\n0\n", ":2: ", "''"},
                   {"0\n1.5\n0\n", ":2: ", "'1.5'"},
                   {"99999999999999999999\n", ":1: ", "'99999999999999999999'"},
                   {"0\n0\n", ":2: ", "ends after 2 of 3"},
                   {"", ":0: ", "ends after 0 of 3"},
                   {"0\n0\n0\n0\n", ":4: ", "more than 3 lines"}};
  for (auto const& one : all) {
    write(one.text);
    std::string const text = problem();
    EXPECT_EQ(text.find(path + one.line), 0u) << text;
    EXPECT_NE(text.find(one.part), std::string::npos) << text;
  }
  std::filesystem::remove(path);
  EXPECT_NE(problem().find("No such file"), std::string::npos);
  EXPECT_THROW(write_partition("/nonexistent/folder/file", std::vector<std::int32_t>{0}), Error);
  if (std::filesystem::exists("/dev/full")) {
    EXPECT_THROW(write_partition("/dev/full", std::vector<std::int32_t>(100000, 0)), Error);
  }
}

}  // namespace
}  // namespace hostless
