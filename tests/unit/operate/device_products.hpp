#pragma once
// Products with the rows of a GPU as its kernels compute them, from the same text on the host, held against
// LocalMatrix and the maps of the oracle.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "matrices.hpp"
#include "operate/device_rows.hpp"
#include "operate/gpu/rows.impl.hpp"

namespace hostless::test {

/// As a kernel does it: every accumulator of every slice, batch after batch, those accumulators too that have
/// no block row.
template <int B, int S>
std::vector<double> multiply_in_batches(DeviceRows const& rows, std::vector<double> const& x,
                                        bool is_rounded) {
  std::vector<float> rounded(rows.value.begin(), rows.value.end());
  rounded.reserve(1);  // an address, also of an empty matrix
  RowsView const view = rows.view(rounded.data());
  Tiling const& t = view.tiling;
  // What lies beyond the vector is readable as far as promised, and must not count.
  std::vector<double> padded(x.size() + static_cast<std::size_t>(rows.rows_before() + rows.rows_after()),
                             1e300);
  EXPECT_LE(rows.ghosts_below, rows.rows_before());
  EXPECT_LE(rows.ghosts_above, rows.rows_after());
  std::copy(x.begin(), x.end(), padded.begin() + rows.rows_before() - rows.ghosts_below);
  std::vector<double> y(static_cast<std::size_t>(t.rows()), -7.0);
  std::vector<int> written(static_cast<std::size_t>(t.block_rows));
  for (int slice = 0; slice < t.slices; ++slice) {
    for (std::int32_t accumulator = 0; accumulator < Tiling::accumulators; ++accumulator) {
      gpu::Batch<S> batch{slice, 0, accumulator, static_cast<std::int32_t>(t.first(slice)),
                          static_cast<std::int32_t>(t.first(slice + 1))};
      for (; batch.first + batch.slot * Tiling::accumulators < batch.last; batch.slot += S) {
        double sum[S][B];
        gpu::multiply<B, S, float>(view, is_rounded, batch, padded.data() + rows.rows_before(), sum);
        for (int s = 0; s < S; ++s) {
          if (!batch.valid(s)) continue;
          ++written[batch.block_row(s)];
          std::copy_n(sum[s], B, y.data() + static_cast<std::int64_t>(batch.block_row(s)) * B);
        }
      }
    }
  }
  EXPECT_TRUE(std::all_of(written.begin(), written.end(), [](int times) { return times == 1; }));
  return y;
}

/// Under a sanitizer two of the four sizes of a batch and the smaller blocks: compiling them all takes two
/// minutes there, of text that is the same.
constexpr bool all_sizes = !HOSTLESS_ADDRESS_SANITIZER && !HOSTLESS_THREAD_SANITIZER;

inline std::vector<int> compiled(std::vector<int> blocks) {
  if (!all_sizes) std::erase_if(blocks, [](int block) { return block > 3; });
  return blocks;
}

template <int B>
std::vector<double> multiply_with(int batch, DeviceRows const& rows, std::vector<double> const& x,
                                  bool is_rounded) {
  switch (batch) {
    case 1:
      if constexpr (all_sizes) return multiply_in_batches<B, 1>(rows, x, is_rounded);
      [[fallthrough]];
    case 2:
      return multiply_in_batches<B, 2>(rows, x, is_rounded);
    case 3:
      if constexpr (all_sizes) return multiply_in_batches<B, 3>(rows, x, is_rounded);
      [[fallthrough]];
    default:
      return multiply_in_batches<B, 4>(rows, x, is_rounded);
  }
}

/// Kernels that have an fp32 copy of the values too, and use it where `is_rounded`.
inline std::vector<double> multiply_on_device(DeviceRows const& rows, int batch, std::vector<double> const& x,
                                              bool is_rounded = false) {
  switch (rows.tiling.block) {
    case 2:
      return multiply_with<2>(batch, rows, x, is_rounded);
    case 3:
      return multiply_with<3>(batch, rows, x, is_rounded);
    case 1:
      return multiply_with<1>(batch, rows, x, is_rounded);
    default:
      break;
  }
  if constexpr (all_sizes) {
    if (rows.tiling.block == 4) return multiply_with<4>(batch, rows, x, is_rounded);
    if (rows.tiling.block == 6) return multiply_with<6>(batch, rows, x, is_rounded);
  }
  throw std::logic_error("blocks of this size are not compiled here");
}

inline void expect_bits(std::vector<double> const& y, std::vector<double> const& expected,
                        std::string const& what) {
  ASSERT_EQ(y.size(), expected.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(std::memcmp(&y[i], &expected[i], sizeof(double)), 0)
        << what << ": row " << i << " is " << y[i] << ", not " << expected[i];
  }
}

constexpr DeviceRequest automatic{}, diagonals{false, DeviceFormat::diagonals, true},
    all_diagonals{false, DeviceFormat::diagonals, false}, sell{false, DeviceFormat::sell, true},
    csr{false, DeviceFormat::csr, true};

inline DeviceRows lay_out(Oracle const& oracle, int block, int slices, DeviceRequest request) {
  return make_device_rows(oracle.rows(), tiling_of(oracle, block, slices), request);
}

inline Oracle rounded(Oracle oracle) {
  for (auto& row : oracle.row)
    for (auto& [column, value] : row) value = static_cast<double>(static_cast<float>(value));
  return oracle;
}

inline void expect_equal_bits(Oracle const& oracle, int block, int slices,
                              std::vector<DeviceRequest> const& requests, std::string const& what,
                              std::vector<int> const& batches = {1, 2, 3, 4}) {
  std::vector<double> const x = random_vector(oracle.columns(), 5), expected = oracle.multiply(x);
  expect_bits(multiply(LocalMatrix(oracle.rows(), tiling_of(oracle, block, slices)), x), expected, what);
  for (DeviceRequest const& request : requests) {
    DeviceRows const rows = lay_out(oracle, block, slices, request);
    EXPECT_TRUE(request.automatic || rows.format == request.format);
    for (int batch : batches) {
      expect_bits(multiply_on_device(rows, batch, x), expected,
                  what + ", block " + std::to_string(block) + ", " + std::to_string(slices) +
                      " slices, batches of " + std::to_string(batch) + ": " + rows.why);
    }
  }
}

/// Every entry becomes a block of random values; where `mirrored`, (j, i) is the transpose of (i, j).
inline Oracle in_blocks(Oracle const& a, int b, unsigned seed, bool mirrored) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-2.0, 2.0);
  Oracle wide;
  wide.ghosts = a.ghosts * b;
  wide.below = a.below * b;
  wide.row.resize(a.row.size() * static_cast<std::size_t>(b));
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(a.row.size()); ++i) {
    for (auto const& [j, value] : a.row[i]) {
      for (int r = 0; r < b; ++r) {
        for (int c = 0; c < b; ++c) {
          bool const image = mirrored && (j < i || (j == i && c < r));
          wide.row[i * b + r][j * b + c] = image ? wide.row[j * b + c].at(i * b + r) : uniform(random);
        }
      }
    }
  }
  return wide;
}

/// The lattices whose numbers of diagonals have loops of their own, 3, 5 and 7, and one with another number.
inline std::vector<std::pair<std::string, Oracle>> lattices() {
  Oracle nine = seven_point(90, 9, 1);
  for (std::int32_t i = 0; i + 91 < static_cast<std::int32_t>(nine.row.size()); ++i)
    nine.row[i][i + 91] = nine.row[i + 91][i] = 0.25 + i;
  std::vector<std::pair<std::string, Oracle>> all = {{"3 diagonals", seven_point(803, 1, 1)},
                                                     {"5 diagonals", seven_point(101, 8, 1)},
                                                     {"7 diagonals", seven_point(20, 8, 5)},
                                                     {"9 diagonals", nine}};
  return all;
}

}  // namespace hostless::test
