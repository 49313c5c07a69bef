// Several accumulators a row: the kernels of the processor in every instruction set, and the text that
// kernels of a GPU share rows by, against the text of the order, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "hostless/base/error.hpp"
#include "hostless/base/order.hpp"
#include "matrices.hpp"
#include "operate/gpu/rows.impl.hpp"
#include "sample.hpp"

namespace hostless {
namespace {

using namespace test;

constexpr DeviceRequest automatic{}, csr{false, DeviceFormat::csr, true};

/// Rows of 0, 1, 3 and 345 entries, and of all lengths up to 40.
Oracle rows_of_lengths(std::int64_t rows, std::int64_t ghosts = 0, std::int64_t below = 0) {
  Oracle a;
  a.ghosts = ghosts;
  a.below = below;
  std::mt19937_64 random(77);
  std::uniform_real_distribution<double> uniform(-2.0, 2.0);
  for (std::int64_t i = 0; i < rows; ++i) {
    std::size_t const wanted = i % 50 == 0    ? 0
                               : i % 50 == 41 ? 1
                               : i % 50 == 42 ? 3
                               : i % 50 == 43 ? 345
                                              : i % 41;
    a.row.emplace_back();
    while (a.row.back().size() < wanted)
      a.row.back()[static_cast<std::int32_t>(
          static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(rows + ghosts)) - below)] =
          uniform(random);
  }
  return a;
}

std::vector<double> expected(Oracle const& a, int w, std::vector<double> const& x) {
  std::vector<double> y;
  for (auto const& row : a.row) y.push_back(with_threads_per_row(row, w, x, a.below));
  return y;
}

bool equal_bits(std::vector<double> const& a, std::vector<double> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

TEST(ThreadsPerRow, TheProcessorsKernels) {
  for (int block : {1, 3}) {
    Oracle const a = rows_of_lengths(900, 180, 60);
    auto const x = random_vector(a.columns(), 9);
    std::vector<double> const plain = a.multiply(x);
    EXPECT_TRUE(equal_bits(expected(a, 1, x), plain));
    for (int w : {2, 4, 8, 16, 32}) {
      std::vector<double> const y = expected(a, w, x);
      EXPECT_FALSE(equal_bits(y, plain)) << w << " accumulators change nothing: choose other rows";
      for (Isa isa : instruction_sets()) {
        for (char const* columns : {"auto", "16", "32"}) {
          for (int slices : {1, 7}) {
            LocalMatrix const m(a.rows(), tiling_of(a, block, slices, w),
                                FormatRequest::from("auto", columns), isa);
            EXPECT_EQ(m.format(), Format::csr);
            EXPECT_TRUE(equal_bits(multiply(m, x), y))
                << w << ' ' << name(isa) << ' ' << columns << ' ' << slices;
          }
        }
      }
    }
  }
}

// What a neighbour of a GPU does, lane `mine` of a group; where it would exchange, all accumulators are
// formed here.
struct OneOfGroup {
  int w, mine;
  OneOfGroup(int accumulators, std::int32_t lane) : w(accumulators), mine(lane % accumulators) {}
  int turns() const { return w; }
  int distance(int turn) const { return turn - mine; }
  template <class Accumulator>
  double add(Accumulator const& accumulator) const {
    double t[Tiling::most_threads_per_row];
    for (int k = 0; k < w; ++k) t[k] = accumulator(k);
    return tree(t, w);
  }
};

template <class Sharing, int B, int S>
std::vector<double> multiply_by(DeviceRows const& rows, std::vector<double> const& x) {
  RowsView const view = rows.view();
  Tiling const& t = view.tiling;
  std::vector<double> y(static_cast<std::size_t>(t.rows()), -7.0);
  for (int slice = 0; slice < t.slices; ++slice) {
    for (std::int32_t accumulator = 0; accumulator < Tiling::accumulators; ++accumulator) {
      gpu::Batch<S> batch{slice, 0, accumulator, static_cast<std::int32_t>(t.first(slice)),
                          static_cast<std::int32_t>(t.first(slice + 1))};
      for (; batch.first + batch.slot * Tiling::accumulators < batch.last; batch.slot += S) {
        double sum[S][B];
        gpu::multiply<B, S, double, Sharing>(view, batch, x.data() + rows.ghosts_below, sum);
        for (int s = 0; s < S; ++s)
          if (batch.valid(s))
            std::copy_n(sum[s], B, y.data() + static_cast<std::int64_t>(batch.block_row(s)) * B);
      }
    }
  }
  return y;
}

template <int B, int S>
void expect_shared(Oracle const& a, int slices, int w) {
  auto const x = random_vector(a.columns(), 10);
  std::vector<double> const y = expected(a, w, x);
  for (DeviceRequest const& request : {automatic, csr}) {
    DeviceRows const rows = make_device_rows(a.rows(), tiling_of(a, B, slices, w), request);
    EXPECT_EQ(rows.format, DeviceFormat::csr);
    EXPECT_TRUE(equal_bits((multiply_by<gpu::RowsApart, B, S>(rows, x)), y)) << B << ' ' << S << ' ' << w;
    EXPECT_TRUE(equal_bits((multiply_by<OneOfGroup, B, S>(rows, x)), y)) << B << ' ' << S << ' ' << w;
  }
}

TEST(ThreadsPerRow, RowsThatThreadsShare) {
  Oracle const a = rows_of_lengths(1806, 180, 60);
  std::size_t width = 0;
  for (int w : {2, 4, 8, 16, 32}) {
    std::size_t number = width++;
    for (int slices : {1, 5, 264}) {
      if (!test::is_tried(number++, 3)) continue;
      expect_shared<1, 1>(a, slices, w);
      expect_shared<1, 4>(a, slices, w);
      expect_shared<2, 2>(a, slices, w);
      expect_shared<3, 1>(a, slices, w);
    }
  }
}

TEST(ThreadsPerRow, WhereTheOrderIsFreeFollowTheLengthOfRows) {
  std::vector<std::pair<std::int64_t, int>> const all = {{0, 1},  {3, 1},   {4, 2},    {7, 2},    {8, 4},
                                                         {31, 8}, {75, 32}, {345, 32}, {5000, 32}};
  for (auto const& [mean, threads] : all) EXPECT_EQ(free_threads_per_row(mean * 1000, 1000), threads) << mean;
}

TEST(ThreadsPerRow, AreRefusedWhereARowIsOneChain) {
  Oracle const a = rows_of_lengths(900);
  for (char const* format : {"bsr", "sell"}) {
    EXPECT_EQ(usage_text([&] {
                LocalMatrix(a.rows(), tiling_of(a, 3, 2, 4), FormatRequest::from(format));
              }).rfind(std::string("format ") + format + " with 4 row lanes", 0),
              0u);
  }
  for (DeviceFormat format : {DeviceFormat::diagonals, DeviceFormat::sell}) {
    EXPECT_EQ(usage_text([&] {
                make_device_rows(a.rows(), tiling_of(a, 1, 2, 4), {false, format, true});
              }),
              std::string("GPU format ") + name(format) +
                  " with 4 row lanes is refused (it adds a row in one chain). Use auto or csr.");
  }
  for (int w : {-1, 0, 3, 12, 64})
    EXPECT_EQ(usage_text([&] {
                LocalMatrix(a.rows(), tiling_of(a, 1, 2, w));
              }).rfind(std::to_string(w) + " row lanes", 0),
              0u);
}

}  // namespace
}  // namespace hostless
