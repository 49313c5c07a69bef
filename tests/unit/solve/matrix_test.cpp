// The ways to make a matrix are one matrix; new values are a new matrix; refusals.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "operate/device_rows.hpp"
#include "systems.hpp"

namespace hostless::test {
namespace {

using P = MatrixOptions::Partition;

struct Solved {
  Status status = Status::running;
  std::vector<double> history, x;
};

// Solves with whatever matrix `make` makes on each rank; x in the order of the matrix.
template <class Make>
Solved solve_made(int ranks, std::vector<double> const& b, SolveOptions const& options, Make const& make) {
  Solved solved;
  solved.x.assign(b.size(), 0.0);
  run_with_threads_transport(ranks, [&](Transport& transport) {
    Matrix const matrix = make(transport);
    Solver solver(matrix, options);
    auto const rows = static_cast<std::size_t>(matrix.last_row() - matrix.first_row());
    Result const result =
        solver.solve({b.data() + matrix.first_row(), rows}, {solved.x.data() + matrix.first_row(), rows});
    if (transport.group().rank() == 0) {
      solved.status = result.status;
      solved.history = result.residual_history;
    }
  });
  return solved;
}

void expect_same(Solved const& a, Solved const& b) {
  EXPECT_EQ(a.status, Status::converged);
  EXPECT_EQ(a.status, b.status);
  EXPECT_TRUE(same_bits(a.history, b.history));
  EXPECT_TRUE(same_bits(a.x, b.x));
}

Matrix from_rows(Transport& transport, System const& a, MatrixOptions const& options) {
  Share const s = share_of(a, transport.group().size(), transport.group().rank(), true);
  return Matrix::from_rows(transport, s.first, s.offset, s.column, s.value, options);
}

class Sources : public testing::TestWithParam<std::tuple<int, P>> {};
INSTANTIATE_TEST_SUITE_P(All, Sources,
                         testing::Combine(testing::Values(1, 2, 4),
                                          testing::Values(P::contiguous, P::metis)));

TEST_P(Sources, ArraysAndGeneratorsAreTheSameMatrix) {
  auto const [ranks, partition] = GetParam();
  MatrixOptions options;
  options.partition = partition;
  ProblemOptions const o = problem("elasticity-hex8", 3, 4, 4, 10.0);
  System const a = System::problem(o);
  auto const b = random_vector(a.rows(), 2);
  expect_same(solve_made(ranks, b, {}, [&](Transport& t) { return from_rows(t, a, options); }),
              solve_made(ranks, b, {}, [&](Transport& t) {
                return Matrix::from_source(t, *make_problem(o, t.group().size(), t.group().rank()), options);
              }));
}

// Bits of a solve depend on the numbering, the ghosts and the blocks; reasons are what was counted.
TEST_P(Sources, AnyNumberOfThreadsMakesTheSameMatrix) {
  auto const [ranks, partition] = GetParam();
  for (char const* kind : {"elasticity-hex8", "poisson7"}) {
    System const a = System::problem(problem(kind, 13, 12, 14));
    MatrixOptions options;
    options.partition = partition;
    options.gpus = ranks;  // the layout for a GPU too
    options.setup_threads = 1;
    run_with_threads_transport(ranks, [&](Transport& transport) {
      Matrix const alone = from_rows(transport, a, options);
      for (int threads : {0, 2, 7}) {
        MatrixOptions several = options;
        several.setup_threads = threads;
        Matrix const made = from_rows(transport, a, several);
        EXPECT_EQ(made.plan().fingerprint, alone.plan().fingerprint) << threads;
        EXPECT_EQ(made.why_block(), alone.why_block());
        EXPECT_EQ(made.why_partition(), alone.why_partition());
        EXPECT_EQ(made.device_rows()->value, alone.device_rows()->value);
        EXPECT_EQ(made.local()->describe(), alone.local()->describe());
      }
    });
  }
}

// Of a node's three unknowns: blocks where all cuts leave them whole, whatever else they do, and the reason where not.
TEST(Blocks, AreThoseThatAllCutsLeaveWhole) {
  System const a = System::problem(problem("elasticity-hex8", 8, 8, 8));
  ASSERT_EQ(a.rows(), 1536);
  struct Case {
    std::vector<std::int64_t> cuts;
    int block;
    std::string lost;
  };
  for (Case const& c :
       {Case{{0, 504, 1020, 1536}, 3, ""}, Case{{0, 507, 1029, 1536}, 3, ""},
        Case{{0, 510, 1023, 1536}, 3, ""}, Case{{0, 512, 1024, 1536}, 0, "start inside blocks of "},
        Case{{0, 511, 1536, 1536}, 1, "start inside blocks of "}}) {
    run_with_threads_transport(3, [&](Transport& transport) {
      auto const rank = static_cast<std::size_t>(transport.group().rank());
      auto const first = static_cast<std::size_t>(c.cuts[rank]),
                 last = static_cast<std::size_t>(c.cuts[rank + 1]);
      std::vector<std::int64_t> offset(a.offset.begin() + static_cast<std::ptrdiff_t>(first),
                                       a.offset.begin() + static_cast<std::ptrdiff_t>(last) + 1);
      auto const begin = offset.front(), end = offset.back();
      for (auto& one : offset) one -= begin;
      std::span<std::int64_t const> const columns{a.column.data() + begin,
                                                  static_cast<std::size_t>(end - begin)};
      std::span<double const> const values{a.value.data() + begin, columns.size()};
      Matrix const made = Matrix::from_rows(transport, c.cuts[rank], offset, columns, values, {});
      if (c.block > 0) EXPECT_EQ(made.sweep().tiling.block, c.block) << made.why_block();
      EXPECT_EQ(made.lost_blocks().empty(), c.lost.empty()) << made.lost_blocks();
      EXPECT_NE(made.lost_blocks().find(c.lost), std::string::npos) << made.lost_blocks();
      if (c.block != 1) return;
      EXPECT_NE(made.why_block().find("cut at multiples of 3"), std::string::npos) << made.why_block();
      SolveOptions options;
      options.preconditioner = PreconditionerKind::block_jacobi;
      std::vector<double> const b(last - first, 1.0);
      std::vector<double> x(last - first, 0.0);
      Solver solver(made, options);
      std::string why;
      for (auto const& [what, text] : solver.solve(b, x).choices)
        if (what == "preconditioner_why") why = text;
      EXPECT_EQ(why, "block-jacobi is jacobi here: " + made.lost_blocks());
    });
  }
}

// Same pattern, other values: as if the matrix had been made with them, whatever was solved before.
TEST_P(Sources, NewValuesAreANewMatrix) {
  auto const [ranks, partition] = GetParam();
  MatrixOptions options;
  options.partition = partition;
  ProblemOptions first = problem("poisson2d", 9, 8, 1), second = first;
  second.seed = 5;
  System const a = System::problem(first), c = System::problem(second);
  ASSERT_EQ(a.column, c.column);
  ASSERT_NE(a.value, c.value);
  auto const b = random_vector(a.rows(), 2);
  SolveOptions jacobi;
  jacobi.preconditioner = PreconditionerKind::jacobi;
  Solved const fresh = solve_made(ranks, b, jacobi, [&](Transport& t) { return from_rows(t, c, options); });
  for (bool arrays : {false, true}) {
    Solved updated;
    updated.x.assign(b.size(), 0.0);
    run_with_threads_transport(ranks, [&, ranks = ranks](Transport& transport) {
      int const rank = transport.group().rank();
      Matrix matrix = from_rows(transport, a, options);
      Solver solver(matrix, jacobi);
      auto const rows = static_cast<std::size_t>(matrix.last_row() - matrix.first_row());
      std::vector<double> x(rows, 0.0);
      std::span<double const> const mine(b.data() + matrix.first_row(), rows);
      solver.solve(mine, x);
      EXPECT_EQ(matrix.values_version(), 0);
      if (arrays) {
        Share const s = share_of(c, ranks, rank, true);
        matrix.update_values(s.offset, s.column, s.value);
      } else {
        matrix.update_values(*make_problem(second, ranks, rank));
      }
      EXPECT_EQ(matrix.values_version(), 1);
      Result const result = solver.solve(mine, {updated.x.data() + matrix.first_row(), rows});
      if (rank == 0) updated.status = result.status, updated.history = result.residual_history;
    });
    expect_same(updated, fresh);
  }
}

// What a GPU gets after an update is what it would get from a new matrix, also where one triangle no longer
// does for both.
TEST(Values, OfTheRowsForAGpuFollow) {
  System const a = System::problem(problem("poisson2d", 12, 10, 1));
  for (char const* format : {"auto", "diagonals", "diagonals-full", "sell", "csr"}) {
    run_with_threads_transport(1, [&](Transport& transport) {
      MatrixOptions options;
      options.gpus = 1;
      options.gpu_format = format;
      Share s = share_of(a, 1, 0, false);
      Matrix matrix = Matrix::from_rows(transport, s.first, s.offset, s.column, s.value, options);
      bool const diagonals = matrix.device_rows()->format == DeviceFormat::diagonals;
      bool const full = format == std::string("diagonals-full");
      EXPECT_EQ(matrix.device_rows()->diagonals.mirrored, diagonals && !full ? 2 : 0) << format;
      s.value[1] *= 2;  // entry (0, 1), but not (1, 0)
      matrix.update_values(s.offset, s.column, s.value);
      Matrix const anew = Matrix::from_rows(transport, s.first, s.offset, s.column, s.value, options);
      EXPECT_EQ(matrix.device_rows()->value, anew.device_rows()->value) << format;
      EXPECT_EQ(matrix.device_rows()->why, anew.device_rows()->why);
      EXPECT_EQ(matrix.device_rows()->diagonals.mirrored, 0) << format;
    });
  }
}

// Laid out for GPUs alone: the same plan and layout, no other pattern.
TEST(Values, WithoutALayoutOfTheHost) {
  System const a = System::problem(problem("poisson2d", 12, 10, 1));
  for (auto partition : {MatrixOptions::Partition::contiguous, MatrixOptions::Partition::metis}) {
    for (int ranks : {1, 3}) {
      run_with_threads_transport(ranks, [&](Transport& transport) {
        MatrixOptions options;
        options.gpus = ranks;
        options.partition = partition;
        Share s = share_of(a, ranks, transport.group().rank(), true);
        auto const made = [&] {
          return Matrix::from_rows(transport, s.first, s.offset, s.column, s.value, options);
        };
        Matrix const both = made();
        options.host_layout = false;
        Matrix alone = made();
        EXPECT_NE(both.local(), nullptr);
        EXPECT_EQ(alone.local(), nullptr);
        EXPECT_EQ(alone.plan().fingerprint, both.plan().fingerprint);
        for (int slice = 0; slice < both.sweep().tiling.slices; ++slice)
          EXPECT_EQ(alone.sweep().awaits(slice), both.sweep().awaits(slice)) << slice;
        EXPECT_EQ(alone.device_rows()->value, both.device_rows()->value);
        for (double& value : s.value) value *= 2;
        alone.update_values(s.offset, s.column, s.value);
        EXPECT_EQ(alone.device_rows()->value, made().device_rows()->value);
        EXPECT_EQ(alone.values_version(), 1);
        for (std::int64_t& column : s.column) column = a.rows() - 1 - column;
        for (std::size_t i = 0; i + 1 < s.offset.size(); ++i)
          std::reverse(s.column.begin() + s.offset[i], s.column.begin() + s.offset[i + 1]);
        EXPECT_THROW(alone.update_values(s.offset, s.column, s.value), Error);
        EXPECT_EQ(alone.values_version(), 1);
      });
    }
  }
  MatrixOptions options;
  options.host_layout = false;  // says nothing without a GPU
  run_with_threads_transport(1, [&](Transport& transport) {
    Share const s = share_of(a, 1, 0, true);
    Matrix const matrix = Matrix::from_rows(transport, s.first, s.offset, s.column, s.value, options);
    EXPECT_NE(matrix.local(), nullptr);
  });
}

// The path 2, -1 as a function: its products, in the order of CSR. One rank needs no neighbours; on several
// ranks it asks the group for the ends of the others' shares.
TEST(Functions, AreMatrices) {
  System const a = System::path(30);
  auto const b = random_vector(30, 2);
  for (Method method : all_methods()) {
    for (int ranks : {1, 3}) {
      SolveOptions options;
      options.method = method;
      options.rtol = 1e-10;
      Solved const got = solve_made(ranks, b, options, [&](Transport& t) {
        int const rank = t.group().rank();
        std::int64_t const first = piece(rank, ranks, 30), rows = piece(rank + 1, ranks, 30) - first;
        Group& group = t.group();
        return Matrix::from_function(t, first, rows, [rows, &group](double const* x, double* y) {
          auto const n = static_cast<std::size_t>(rows);
          struct Ends {
            double first, last;
          };
          auto const ends = group.all_gather(Ends{x[0], x[n - 1]});
          auto const me = static_cast<std::size_t>(group.rank());
          for (std::size_t i = 0; i < n; ++i) {
            double const below = i > 0 ? x[i - 1] : me > 0 ? ends[me - 1].last : 0.0;
            double const above = i + 1 < n ? x[i + 1] : me + 1 < ends.size() ? ends[me + 1].first : 0.0;
            y[i] = 2 * x[i] - below - above;
          }
        });
      });
      EXPECT_EQ(got.status, Status::converged) << name(method);
      EXPECT_LE(residual_of(a, b, got.x), 1.1e-10 * norm(b)) << name(method);
    }
  }
}

TEST(Functions, HaveNoValuesToUpdateAndNoDiagonal) {
  run_with_threads_transport(1, [](Transport& t) {
    Matrix matrix =
        Matrix::from_function(t, 0, 2, [](double const* x, double* y) { y[0] = x[0], y[1] = x[1]; });
    EXPECT_EQ(matrix.local(), nullptr);
    EXPECT_EQ(matrix.global_entries(), 0);
    EXPECT_THROW(matrix.update_values(*make_problem(problem("poisson1d", 2, 1, 1), 1, 0)), Error);
    SolveOptions options;
    options.preconditioner = PreconditionerKind::jacobi;
    EXPECT_THROW(Solver(matrix, options), Error);
  });
}

TEST(Vectors, GoToTheLocalOrderAndBack) {
  System const a = System::problem(problem("poisson2d", 12, 10, 1));
  for (P partition : {P::contiguous, P::metis}) {
    run_with_threads_transport(4, [&](Transport& t) {
      MatrixOptions options;
      options.partition = partition;
      Matrix const matrix = from_rows(t, a, options);
      std::vector<double> mine, local(static_cast<std::size_t>(matrix.owned()), -1.0);
      for (auto row = matrix.first_row(); row < matrix.last_row(); ++row)
        mine.push_back(static_cast<double>(row));
      matrix.to_local(mine, local);
      for (std::int64_t i = 0; i < matrix.owned(); ++i)
        EXPECT_EQ(local[static_cast<std::size_t>(i)], static_cast<double>(matrix.global_row(i)));
      std::vector<double> back(mine.size(), -1.0);
      matrix.from_local(local, back);
      EXPECT_EQ(back, mine);
    });
  }
}

// Each plan knows where all ranks are: on every rank those of all would be the cube of their number.
TEST(Plans, OfAllRanksAreOnOne) {
  for (bool own : {false, true}) {
    run_with_threads_transport(4, [&](Transport& transport) {
      Group& group = transport.group();
      auto const source = make_problem(problem("poisson2d", 12, 8, 1), 4, group.rank());
      PlannedMatrix const planned = plan_matrix(group, *source, {}, own);
      EXPECT_EQ(planned.plans.size(), group.rank() == 0 ? 4u : 0u);
      EXPECT_EQ(planned.patterns.size(), group.rank() == 0 ? 4u : 0u);
      EXPECT_EQ(planned.mine.nodes.ranks(), own ? 4 : 0);
      if (!own) return;
      EXPECT_EQ(planned.mine.rank, group.rank());
      EXPECT_EQ(planned.mine.fingerprint, Matrix::from_source(transport, *source, {}).plan().fingerprint);
    });
  }
}

TEST(Partitions, FromAFile) {
  System const a = System::problem(problem("poisson2d", 12, 5, 1));
  auto const path = std::filesystem::temp_directory_path() / ("hostless-parts-" + std::to_string(::getpid()));
  {
    std::ofstream file(path);
    for (int row = 0; row < 60; ++row) file << row % 3 << '\n';
  }
  run_with_threads_transport(3, [&](Transport& t) {
    MatrixOptions options;
    options.partition = P::file;
    options.partition_file = path.string();
    Matrix const matrix = from_rows(t, a, options);
    EXPECT_EQ(matrix.owned(), 20);
    for (std::int64_t i = 0; i < matrix.owned(); ++i) EXPECT_EQ(matrix.global_row(i) % 3, t.group().rank());
  });
  MatrixOptions blocks;
  blocks.partition = P::file;
  blocks.partition_file = path.string();
  blocks.block = 2;
  EXPECT_THROW(run_with_threads_transport(3, [&](Transport& t) { from_rows(t, a, blocks); }), Error);
  std::filesystem::remove(path);
}

template <class Make>
ErrorCode refusal(int ranks, Make const& make) {
  try {
    run_with_threads_transport(ranks, make);
  } catch (Error const& e) {
    return e.code();
  }
  ADD_FAILURE() << "accepted";
  return ErrorCode::aborted;
}

// Rows are read in portions: the first bad one is named, whoever reads it.
TEST(Refusals, OfTheFirstBadRowByAnyNumberOfThreads) {
  System a = System::problem(problem("poisson2d", 200, 100, 1));
  for (std::size_t const row : {11'111u, 19'000u}) a.column[static_cast<std::size_t>(a.offset[row])] = -1;
  for (int threads : {1, 2, 5}) {
    MatrixOptions options;
    options.setup_threads = threads;
    try {
      run_with_threads_transport(1, [&](Transport& t) { from_rows(t, a, options); });
      ADD_FAILURE() << "accepted";
    } catch (Error const& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_input);
      EXPECT_EQ(std::string(e.what()).rfind("row 11111: column -1 of 20000 rows", 0), 0u) << e.what();
    }
  }
}

TEST(Refusals, OfRowsAndOptions) {
  System const a = System::problem(problem("poisson2d", 12, 5, 1));
  auto const with = [&](auto change) {
    return refusal(2, [&](Transport& t) {
      MatrixOptions options;
      Share s = share_of(a, 2, t.group().rank(), true);
      change(t.group().rank(), s, options);
      Matrix::from_rows(t, s.first, s.offset, s.column, s.value, options);
    });
  };
  EXPECT_EQ(with([](int, Share&, MatrixOptions& o) { o.block = 5; }), ErrorCode::usage);
  EXPECT_EQ(with([](int, Share&, MatrixOptions& o) { o.setup_threads = -1; }), ErrorCode::usage);
  EXPECT_EQ(with([](int r, Share& s, MatrixOptions&) { s.first += r; }), ErrorCode::usage);
  EXPECT_EQ(with([](int r, Share& s, MatrixOptions&) {
              if (r == 1) s.offset[0] = 1;
            }),
            ErrorCode::usage);
  EXPECT_EQ(with([](int r, Share& s, MatrixOptions&) {
              if (r == 1) s.value.pop_back();
            }),
            ErrorCode::usage);
  EXPECT_EQ(with([](int r, Share& s, MatrixOptions&) {
              if (r == 1) std::swap(s.column[0], s.column[1]);
            }),
            ErrorCode::bad_input);
  EXPECT_EQ(with([](int, Share&, MatrixOptions& o) { o.partition = P::file, o.partition_file = "/no/such"; }),
            ErrorCode::bad_input);
}

TEST(Refusals, OfFunctions) {
  auto const nothing = [](double const*, double*) {};
  EXPECT_EQ(refusal(2, [&](Transport& t) { Matrix::from_function(t, 0, 3, nullptr); }), ErrorCode::usage);
  EXPECT_EQ(refusal(2, [&](Transport& t) { Matrix::from_function(t, 0, -t.group().rank(), nothing); }),
            ErrorCode::usage);
  EXPECT_EQ(refusal(2,
                    [&](Transport& t) {
                      Matrix matrix = Matrix::from_function(t, 3 * t.group().rank(), 3, nothing);
                      System const a = System::path(6);
                      Share const s = share_of(a, 2, t.group().rank(), false);
                      matrix.update_values(s.offset, s.column, s.value);
                    }),
            ErrorCode::usage);
}

TEST(Refusals, OfALayoutForGpusThatNobodyKnows) {
  System const a = System::path(6);
  MatrixOptions options;
  options.gpus = 1;
  options.gpu_format = "bsr";
  EXPECT_EQ(refusal(1, [&](Transport& t) { from_rows(t, a, options); }), ErrorCode::usage);
  run_with_threads_transport(1, [&](Transport& t) { EXPECT_EQ(from_rows(t, a, {}).device_rows(), nullptr); });
}

TEST(Refusals, OfFunctionsWhoseRowsDoNotFollowEachOther) {
  auto const nothing = [](double const*, double*) {};
  for (std::int64_t second : {0, 2, 4}) {  // once twice, overlapping, with a gap
    EXPECT_EQ(
        refusal(2, [&](Transport& t) { Matrix::from_function(t, t.group().rank() * second, 3, nothing); }),
        ErrorCode::usage)
        << second;
  }
}

// Every rank is refused, also the one whose vectors are right: it would wait for the other.
TEST(Refusals, OfVectorsThatAreTooShort) {
  System const a = System::path(6);
  for (int bad : {0, 1, 2, 3, 4, 5}) {
    EXPECT_EQ(refusal(2,
                      [&](Transport& t) {
                        int const rank = t.group().rank();
                        Share const s = share_of(a, 2, rank, false);
                        Matrix const matrix = Matrix::from_rows(t, s.first, s.offset, s.column, s.value);
                        std::size_t const right = 3, wrong = rank == 1 ? 2 : 3;
                        std::vector<double> from(bad % 2 == 0 ? wrong : right),
                            to(bad % 2 == 1 ? wrong : right);
                        if (bad < 2) matrix.to_local(from, to);
                        if (bad >= 2 && bad < 4) matrix.from_local(from, to);
                        if (bad >= 4) Solver(matrix, {}).multiply(from, to);
                      }),
              ErrorCode::usage)
        << bad;
  }
}

TEST(Functions, KeepTheOrderOfTheirCaller) {
  run_with_threads_transport(2, [](Transport& t) {
    int const rank = t.group().rank();
    auto const negate = [](double const* x, double* y) { std::transform(x, x + 3, y, std::negate<>()); };
    Matrix matrix = Matrix::from_function(t, 3 * rank, 3, negate);
    matrix = Matrix::from_function(t, 3 * rank, 3, negate);  // a matrix can be replaced
    EXPECT_EQ(matrix.global_rows(), 6);
    EXPECT_EQ(matrix.global_entries(), 0);
    EXPECT_EQ(matrix.first_row(), 3 * rank);
    EXPECT_EQ(matrix.last_row(), 3 * rank + 3);
    EXPECT_EQ(matrix.global_row(2), 3 * rank + 2);
    EXPECT_EQ(matrix.local(), nullptr);
    std::vector<double> const mine{1, 2, 3};
    std::vector<double> local(3), back(3);
    matrix.to_local(mine, local);
    matrix.from_local(local, back);
    EXPECT_EQ(local, mine);
    EXPECT_EQ(back, mine);
  });
}

TEST(Refusals, AnotherPatternForNewValues) {
  System const a = System::problem(problem("poisson2d", 12, 5, 1)),
               c = System::problem(problem("poisson2d-tri", 12, 5, 1));
  EXPECT_EQ(refusal(2,
                    [&](Transport& t) {
                      Matrix matrix = from_rows(t, a, {});
                      Share const s = share_of(c, 2, t.group().rank(), true);
                      matrix.update_values(s.offset, s.column, s.value);
                    }),
            ErrorCode::usage);
}

}  // namespace
}  // namespace hostless::test
