#pragma once
// Values that somebody else's array on a GPU holds: gathered into a layout, compared with their mirrors, and
// vectors between the caller's order and the plan's. Bodies; one number each.

#include <cmath>
#include <cstdint>

#include "hostless/base/host_device.hpp"
#include "hostless/operate/gpu_array.hpp"

namespace hostless::gpu {

/// What a kernel reads or writes of a GpuArray.
struct Numbers {
  void* first = nullptr;
  std::int64_t stride = 1;
  GpuArray::Number number = GpuArray::Number::fp64;

  HOSTLESS_HOST_DEVICE double at(std::int64_t k) const {
    if (number == GpuArray::Number::fp32)
      return static_cast<double>(static_cast<float const*>(first)[k * stride]);
    return static_cast<double const*>(first)[k * stride];
  }
  HOSTLESS_HOST_DEVICE void put(std::int64_t k, double value) const {
    if (number == GpuArray::Number::fp32) {
      static_cast<float*>(first)[k * stride] = static_cast<float>(value);
    } else {
      static_cast<double*>(first)[k * stride] = value;
    }
  }
  HOSTLESS_HOST_DEVICE std::int64_t whole(std::int64_t k) const {
    if (number == GpuArray::Number::int32) return static_cast<std::int32_t const*>(first)[k * stride];
    return static_cast<std::int64_t const*>(first)[k * stride];
  }
};
inline Numbers numbers_of(GpuArray const& array) { return {array.address, array.stride, array.number}; }

/// The value that belongs where a layout holds its index + 1; 0 is where no entry is.
HOSTLESS_HOST_DEVICE double value_of(double value_index, Numbers const& values) {
  return value_index > 0 ? values.at(static_cast<std::int64_t>(value_index) - 1) : 0.0;
}

/// Compressed rows of a whole matrix, columns rising inside a row.
struct RowsOfCaller {
  std::int64_t rows = 0;
  Numbers offset, column, value;
};

inline RowsOfCaller numbers_of(GpuRows const& rows) {
  return {rows.rows, numbers_of(rows.offsets), numbers_of(rows.columns), numbers_of(rows.values)};
}

/// Where an entry lies; -1: it is not stored.
HOSTLESS_HOST_DEVICE std::int64_t find_entry(RowsOfCaller const& a, std::int64_t row, std::int64_t column) {
  std::int64_t low = a.offset.whole(row);
  std::int64_t const end = a.offset.whole(row + 1);
  for (std::int64_t high = end; low < high;) {
    std::int64_t const middle = low + (high - low) / 2;
    if (a.column.whole(middle) < column) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < end && a.column.whole(low) == column ? low : -1;
}

HOSTLESS_HOST_DEVICE double entry_at(RowsOfCaller const& a, std::int64_t row, std::int64_t column) {
  std::int64_t const k = find_entry(a, row, column);
  return k < 0 ? 0.0 : a.value.at(k);
}

HOSTLESS_HOST_DEVICE bool same_bits(double a, double b) {
  return __builtin_bit_cast(std::uint64_t, a) == __builtin_bit_cast(std::uint64_t, b);
}

/// How far an entry is from its mirror, in the size of both and of their diagonals, and never in less than the smallest
/// normal number, whose spacing denormal ones have; 0 of NaN and infinity, which the solve finds. `differs`: in their
/// bits.
HOSTLESS_HOST_DEVICE double mirror_difference(RowsOfCaller const& a, std::int64_t row, std::int64_t k,
                                              bool& differs) {
  std::int64_t const column = a.column.whole(k);
  if (column == row) return 0;
  double const value = a.value.at(k), other = entry_at(a, column, row);
  if (same_bits(value, other)) return 0;
  differs = true;
  if (value == other) return 0;
  double const diagonals = sqrt(fabs(entry_at(a, row, row))) * sqrt(fabs(entry_at(a, column, column)));
  constexpr double least_normal = 0x1p-1022;
  double const size = fmax(fmax(fmax(fabs(value), fabs(other)), diagonals), least_normal);
  double difference = fabs(value - other) / size;
  if (value - value == 0 && other - other == 0 && difference - difference != 0)  // which fp64 does not hold
    difference = fabs(0.5 * value - 0.5 * other) / (0.5 * size);
  return difference - difference == 0 ? difference : 0.0;
}

}  // namespace hostless::gpu
