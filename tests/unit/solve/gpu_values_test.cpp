// A matrix whose rows lie in a GPU's memory has the plan and the layouts of the same matrix from the host;
// what it refuses. Needs no GPU: the bodies of its kernels are called here, and nothing is bound to one.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

#include "host_pattern_scan.hpp"
#include "hostless/base/error.hpp"
#include "operate/device_rows.hpp"
#include "same_layout.hpp"
#include "sample.hpp"
#include "solve/matrix/caller_rows.hpp"
#include "solve/matrix/row_scan.hpp"
#include "systems.hpp"

namespace hostless::test {
namespace {

HostPatternScan const pattern_scan;

GpuArray array_of(std::vector<double> const& values) {
  GpuArray array;
  array.address = const_cast<double*>(values.data());
  array.size = static_cast<std::int64_t>(values.size());
  return array;
}
GpuArray array_of(std::vector<std::int64_t> const& numbers) {
  GpuArray array;
  array.address = const_cast<std::int64_t*>(numbers.data());
  array.size = static_cast<std::int64_t>(numbers.size());
  array.number = GpuArray::Number::int64;
  return array;
}
GpuRows rows_of(System const& a) {
  return {a.rows(), array_of(a.offset), array_of(a.column), array_of(a.value)};
}

Matrix made_there(Transport& transport, System const& a, MatrixOptions const& options,
                  bool same_bits = true) {
  return Matrix::from_gpu_rows(transport, rows_of(a), same_bits, options, pattern_scan);
}

/// The layout with its values, as a GPU has it in the end.
DeviceRows filled(DeviceRows rows) {
  if (rows.share) pattern_scan.lay_out(rows);
  if (rows.value_indices)
    for (double& value_index : rows.value)
      value_index = gpu::value_of(value_index, gpu::numbers_of(rows.from));
  return rows;
}

/// Rows of 0 to 2 `most` entries in clusters as wide as `spread`, some of whose neighbours are far away; symmetric.
System uneven(std::int64_t rows, std::int64_t spread, unsigned seed, std::int64_t most = 10) {
  std::mt19937_64 random(seed);
  std::vector<std::map<std::int64_t, double>> all(static_cast<std::size_t>(rows));
  auto const number = [&](std::int64_t below) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(below));
  };
  for (std::int64_t i = 0; i < rows; ++i) {
    if (i % 7 == 3) continue;
    for (std::int64_t k = number(most); k >= 0; --k) {
      std::int64_t const j = k == most - 1
                                 ? number(rows)
                                 : std::clamp<std::int64_t>(i + number(2 * spread + 1) - spread, 0, rows - 1);
      all[static_cast<std::size_t>(i)][j] = all[static_cast<std::size_t>(j)][i] =
          1e-3 * static_cast<double>(number(2000)) - 1;
    }
  }
  System a;
  for (auto const& row : all) a.row({row.begin(), row.end()});
  return a;
}

/// From the host and from there: everything alike.
void expect_same_matrices(System const& a, int ranks, MatrixOptions const& options, std::string const& what) {
  run_with_threads_transport(ranks, [&](Transport& transport) {
    Share const s = share_of(a, ranks, transport.group().rank(), true);
    Matrix const host = Matrix::from_rows(transport, s.first, s.offset, s.column, s.value, options);
    MatrixOptions by_threads = options;
    by_threads.setup_threads = 3;
    Matrix const there = made_there(transport, a, by_threads);
    EXPECT_EQ(there.plan().fingerprint, host.plan().fingerprint) << what;
    EXPECT_EQ(there.why_block(), host.why_block()) << what;
    EXPECT_EQ(there.why_partition(), host.why_partition()) << what;
    EXPECT_EQ(there.global_entries(), host.global_entries()) << what;
    for (int slice = 0; slice < host.sweep().tiling.slices; ++slice)
      EXPECT_EQ(there.sweep().awaits(slice), host.sweep().awaits(slice)) << what << ", slice " << slice;
    EXPECT_EQ(there.local(), nullptr);
    DeviceRows const& made = *there.device_rows();
    EXPECT_EQ(made.share == nullptr, made.value_indices) << what;
    EXPECT_EQ(made.value_indices, host.why_partition().rfind("contiguous", 0) != 0) << what;
    expect_same_layout(filled(made), *host.device_rows(), what);
    EXPECT_EQ(made.why, host.device_rows()->why) << what;
  });
}

using Laid = std::tuple<int, MatrixOptions::Partition, std::string>;  // ranks, partition, format

std::vector<Laid> all_laid() {
  using Partition = MatrixOptions::Partition;
  std::vector<Laid> all;
  for (int ranks : {1, 2, 4})
    for (Partition partition : {Partition::contiguous, Partition::metis})
      for (char const* format : {"auto", "diagonals-full", "sell", "csr"}) {
        // Rows that were dealt out lie on too many diagonals.
        if (ranks > 1 && partition == Partition::metis && format == std::string("diagonals-full")) continue;
        all.emplace_back(ranks, partition, format);
      }
  return all;
}

class GpuValues : public testing::TestWithParam<Laid> {};
INSTANTIATE_TEST_SUITE_P(All, GpuValues, testing::ValuesIn(all_laid()));

TEST_P(GpuValues, PlanAndLayoutAreThoseOfTheHost) {
  auto const& [ranks, partition, format] = GetParam();
  MatrixOptions options;
  options.partition = partition;
  options.gpus = ranks;
  options.gpu_format = format;
  for (char const* kind : {"poisson2d", "elasticity-hex8"})
    expect_same_matrices(System::problem(problem(kind, 6, 5, kind[0] == 'p' ? 1 : 4)), ranks, options, kind);
}

TEST(GpuValuesOfEveryKind, PlanAndLayoutAreThoseOfTheHost) {
  System const on_chip = uneven(600, 9, 5), far = uneven(900, 400, 6), diagonal = System::diagonal({1, 2, 3}),
               long_way = uneven(140'000, 70'000, 7, of_all(10, 2));
  for (int ranks : {1, 3}) {
    std::size_t number = ranks == 1 ? 0 : 1;
    for (int block : {1, 2, 3, 4, 6}) {
      ++number;
      for (char const* format : {"auto", "sell", "csr", "merge"}) {
        if (!is_tried(number++, 4)) continue;
        for (System const* a : {&on_chip, &far}) {
          MatrixOptions options;
          options.partition = MatrixOptions::Partition::contiguous;
          options.gpus = ranks;
          options.gpu_format = format;
          options.block = block;
          options.slices = 17;
          expect_same_matrices(*a, ranks, options, std::string(format) + ", block " + std::to_string(block));
          if (block > 1 || std::strcmp(format, "csr") != 0) continue;
          options.threads_per_row = 4;
          expect_same_matrices(*a, ranks, options, "row lanes");
        }
      }
    }
    MatrixOptions options;
    options.gpus = ranks;
    expect_same_matrices(diagonal, ranks, options, "a diagonal: ranks without rows");
    if (ranks > 1 || !is_sample())
      expect_same_matrices(long_way, ranks, options, "columns too far apart for 16 bits");
  }
}

TEST(GpuValuesOfEveryKind, DiagonalsOfBothTrianglesAndOfOne) {
  for (int ranks : {1, 2, 5}) {
    for (char const* format : {"diagonals", "diagonals-full"}) {
      for (int block : {1, 2, 4}) {
        MatrixOptions options;
        options.partition = MatrixOptions::Partition::contiguous;
        options.gpus = ranks;
        options.gpu_format = format;
        options.block = block;
        expect_same_matrices(System::problem(problem("poisson2d", 12, 20, 1)), ranks, options, format);
      }
    }
  }
}

TEST(Scan, SeesWhatTheHostSees) {
  System const a = uneven(1000, 30, 8);
  for (int ranks : {1, 4}) {
    for (int rank = 0; rank < ranks; ++rank) {
      CallerRows const source(rows_of(a), pattern_scan, ranks, rank);
      for (bool in_blocks : {true, false}) {
        ScannedRows const host = scan_rows(source, in_blocks, 1, true),
                          there =
                              pattern_scan.scan(rows_of(a), source.first_row(), source.last_row(), in_blocks);
        EXPECT_EQ(there.statistics.rows, host.statistics.rows);
        EXPECT_EQ(there.statistics.entries, host.statistics.entries);
        EXPECT_EQ(there.statistics.blocks, host.statistics.blocks);
        EXPECT_EQ(there.outside, host.outside);
        EXPECT_EQ(there.pattern, host.pattern);
      }
    }
  }
}

TEST(Scan, TellsPatternsApart) {
  System const a = uneven(300, 30, 8);
  auto const pattern = [](System const& s) {
    return pattern_scan.scan(rows_of(s), 0, s.rows(), false).pattern;
  };
  std::set<std::uint64_t> seen{pattern(a)};
  EXPECT_NE(pattern(a), 0u);
  for (std::size_t k = 0; k < a.column.size(); k += 7) {
    System b = a;
    b.value[k] += 1;
    EXPECT_EQ(pattern(b), pattern(a));
    b.column[k] = (b.column[k] + 1) % 300;
    EXPECT_TRUE(seen.insert(pattern(b)).second) << "another column at " << k;
  }
  for (std::size_t row = 1; row < 300; row += 5) {
    System b = a;
    if (b.offset[row] == b.offset[row + 1]) continue;
    ++b.offset[row];  // an entry moves to the row before
    EXPECT_TRUE(seen.insert(pattern(b)).second) << "another row " << row;
  }
}

TEST(Scan, FindsTheFirstRowThatCannotBeUsed) {
  System const good = System::path(50);
  auto const fault = [&](auto const& spoil, std::int64_t first = 0) {
    System a = good;
    spoil(a);
    RowFault const found = pattern_scan.find_fault(rows_of(a), first, 50);
    std::string text = found.kind == RowFault::Kind::none ? "" : error_of(found, 50).what();
    return text.substr(0, text.find(" (the matrix"));
  };
  EXPECT_EQ(fault([](System&) {}), "");
  EXPECT_EQ(fault([](System& a) { a.column[5] = 50; }), "row 2: column 50 of 50 rows");
  EXPECT_EQ(fault([](System& a) { a.column[5] = -1; }), "row 2: column -1 of 50 rows");
  EXPECT_EQ(fault([](System& a) { a.column[7] = 1; }), "row 2: column 1 after column 2");
  EXPECT_EQ(fault([](System& a) { a.column[7] = 2; }), "row 2: column 2 after column 2");
  EXPECT_EQ(fault([](System& a) { a.column[7] = 2; }, 3), "") << "of another rank";
  EXPECT_EQ(fault([](System& a) { a.offset[0] = 1; }), "row 0: it begins at entry 1 and ends at 2");
  EXPECT_EQ(fault([](System& a) { a.offset[7] = 1; }), "row 6: it begins at entry 17 and ends at 1");
  EXPECT_EQ(fault([](System& a) { a.offset[7] = 1'000'000; }),
            "row 6: it begins at entry 17 and ends at 1000000");
  EXPECT_EQ(fault([](System& a) { a.offset[7] = -3; }, 7), "row 7: it begins at entry -3 and ends at 23");
  EXPECT_EQ(fault([](System& a) { a.value.pop_back(); }), "row 49: it begins at entry 146 and ends at 148");
}

MatrixOptions diagonals() {
  MatrixOptions options;
  options.gpus = 1;
  options.gpu_format = "diagonals";
  return options;
}

TEST(GpuValuesOfOneRank, NewValuesKeepTheLayoutAsLongAsTheirTrianglesAreAlike) {
  System const a = System::problem(problem("poisson2d", 9, 8, 1));
  System b = a;
  for (double& value : b.value) value *= 3;
  run_with_threads_transport(1, [&](Transport& transport) {
    Matrix matrix = made_there(transport, a, diagonals());
    DeviceRows const* const rows = matrix.device_rows();
    EXPECT_EQ(rows->diagonals.mirrored, 2);
    matrix.update_gpu_rows(rows_of(b), true);
    EXPECT_EQ(matrix.device_rows(), rows);
    EXPECT_EQ(matrix.values_version(), 1);
    EXPECT_EQ(rows->share->rows.values.address, b.value.data());
    EXPECT_EQ(rows->diagonals.mirrored, 2);
    matrix.update_gpu_rows(rows_of(a), false);
    EXPECT_EQ(matrix.device_rows(), rows);
    EXPECT_EQ(rows->diagonals.mirrored, 0);
    EXPECT_EQ(rows->format, DeviceFormat::diagonals);
    MatrixOptions options;
    options.gpus = 1;
    options.gpu_format = "diagonals-full";
    Matrix const full = Matrix::from_rows(transport, 0, a.offset, a.column, a.value, options);
    expect_same_layout(filled(*rows), *full.device_rows(), "both triangles");
    EXPECT_EQ(rows->why, full.device_rows()->why);
    matrix.update_gpu_rows(rows_of(b), true);
    EXPECT_EQ(rows->diagonals.mirrored, 2);
  });
}

std::string refused(std::function<void(Transport&)> const& action) {
  std::string text;
  run_with_threads_transport(1, [&](Transport& transport) {
    try {
      action(transport);
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      text = error.what();
    }
  });
  return text;
}

TEST(GpuValuesOfOneRank, Refusals) {
  System const a = System::problem(problem("poisson2d", 9, 8, 1)),
               other = System::problem(problem("poisson2d", 8, 9, 1));
  auto const made = [&](Transport& t, MatrixOptions const& options) { return made_there(t, a, options); };
  auto const says = [](std::string const& text, char const* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  says(refused([&](Transport& t) { made(t, {}); }), "a matrix for the processor");
  says(refused([&](Transport& t) {
         GpuRows rows = rows_of(a);
         rows.columns.number = GpuArray::Number::fp32;
         static_cast<void>(Matrix::from_gpu_rows(t, rows, true, diagonals(), pattern_scan));
       }),
       "other numbers than int32");
  says(refused([&](Transport& t) {
         GpuRows rows = rows_of(a);
         rows.offsets.size = 5;
         static_cast<void>(Matrix::from_gpu_rows(t, rows, true, diagonals(), pattern_scan));
       }),
       "5 offsets of 72 rows");
  says(refused([&](Transport& t) {
         GpuRows rows = rows_of(a);
         rows.values.device = 1;
         static_cast<void>(Matrix::from_gpu_rows(t, rows, true, diagonals(), pattern_scan));
       }),
       "on GPUs 0 and 1");
  says(refused([&](Transport& t) {
         MatrixOptions options = diagonals();
         options.generate_on_gpu = true;
         made(t, options);
       }),
       "generated there");
  says(refused([&](Transport& t) {
         Matrix matrix = made(t, diagonals());
         matrix.update_gpu_rows(rows_of(other), true);
       }),
       "another pattern");
  says(refused([&](Transport& t) { made(t, diagonals()).update_values(a.offset, a.column, a.value); }),
       "values lie on a GPU");
  says(refused([&](Transport& t) {
         Matrix matrix = Matrix::from_rows(t, 0, a.offset, a.column, a.value, diagonals());
         matrix.update_gpu_rows(rows_of(a), true);
       }),
       "came from the host");
  says(refused([&](Transport& t) {
         Matrix const matrix = made(t, diagonals());
         Solver(matrix, {});
       }),
       "whose values are on a GPU alone");
  says(refused([&](Transport& t) {
         Matrix const matrix = Matrix::from_rows(t, 0, a.offset, a.column, a.value);
         Solver(matrix, {}).solve(GpuVectors{});
       }),
       "a solve on the processor");
}

}  // namespace
}  // namespace hostless::test
