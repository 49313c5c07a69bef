#pragma once
// A matrix in the memory of one GPU, in one of the formats of kernels.

#include "device/memory.hpp"
#include "operate/device_rows.hpp"
#include "operate/gpu/generate.impl.hpp"

namespace hostless::gpu {

/// The most device memory that was taken since it was made, by this process or by others.
class MemoryMark {
 public:
  void look() {
    std::size_t free_now = 0, total = 0;
    check(HOSTLESS_GPU(MemGetInfo)(&free_now, &total), "asking a GPU for its memory");
    auto const now = static_cast<std::int64_t>(free_now);
    if (before_ < 0) before_ = least_ = now;
    least_ = std::min(least_, now);
  }
  std::int64_t taken() const { return before_ - least_; }

 private:
  std::int64_t before_ = -1, least_ = -1;
};

class DeviceRowsCopy {
 public:
  DeviceRowsCopy(bool is_rounded, int device) : is_rounded_(is_rounded), device_(device) {}
  void put(DeviceRows const& rows);
  /// The diagonal, in pieces, for little memory.
  void diagonal_blocks(double* to, MemoryMark& memory) const;
  RowsView const& view() const { return view_; }
  std::int64_t entries() const { return static_cast<std::int64_t>(value_.size()); }  // of CSR
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(value_.bytes() + rounded_.bytes() + narrow_.bytes() + wide_.bytes() +
                                     start_.bytes() + group_.bytes() + mask_.bytes() + first_group_.bytes() +
                                     ready_.bytes());
  }
  bool guards_hold() const {
    return value_.guards_hold() && rounded_.guards_hold() && narrow_.guards_hold() && wide_.guards_hold() &&
           start_.guards_hold() && group_.guards_hold() && mask_.guards_hold() &&
           first_group_.guards_hold() && recipe_.guards_hold() && ready_.guards_hold();
  }

 private:
  void round(std::int64_t origin);
  /// By kernels of the GPU that has the caller's arrays.
  void put_share(DeviceRows const& rows, LayoutArrays const& to);
  void put_values(DeviceRows const& rows);
  template <class T, class Allocator>
  static void copy(Array<T>& to, std::vector<T, Allocator> const& from) {
    if (to.size() != from.size()) {
      to = Array<T>();
      to = Array<T>(from.size());
    }
    to.put(from.data(), from.size());
  }
  template <class T>
  static void make(Array<T>& to, std::int64_t size) {
    if (to.size() != static_cast<std::size_t>(size)) {
      to = Array<T>();
      to = Array<T>(static_cast<std::size_t>(size));
    }
    to.clear();
  }
  bool is_rounded_;
  int device_;
  Array<double> value_, ready_;
  Array<float> rounded_;
  Array<std::uint16_t> narrow_;
  Array<std::int32_t> wide_, first_group_;
  Array<std::int64_t> start_;
  Array<DeviceGroup> group_;
  Array<std::uint32_t> mask_;
  Array<problems::Recipe> recipe_;
  RowsView view_;
};

}  // namespace hostless::gpu
