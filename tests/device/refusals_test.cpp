// What a GPU run does not offer is refused with the reason, on machines without a GPU too.
#include <algorithm>
#include <set>

#include "gpu_setting.hpp"
#include "hostless/base/error.hpp"
#include "run/gpu/launch.hpp"

namespace hostless::test {
namespace {

System const& small() {
  static System const a = System::path(40);
  return a;
}

void expect_refused(Setting const& setting, std::string const& words, Adjust const& adjust = {},
                    System const& a = small(), ErrorCode code = ErrorCode::usage) {
  try {
    solve_on_threads(a, std::vector<double>(static_cast<std::size_t>(a.rows()), 1.0), setting, adjust);
    ADD_FAILURE() << "accepted, where this was expected: " << words;
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
  }
}

TEST(GpuRefuses, WhatItDoesNotOffer) {
  Setting setting = on_gpu(Setting{});
  setting.ranks = 2;
  expect_refused(setting,
                 "2 ranks on 1 GPU are refused (they would wait for each other in every iteration).");
  setting.solve.run.gpus = -1;
  expect_refused(setting, "-1 GPUs (there cannot be fewer than none).");
  setting = on_gpu(Setting{});
  setting.matrix.gpus = 0;
  expect_refused(setting, "the matrix was not laid out for a GPU (MatrixOptions::gpus is 0");
  setting = Setting{};
  setting.solve.run.oversubscribe = true;
  expect_refused(setting, "oversubscribed GPUs on the processor are refused (there are none to share).");
  setting = on_gpu(Setting{});
  setting.solve.run.kind = RunKind::host;
  expect_refused(setting, "the host run on a GPU");
  setting = on_gpu(Setting{});
  setting.solve.run.threads = 2;
  expect_refused(setting, "2 threads a rank with a GPU");
  setting = on_gpu(Setting{}, "auto", RunKind::stream);
  setting.matrix.gpus = setting.solve.run.gpus = 0;
  expect_refused(setting, "the stream run on the processor");
  for (double seconds : {0.0, -1.0}) {
    setting = on_gpu(Setting{});
    setting.solve.run.longest_launch_s = seconds;
    expect_refused(setting, "launches of at most");
  }
  setting = on_gpu(Setting{});
  setting.matrix.gpu_format = "bsr";
  expect_refused(setting, "GPU format 'bsr' (unknown).");
}

TEST(GpuRefuses, WhatATransportCannotCarry) {
  auto const with = [](GpuTransport transport, RunKind run, int ranks, int gpus) {
    Setting setting = on_gpu(Setting{}, "auto", run);
    setting.ranks = ranks;
    setting.matrix.gpus = setting.solve.run.gpus = gpus;
    setting.solve.run.oversubscribe = gpus < ranks;
    setting.solve.run.gpu_transport = transport;
    return setting;
  };
  for (int ranks : {1, 2}) {
    expect_refused(with(GpuTransport::nccl, RunKind::persistent, ranks, ranks),
                   "the persistent run with GPU transport nccl is refused (nobody can carry for a kernel "
                   "that runs to the "
                   "end of the solve). Use --run graph or stream");
    expect_refused(with(GpuTransport::host, RunKind::persistent, ranks, ranks),
                   "the persistent run with GPU transport host");
  }
  expect_refused(
      with(GpuTransport::nvshmem, RunKind::stream, 2, 2),
      "GPU transport nvshmem with 2 ranks that are threads of one process (NVSHMEM knows a process a "
      "GPU). Use --transport processes");
  expect_refused(
      with(GpuTransport::mpi, RunKind::stream, 2, 2),
      "GPU transport mpi with ranks of transport threads (it is their own messages that carry). Use "
      "--transport mpi");
  for (GpuTransport transport : {GpuTransport::mpi, GpuTransport::host})
    expect_refused(
        with(transport, RunKind::graph, 2, 1),
        std::string("the graph run with GPU transport ") + name(transport) +
            " and 2 ranks on 1 GPU is refused (one rank's kernels that wait for the host would keep");
  expect_refused(with(GpuTransport::nvshmem, RunKind::stream, 2, 1),
                 "GPU transport nvshmem with 2 ranks on 1 GPU");
  expect_refused(with(GpuTransport::nccl, RunKind::stream, 2, 1),
                 "GPU transport nccl with 2 ranks on 1 GPU is refused (the library takes one rank a GPU).");
  Setting setting = Setting{};
  for (GpuTransport transport : {GpuTransport::peer, GpuTransport::nccl, GpuTransport::nvshmem,
                                 GpuTransport::mpi, GpuTransport::host}) {
    setting.solve.run.gpu_transport = transport;
    expect_refused(setting, std::string("GPU transport ") + name(transport) + " on the processor");
  }
}

TEST(GpuRefuses, ProductsApartWhereTheyCannotBe) {
  for (std::string const format : {"merge", "vendor"}) {
    for (RunKind run : {RunKind::stream, RunKind::graph, RunKind::persistent, RunKind::automatic})
      expect_refused(
          on_gpu(Setting{}, format, run),
          "format " + format + " with reduction ordered is refused (its sums do not have the plan's order).");
    Setting setting = on_gpu(Setting{}, format);
    setting.solve.reduction = Reduction::fast;
    expect_refused(setting, "format " + format + " in the persistent run");
    setting.solve.matrix_precision = MatrixPrecision::fp32;
    expect_refused(setting, "format " + format + " with the matrix in fp32");
  }
}

TEST(GpuRefuses, TheVendorsLibraryOnSeveralRanks) {
  Setting setting = on_gpu(Setting{}, "vendor", RunKind::stream);
  setting.ranks = 2;
  setting.matrix.gpus = setting.solve.run.gpus = 2;
  setting.solve.reduction = Reduction::fast;
  expect_refused(setting, "format vendor on 2 ranks");
}

TEST(GpuRefuses, DiagonalsOfAMatrixThatHasTooMany) {
  System const a = System::problem(problem("circuit", 60, 60, 1));
  std::set<std::int64_t> offsets;
  for (std::int64_t i = 0; i < a.rows(); ++i)
    for (auto k = a.offset[static_cast<std::size_t>(i)]; k < a.offset[static_cast<std::size_t>(i) + 1]; ++k)
      offsets.insert(a.column[static_cast<std::size_t>(k)] - i);
  ASSERT_GT(offsets.size(), 32u);
  for (char const* format : {"diagonals", "diagonals-full"})
    expect_refused(on_gpu(Setting{}, format),
                   "does not fit format diagonals (it has more than 32 of them). Use sell.", {}, a);
  for (char const* format : {"auto", "sell", "csr"})
    with_matrix(a, on_gpu(Setting{}, format).matrix,
                [](Matrix const& matrix) { EXPECT_NE(matrix.device_rows(), nullptr); });
}

TEST(GpuRefuses, FunctionsOfTheHost) {
  Setting setting = on_gpu(Setting{});
  setting.solve.preconditioner = PreconditionerKind::function;
  expect_refused(setting, "a preconditioner function on a GPU", [](int, SolveOptions& o) {
    o.preconditioner_function = [](double const* r, double* z) { std::copy_n(r, 40, z); };
  });
  expect_refused(on_gpu(Setting{}), "RunOptions::observer on a GPU",
                 [](int, SolveOptions& o) { o.run.observer = [](State const&, int) { return false; }; });
  expect_refused(on_gpu(Setting{}), "RunOptions::disturb on a GPU",
                 [](int, SolveOptions& o) { o.run.disturb = [](int) {}; });
}

TEST(GpuRefuses, AMatrixThatIsAFunction) {
  run_with_threads_transport(1, [&](Transport& transport) {
    Matrix const matrix =
        Matrix::from_function(transport, 0, 4, [](double const* x, double* y) { std::copy_n(x, 4, y); });
    try {
      Solver(matrix, on_gpu(Setting{}).solve);
      ADD_FAILURE() << "accepted";
    } catch (Error const& e) {
      EXPECT_EQ(e.code(), ErrorCode::usage);
      EXPECT_NE(std::string(e.what()).find("or it is a function"), std::string::npos) << e.what();
    }
  });
}

// Where there is none: an error that says what was looked for, no crash and no quiet run on the processor.
TEST(GpuRefuses, MachinesWithoutOne) {
  if (why_no_gpu().empty()) GTEST_SKIP() << "a GPU is there.";
  expect_refused(on_gpu(Setting{}), "no GPU can be used (a GPU run was asked for). Leave out --gpus.", {},
                 small(), ErrorCode::environment);
  expect_refused(on_gpu(Setting{}), why_no_gpu().substr(0, 10), {}, small(), ErrorCode::environment);
}

class GpuRefusesPlans : public Gpu {};

TEST_F(GpuRefusesPlans, WithMoreSlicesThanFit) {
  System const a = System::path(20'000);
  Setting setting = on_gpu(Setting{});
  int const most = std::min(2 * multiprocessors() * gpu::most_turns, 2 * gpu::most_tiles);
  setting.matrix.slices = most + 1;
  expect_refused(setting,
                 std::to_string(most + 1) + " slices in the persistent kernel of a GPU with " +
                     std::to_string(multiprocessors()) +
                     " multiprocessors (a block works on at most 32, all together on 8192). Use --run stream "
                     "or graph, or fewer slices.",
                 {}, a);
  // The refusal leaves the GPU usable.
  setting.matrix.slices = most;
  setting.solve.max_iterations = 5;
  EXPECT_EQ(solve_on_threads(a, random_vector(a.rows(), 31), setting).result.status, Status::iteration_limit);
}

TEST_F(GpuRefusesPlans, WhatItsRunWouldIgnore) {
  for (RunKind run : {RunKind::graph, RunKind::persistent}) {
    Setting setting = on_gpu(Setting{}, "auto", run);
    setting.solve.run.check_interval = 2;
    expect_refused(setting, "a check interval of 2");
  }
}

}  // namespace
}  // namespace hostless::test
