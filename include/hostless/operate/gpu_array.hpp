#pragma once

#include <cstdint>
#include <memory>

namespace hostless {

/// All that somebody has queued on a stream of a GPU up to now: whoever uses that GPU's memory waits for it
/// there.
class GpuMoment {
 public:
  virtual ~GpuMoment() = default;
};

/// Numbers of somebody else in the memory of a GPU of this process. They stay where they are, and must live
/// and not change for as long as whoever was given them says.
struct GpuArray {
  enum class Number : std::uint8_t { fp64, fp32, int32, int64 };
  void* address = nullptr;  ///< of the first one
  std::int64_t size = 0;
  std::int64_t stride = 1;  ///< numbers from one to the next; may be negative
  Number number = Number::fp64;
  int device = 0;                          ///< as this process counts GPUs
  std::shared_ptr<GpuMoment const> after;  ///< null: nothing to wait for
};

/// Compressed rows of a whole square matrix in the memory of one GPU, as a caller has them: offsets and
/// columns int32 or int64, values fp64 or fp32; offsets[0] == 0, columns rise inside a row.
struct GpuRows {
  std::int64_t rows = 0;
  GpuArray offsets, columns, values;
};

}  // namespace hostless
