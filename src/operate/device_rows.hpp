#pragma once
// A matrix as kernels read it: layouts for thousands of lanes, made on the host from the same rows as
// LocalMatrix and multiplied in the same order (a row's products in rising column, acc = fma(value, x, acc)
// from +0.0), hence with the same bits.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hostless/operate/local_rows.hpp"
#include "hostless/plan/tiling.hpp"

namespace hostless {

enum class DeviceFormat : std::uint8_t {
  diagonals,  ///< every entry lies on one of a few diagonals (BSR: of blocks); symmetric: one triangle is
              ///< stored
  sell,       ///< sliced ELL: groups of 32 leaves, padded to the longest, 16- or 32-bit leaf columns
  csr         ///< rows one after the other, 32-bit columns
};
char const* name(DeviceFormat format);

constexpr int most_diagonals = 32;
constexpr int tile_leaves = 32;

/// value[tile * planes * 32 + plane * 32 + lane]: tile and lane of the leaf; block k of a leaf is the b * b
/// planes from plane[k] on, column-major. The first `mirrored` diagonals lie below the main one and are read
/// from the other triangle: transposed, from the leaf they point at.
struct DiagonalsView {
  int count = 0, mirrored = 0, planes = 0;
  std::int32_t lowest = 0, highest = 0;      ///< leaves
  std::int32_t offset[most_diagonals] = {};  ///< column leaf - row leaf, rising
  std::int32_t plane[most_diagonals] = {};
  double const* value = nullptr;
};

/// 32 leaves of one slice: block k of a lane at value + (k * b * b) * 32 + lane, its planes 32 apart,
/// column-major.
struct DeviceGroup {
  std::int64_t value = 0;
  std::int64_t column = 0;  ///< in `narrow` or `wide`
  std::int32_t width = 0;   ///< blocks
  std::int32_t base = 0;    ///< narrow: column = base + stored
  std::int32_t wide = 0;
  std::int32_t unused = 0;
};
struct SellView {
  std::int32_t const* first_group = nullptr;  ///< [slices + 1]
  DeviceGroup const* group = nullptr;
  double const* value = nullptr;
  std::uint16_t const* narrow = nullptr;
  std::int32_t const* wide = nullptr;
};

struct CsrView {
  std::int64_t const* start = nullptr;  ///< [rows + 1]
  std::int32_t const* column = nullptr;
  double const* value = nullptr;
};

/// What kernels see; a phase's threads all take the same branch.
struct RowsView {
  DeviceFormat format = DeviceFormat::csr;
  Tiling tiling;
  DiagonalsView diagonals;
  SellView sell;
  CsrView csr;
};

struct DeviceRequest {
  bool automatic = true;
  DeviceFormat format = DeviceFormat::diagonals;
  bool halves = true;  ///< store once what both triangles hold alike, bit for bit
};

/// The layout in host memory, ready to be copied.
struct DeviceRows {
  DeviceFormat format = DeviceFormat::csr;
  Tiling tiling;
  DiagonalsView diagonals;  ///< its pointer is null here
  std::vector<std::int32_t> first_group;
  std::vector<DeviceGroup> group;
  std::vector<std::int64_t> start;
  std::vector<double> value;
  std::vector<std::uint16_t> narrow;
  std::vector<std::int32_t> wide;  ///< of CSR: its columns
  std::string why;                 ///< the bytes of a sweep of each candidate
  std::int64_t bytes_per_sweep() const {
    return static_cast<std::int64_t>(value.size() * 8 + narrow.size() * 2 + wide.size() * 4 +
                                     start.size() * 8 + group.size() * sizeof(DeviceGroup) +
                                     first_group.size() * 4);
  }
  /// For bodies that are tested on the host: a view of these arrays.
  RowsView view() const;
};

/// Errors  usage  a format that the matrix does not fit: more than 32 diagonals, or ghosts with `diagonals`
/// Cost    two passes over the rows, a third where the triangles of a halved layout turn out to differ; the
/// final bytes
DeviceRows make_device_rows(LocalRows const& rows, Tiling const& tiling, DeviceRequest request);

}  // namespace hostless
