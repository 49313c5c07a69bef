#include "operate/gpu/device_rows_copy.hpp"

#include <algorithm>
#include <cstdio>

#include "device/block.hpp"
#include "operate/fp32.hpp"
#include "operate/gpu/caller_arrays.hpp"
#include "operate/gpu/caller_rows.hpp"
#include "operate/gpu/matrix_work.hpp"
#include "operate/gpu/numbers.gpu.hpp"

namespace hostless::gpu {
namespace {

/// to = from in fp32; `unfit` becomes the index of the first value that does not fit.
__global__ void round_kernel(double const* from, float* to, std::int64_t count, unsigned long long* unfit) {
  std::int64_t const step = std::int64_t{gridDim.x} * block_threads;
  for (std::int64_t k = std::int64_t{blockIdx.x} * block_threads + threadIdx.x; k < count; k += step) {
    to[k] = static_cast<float>(from[k]);
    if (!fits_fp32(from[k])) atomicMin(unfit, static_cast<unsigned long long>(k));
  }
}

}  // namespace

void DeviceRowsCopy::put(DeviceRows const& rows) {
  view_ = RowsView{};
  view_.format = rows.format;
  view_.tiling = rows.tiling;
  view_.farthest = rows.farthest;
  if (rows.is_made_there()) {
    make(value_, rows.made_there.value);
    make(narrow_, rows.made_there.narrow);
    make(wide_, rows.made_there.wide);
    make(start_, rows.made_there.start);
  } else {
    put_values(rows);
    copy(narrow_, rows.narrow);
    copy(wide_, rows.wide);
    copy(start_, rows.start);
  }
  copy(group_, rows.group);
  copy(mask_, rows.mask);
  copy(first_group_, rows.first_group);
  view_.diagonals = rows.diagonals;
  view_.diagonals.value = value_.data() + rows.origin;
  view_.sell = SellView{first_group_.data(), group_.data(), mask_.data(), value_.data(), nullptr,
                        narrow_.data(),      wide_.data()};
  view_.csr = CsrView{start_.data(), wide_.data(), value_.data(), nullptr, rows.tiling.threads_per_row};
  LayoutArrays const arrays{value_.data(), rows.origin,   narrow_.data(),
                            wide_.data(),  start_.data(), rows.made_there.value};
  if (rows.recipe) {
    recipe_ = Array<problems::Recipe>(1);
    recipe_.put(rows.recipe.get(), 1);
    generate_rows(view_, arrays, recipe_.data());
  } else if (rows.share) {
    put_share(rows, arrays);
  }
  if (is_rounded_) round(rows.origin);
  if (multiplied_apart(rows.format)) {
    auto const products = static_cast<std::size_t>(rows.tiling.rows());
    if (ready_.size() != products) ready_ = Array<double>(products);
    view_.ready = ready_.data();
  }
}

void DeviceRowsCopy::diagonal_blocks(double* to, MemoryMark& memory) const {
  constexpr std::int64_t together = 1 << 20;
  std::int64_t const block_rows = view_.tiling.block_rows,
                     square = std::int64_t{view_.tiling.block} * view_.tiling.block;
  Array<double> piece(static_cast<std::size_t>(std::min(together, block_rows) * square));
  memory.look();
  for (std::int64_t first = 0; first < block_rows; first += together) {
    std::int64_t const count = std::min(together, block_rows - first);
    read_diagonal(view_, first, count, piece.data());
    piece.get(to + first * square, static_cast<std::size_t>(count * square));
  }
}

void DeviceRowsCopy::round(std::int64_t origin) {
  if (rounded_.size() != value_.size()) {
    rounded_ = Array<float>();
    rounded_ = Array<float>(value_.size());
  }
  constexpr int blocks = 1024;
  double const* from = value_.data();
  float* to = rounded_.data();
  auto count = static_cast<std::int64_t>(value_.size());
  auto unfit = static_cast<unsigned long long>(count);
  Array<unsigned long long> first(1);
  first.put(&unfit, 1);
  unsigned long long* found = first.data();
  void* parameters[] = {&from, &to, &count, &found};
  check(HOSTLESS_GPU(LaunchKernel)(reinterpret_cast<void const*>(&round_kernel), dim3(blocks),
                                   dim3(block_threads), parameters, 0, nullptr),
        "launching a kernel");
  // bounded: a kernel that waits for nobody
  check(HOSTLESS_GPU(DeviceSynchronize)(), "rounding the matrix");
  first.get(&unfit, 1);
  if (unfit < static_cast<unsigned long long>(count)) {  // where the host has the values, it has said the row
    double value = 0;
    value_.get(&value, 1, unfit);
    char text[32];
    std::snprintf(text, sizeof text, "%.6e", value);
    throw Error(ErrorCode::bad_input, std::string("value ") + text +
                                          " of the matrix does not fit fp32 (it would become infinite or "
                                          "zero). Use matrix precision fp64.");
  }
  view_.diagonals.rounded = to + origin;
  view_.sell.rounded = view_.csr.rounded = to;
}

void DeviceRowsCopy::put_share(DeviceRows const& rows, LayoutArrays const& to) {
  int const there = rows.share->rows.offsets.device;
  if (there == device_) return lay_out_share(*rows.share, view_, to);
  OnDevice const on(there);
  DeviceRowsCopy made(false, there);
  made.put(rows);
  auto const bring = [&](auto& mine, auto const& from) {
    copy_between(mine.data(), device_, from.data(), there, from.bytes());
  };
  bring(value_, made.value_);
  bring(narrow_, made.narrow_);
  bring(wide_, made.wide_);
  bring(start_, made.start_);
}

void DeviceRowsCopy::put_values(DeviceRows const& rows) {
  if (!rows.value_indices || rows.from.device == device_) copy(value_, rows.value);
  if (!rows.value_indices) return;
  if (value_.size() != rows.value.size()) {
    value_ = Array<double>();
    value_ = Array<double>(rows.value.size());
  }
  gather_values(rows, value_, device_);
}

}  // namespace hostless::gpu
