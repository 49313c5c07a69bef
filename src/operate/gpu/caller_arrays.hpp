#pragma once
// Arrays of a caller in the memory of GPUs: values gathered into a layout, vectors between the caller's order
// and the plan's. Kernels run on the GPU whose memory the caller's array is in, so that nothing reads another
// GPU's memory, which may come from a pool that no other GPU sees; what they have packed is copied between
// GPUs.

#include <cstdint>
#include <memory>

#include "device/memory.hpp"
#include "device/on_device.hpp"
#include "hostless/operate/gpu_array.hpp"
#include "operate/device_rows.hpp"
#include "operate/gpu/mirror_facts.hpp"

namespace hostless::gpu {

std::shared_ptr<GpuMoment const> moment(int device, std::uintptr_t stream);
MirrorFacts compare_with_mirror(GpuRows const& rows);

/// Values that `rows.from` holds, where rows.value has their indices; `device` is in use before and after.
void gather_values(DeviceRows const& rows, Array<double>& to, int device);
/// The largest |value|, infinity where one is NaN.
double largest(double const* values, std::int64_t count);

/// Vectors of one rank, on its GPU.
class CallerVectors {
 public:
  /// caller_row: the caller's row of each own one; empty: they follow each other from first_row on.
  CallerVectors(int device, std::int64_t owned, std::int64_t first_row, std::vector<std::int64_t> caller_row);
  void take(GpuArray const& from, double* to) const;
  void give(double const* from, GpuArray const& to) const;
  std::int64_t bytes() const;

 private:
  /// What is kept on a GPU where a caller's array was seen.
  struct Slot {
    int device;
    Array<std::int64_t> row;  ///< of the caller; empty where they follow each other
    Array<double> packed;     ///< on another GPU than the rank's
  };
  Slot& slot_on(int device) const;
  void check_size(GpuArray const& array) const;
  std::size_t owned_bytes() const { return static_cast<std::size_t>(owned_) * sizeof(double); }

  int device_;
  std::int64_t owned_, first_row_;
  std::vector<std::int64_t> caller_row_;
  std::int64_t rows_needed_ = 0;
  mutable std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace hostless::gpu
