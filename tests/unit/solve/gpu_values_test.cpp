// A matrix whose values lie in a GPU's memory has the plan and the layouts of the same matrix from the host,
// with places for values; what it refuses. Needs no GPU: nothing is bound to one.
#include <gtest/gtest.h>

#include "hostless/base/error.hpp"
#include "operate/device_rows.hpp"
#include "operate/gpu/places.impl.hpp"
#include "systems.hpp"

namespace hostless::test {
namespace {

/// The rows of one rank with places in the whole matrix' values, + 1.
class PlaceRows final : public RowSource {
 public:
  PlaceRows(System const& a, int ranks, int rank)
      : a_(a), first_(share_first(a.rows(), ranks, rank)), last_(share_first(a.rows(), ranks, rank + 1)) {}
  std::int64_t global_rows() const override { return a_.rows(); }
  std::int64_t first_row() const override { return first_; }
  std::int64_t last_row() const override { return last_; }
  bool is_concurrent() const override { return true; }
  void panel(std::int64_t first, std::int64_t count, RowPanel& out) const override {
    out.clear();
    for (std::int64_t row = first; row < first + count; ++row) {
      for (std::int64_t k = a_.offset[static_cast<std::size_t>(row)];
           k < a_.offset[static_cast<std::size_t>(row) + 1]; ++k) {
        out.column.push_back(a_.column[static_cast<std::size_t>(k)]);
        out.value.push_back(static_cast<double>(k + 1));
      }
      out.offset.push_back(static_cast<std::int64_t>(out.column.size()));
    }
  }

 private:
  System const& a_;
  std::int64_t first_, last_;
};

GpuArray array_of(std::vector<double> const& values) {
  GpuArray array;
  array.address = const_cast<double*>(values.data());
  array.size = static_cast<std::int64_t>(values.size());
  return array;
}

std::vector<double> stored(DeviceRows const& rows) { return {rows.value.begin(), rows.value.end()}; }

std::vector<double> gathered(DeviceRows const& rows) {
  std::vector<double> values = stored(rows);
  for (double& place : values) place = gpu::value_of(place, gpu::numbers_of(rows.from));
  return values;
}

class GpuValues : public testing::TestWithParam<std::tuple<int, MatrixOptions::Partition, std::string>> {};
INSTANTIATE_TEST_SUITE_P(All, GpuValues,
                         testing::Combine(testing::Values(1, 2, 4),
                                          testing::Values(MatrixOptions::Partition::contiguous,
                                                          MatrixOptions::Partition::metis),
                                          testing::Values("auto", "diagonals-full", "sell", "csr")));

TEST_P(GpuValues, PlanAndLayoutAreThoseOfTheHost) {
  auto const& [ranks, partition, format] = GetParam();
  if (format == "diagonals-full" && partition == MatrixOptions::Partition::metis && ranks > 1)
    GTEST_SKIP() << "rows that were dealt out lie on too many diagonals";
  for (char const* kind : {"poisson2d", "elasticity-hex8"}) {
    System const a = System::problem(problem(kind, 6, 5, kind[0] == 'p' ? 1 : 4));
    MatrixOptions options;
    options.partition = partition;
    options.gpus = ranks;
    options.gpu_format = format;
    run_with_threads_transport(ranks, [&, n = ranks](Transport& transport) {
      int const rank = transport.group().rank();
      Share const s = share_of(a, n, rank, true);
      Matrix const host = Matrix::from_rows(transport, s.first, s.offset, s.column, s.value, options);
      MatrixOptions by_threads = options;
      by_threads.setup_threads = 3;
      Matrix const there =
          Matrix::from_gpu_values(transport, PlaceRows(a, n, rank), array_of(a.value), true, by_threads);
      EXPECT_EQ(there.plan().fingerprint, host.plan().fingerprint);
      EXPECT_EQ(there.local(), nullptr);
      EXPECT_EQ(there.global_entries(), host.global_entries());
      DeviceRows const &made = *there.device_rows(), &expected = *host.device_rows();
      EXPECT_TRUE(made.places);
      EXPECT_EQ(made.format, expected.format);
      EXPECT_EQ(made.diagonals, expected.diagonals);
      EXPECT_EQ(made.narrow, expected.narrow);
      EXPECT_EQ(made.wide, expected.wide);
      EXPECT_TRUE(same_bits(gathered(made), stored(expected)));
      std::vector<double> diagonal;
      host.local()->diagonal_blocks(diagonal);
      ASSERT_EQ(made.diagonal_place.size(), diagonal.size());
      for (std::size_t k = 0; k < diagonal.size(); ++k)
        EXPECT_EQ(gpu::value_of(made.diagonal_place[k], gpu::numbers_of(made.from)), diagonal[k]);
    });
  }
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
    Matrix matrix =
        Matrix::from_gpu_values(transport, PlaceRows(a, 1, 0), array_of(a.value), true, diagonals());
    DeviceRows const* const rows = matrix.device_rows();
    EXPECT_EQ(rows->diagonals.mirrored, 2);
    matrix.update_gpu_values(PlaceRows(b, 1, 0), array_of(b.value), true);
    EXPECT_EQ(matrix.device_rows(), rows);
    EXPECT_EQ(matrix.values_version(), 1);
    EXPECT_EQ(rows->from.address, b.value.data());
    EXPECT_EQ(rows->diagonals.mirrored, 2);
    matrix.update_gpu_values(PlaceRows(a, 1, 0), array_of(a.value), false);
    EXPECT_EQ(matrix.device_rows(), rows);
    EXPECT_EQ(rows->diagonals.mirrored, 0);
    EXPECT_EQ(rows->format, DeviceFormat::diagonals);
    MatrixOptions options;
    options.gpus = 1;
    options.gpu_format = "diagonals-full";
    Matrix const full = Matrix::from_rows(transport, 0, a.offset, a.column, a.value, options);
    EXPECT_TRUE(same_bits(gathered(*rows), stored(*full.device_rows())));
    matrix.update_gpu_values(PlaceRows(b, 1, 0), array_of(b.value), true);
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
  auto const made = [&](Transport& t, MatrixOptions const& options) {
    return Matrix::from_gpu_values(t, PlaceRows(a, 1, 0), array_of(a.value), true, options);
  };
  auto const says = [](std::string const& text, char const* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  says(refused([&](Transport& t) { made(t, {}); }), "a matrix for the processor");
  says(refused([&](Transport& t) {
         MatrixOptions options = diagonals();
         options.generate_on_gpu = true;
         made(t, options);
       }),
       "generated there");
  says(refused([&](Transport& t) {
         Matrix matrix = made(t, diagonals());
         matrix.update_gpu_values(PlaceRows(other, 1, 0), array_of(other.value), true);
       }),
       "another pattern");
  says(refused([&](Transport& t) { made(t, diagonals()).update_values(a.offset, a.column, a.value); }),
       "values lie on a GPU");
  says(refused([&](Transport& t) {
         Matrix matrix = Matrix::from_rows(t, 0, a.offset, a.column, a.value, diagonals());
         matrix.update_gpu_values(PlaceRows(a, 1, 0), array_of(a.value), true);
       }),
       "came from the host");
  says(refused([&](Transport& t) {
         Matrix const matrix = made(t, diagonals());
         Solver(matrix, {});
       }),
       "whose values are on a GPU");
  says(refused([&](Transport& t) {
         Matrix const matrix = Matrix::from_rows(t, 0, a.offset, a.column, a.value);
         Solver(matrix, {}).solve(GpuVectors{});
       }),
       "a solve on the processor");
}

}  // namespace
}  // namespace hostless::test
