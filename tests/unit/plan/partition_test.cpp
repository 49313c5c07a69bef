#include "hostless/plan/partition.hpp"

#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/setup_watch.hpp"
#include "hostless/base/error.hpp"

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
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  // The one that was left behind is waited for, and the next gives what it always gives.
  WatchedBy const unwatched(nullptr);
  Graph const small = grid(20);
  EXPECT_EQ(partition_graph(small.first, small.neighbour, 4, 7),
            partition_graph(small.first, small.neighbour, 4, 7));
}

std::atomic<int> terminations{0};

TEST(Partition, ATerminationSignalIsTheProgramsOwn) {
  struct sigaction own {
  }, before{};
  own.sa_handler = [](int) { ++terminations; };
  own.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &own, &before);
  Graph const graph = large();
  auto const expected = partition_graph(graph.first, graph.neighbour, 8, 1);
  std::atomic<bool> over{false};
  // Where system calls can be filtered (then this one misses its filter) METIS has no moment of peace.
  bool const filtered = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr) != 0 && errno == EFAULT;
  auto const pause = std::chrono::microseconds(filtered ? 200 : 50'000);
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
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
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
