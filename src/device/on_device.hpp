#pragma once
// Which GPU is in use, and in which one's memory something lies.

#include "device/memory.hpp"

namespace hostless::gpu {

/// Another GPU while it lives.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    check(HOSTLESS_GPU(GetDevice)(&before_), "asking which GPU is in use");
    if (before_ == device) return;
    is_changed_ = true;
    auto const chosen = HOSTLESS_GPU(SetDevice)(device);
    if (chosen != HOSTLESS_GPU(Success))
      (void)HOSTLESS_GPU(SetDevice)(before_);  // it may be in use all the same
    check(chosen, "choosing a GPU");
  }
  OnDevice(OnDevice const&) = delete;
  OnDevice& operator=(OnDevice const&) = delete;
  ~OnDevice() {
    if (is_changed_) (void)HOSTLESS_GPU(SetDevice)(before_);
  }

 private:
  int before_ = 0;
  bool is_changed_ = false;
};

/// Whether what is queued becomes part of a graph.
inline bool is_recording(HOSTLESS_GPU(Stream_t) stream) {
  HOSTLESS_GPU(StreamCaptureStatus) status{};
  check(HOSTLESS_GPU(StreamIsCapturing)(stream, &status), "asking whether a stream records");
  return status != HOSTLESS_GPU(StreamCaptureStatusNone);
}

/// GPUs that this process sees; none where there is no driver.
inline int visible_gpus() {
  int count = 0;
  if (HOSTLESS_GPU(GetDeviceCount)(&count) == HOSTLESS_GPU(Success)) return count;
  (void)HOSTLESS_GPU(GetLastError)();
  return 0;
}

/// The vendors name what they tell of a pointer differently.
template <class Code, class Attributes>
int device_of(Code (*ask)(Attributes*, void const*), void const* address) {
  Attributes attributes{};
  if (ask(&attributes, address) != HOSTLESS_GPU(Success)) {
    (void)HOSTLESS_GPU(GetLastError)();
    return -1;
  }
  return attributes.devicePointer != nullptr ? attributes.device : -1;
}

/// The GPU in whose memory an address lies; -1: in none.
inline int device_of(void const* address) {
  auto const ask = [address] { return device_of(&HOSTLESS_GPU(PointerGetAttributes), address); };
  int found = ask(), devices = 0;
  check(HOSTLESS_GPU(GetDeviceCount)(&devices), "counting GPUs");
  // A runtime knows the memory of GPUs that it has used. The caller's has its own copy of one.
  for (int device = 0; found < 0 && device < devices; ++device) {
    try {
      OnDevice const on(device);
      found = ask();
    } catch (Error const&) {  // a GPU that cannot be used has not been used by the caller either
    }
  }
  return found;
}

/// Whether the host may have it: pinned memory and managed memory have an address on a GPU as well. Where a
/// vendor does not say, it may.
template <class Code, class Attributes>
bool is_of_host(Code (*ask)(Attributes*, void const*), void const* address) {
  Attributes attributes{};
  if constexpr (requires { attributes.hostPointer; }) {
    if (ask(&attributes, address) == HOSTLESS_GPU(Success)) return attributes.hostPointer != nullptr;
    (void)HOSTLESS_GPU(GetLastError)();
    return false;
  }
  return true;
}
inline bool is_of_host(void const* address) {
  return is_of_host(&HOSTLESS_GPU(PointerGetAttributes), address);
}

}  // namespace hostless::gpu
