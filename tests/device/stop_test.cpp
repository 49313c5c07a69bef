// Long solves that somebody ends: a time limit, a question that is answered with yes, a callback, ctrl-C.
// What comes back is x of the last complete iteration, with its true residual: the host, told to stop after
// as many iterations, must end with the same bits.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "gpu_setting.hpp"

namespace hostless::test {
namespace {

// A chain of n rows needs n iterations: what happens at one end arrives at the other no sooner.
constexpr std::int64_t rows = 40'000;

Setting endless(Method method) {
  Setting setting;
  setting.solve.method = method;
  setting.solve.rtol = 0;
  setting.solve.max_iterations = 10 * rows;
  return setting;
}

class GpuStop : public GpuWith<Method> {
 protected:
  System const a = System::path(rows);
  std::vector<double> const b = random_vector(rows, 17);

  void expect_last_complete_iteration(Ending const& ended, std::int64_t at_least) const {
    ASSERT_EQ(ended.result.status, Status::aborted);
    EXPECT_GE(ended.result.iterations, at_least);
    EXPECT_LT(ended.result.iterations, rows) << "it came too late to end anything";
    test::expect_last_complete_iteration(a, b, endless(GetParam()), ended);
  }
};
INSTANTIATE_TEST_SUITE_P(All, GpuStop, testing::ValuesIn(all_methods()), [](auto const& one) {
  return "method_" + std::to_string(static_cast<int>(one.param));
});

TEST_P(GpuStop, TimeLimit) {
  for (RunKind run : gpu_runs()) {
    Setting setting = on_gpu(endless(GetParam()), "auto", run);
    setting.solve.time_limit_s = 0.05;
    auto const begin = Clock::now();
    Ending const ended = solve_on_threads(a, b, setting);
    EXPECT_LT(std::chrono::duration<double>(Clock::now() - begin).count(), 3);
    expect_last_complete_iteration(ended, 100);
  }
}

TEST_P(GpuStop, SomebodyAsks) {
  for (RunKind run : gpu_runs()) {
    std::atomic<bool> wanted{false};
    std::thread somebody([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      wanted = true;
    });
    // The question is first asked while it iterates: a solver that takes long to be made must not end at
    // once.
    std::atomic<int> asked{0};
    Ending const ended = solve_on_threads(
        a, b, on_gpu(endless(GetParam()), "auto", run),
        [&](int, SolveOptions& o) { o.run.stop_requested = [&] { return ++asked > 50 && wanted.load(); }; });
    somebody.join();
    EXPECT_GT(asked.load(), 50);
    expect_last_complete_iteration(ended, 100);
  }
}

TEST_P(GpuStop, CallbackSeesIterationsRiseAndEndsThem) {
  for (RunKind run : gpu_runs()) {
    std::vector<Progress> seen;
    Ending const ended =
        solve_on_threads(a, b, on_gpu(endless(GetParam()), "auto", run), [&](int, SolveOptions& o) {
          o.callback = [&](Progress const& p) {
            seen.push_back(p);
            return p.iteration >= 3000;
          };
        });
    expect_last_complete_iteration(ended, 3000);
    ASSERT_GT(seen.size(), 2u);
    for (std::size_t k = 0; k < seen.size(); ++k) {
      EXPECT_TRUE(std::isfinite(seen[k].residual_norm) && seen[k].residual_norm > 0) << seen[k].iteration;
      EXPECT_LE(seen[k].iteration, ended.result.iterations);
      EXPECT_GT(seen[k].iteration, k > 0 ? seen[k - 1].iteration : 0);
    }
  }
}

TEST_P(GpuStop, BeforeTheFirstIteration) {
  Setting setting = on_gpu(endless(GetParam()));
  setting.solve.time_limit_s = 1e-9;
  Ending const ended = solve_on_threads(a, b, setting);
  expect_last_complete_iteration(ended, 0);
}

// ------------------------------------------------------------------------------------------- the command
namespace fs = std::filesystem;

fs::path command() {
  if (char const* const named = std::getenv("HOSTLESS_COMMAND")) return named;
  return fs::read_symlink("/proc/self/exe").parent_path() / "hostless";
}

class GpuCommand : public Gpu {
 protected:
  void SetUp() override {
    need_gpu();
    if (!fs::exists(command())) GTEST_SKIP() << command() << " is not there (HOSTLESS_COMMAND names it).";
    folder_ = fs::temp_directory_path() / ("hostless-device-" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  pid_t start(std::vector<std::string> words) const {
    words.insert(words.begin(), command().string());
    pid_t const child = fork();
    if (child == 0) {
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      fs::current_path(folder_);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    return child;
  }
  // The exit code; a child that does not end within a minute is killed.
  static int end_of(pid_t child) {
    int status = 0;
    Deadline const deadline = Deadline::after(60);
    while (waitpid(child, &status, WNOHANG) == 0) {
      if (deadline.passed()) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        return -1;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  nlohmann::json read(std::string const& name) const {
    return nlohmann::json::parse(std::ifstream(folder_ / name));
  }
  fs::path folder_;
};

TEST_F(GpuCommand, CtrlCLeavesTheLastCompleteIteration) {
  std::vector<std::string> const problem = {"solve",  "--generate", "poisson1d", "--size", "100000",
                                            "--rtol", "0",          "--quiet",   "--json"};
  auto words = problem;
  for (char const* word : {"gpu.json", "--gpus", "1", "--run", "persistent", "--checkpoint", "c",
                           "--checkpoint-every", "500", "--no-bandwidth"})
    words.emplace_back(word);
  pid_t const child = start(words);
  Deadline const deadline = Deadline::after(60);
  while (!fs::exists(folder_ / "c") && !deadline.passed() && kill(child, 0) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_TRUE(fs::exists(folder_ / "c")) << "no checkpoint was written";
  kill(child, SIGINT);
  EXPECT_EQ(end_of(child), 4);
  auto const ended = read("gpu.json");
  EXPECT_EQ(ended["status"], "aborted");
  EXPECT_GE(ended["iterations"], 500);
  words = problem;
  for (std::string const& word : {std::string("host.json"), std::string("--max-iterations"),
                                  ended["iterations"].dump(), std::string("--no-bandwidth")})
    words.push_back(word);
  EXPECT_EQ(end_of(start(words)), 1);
  auto const host = read("host.json");
  EXPECT_EQ(host["iterations"], ended["iterations"]);
  EXPECT_EQ(host["residual_history"], ended["residual_history"]);
  EXPECT_EQ(host["true_residual"], ended["true_residual"]);
}

}  // namespace
}  // namespace hostless::test
