#pragma once
// Memory, streams and events of the current device. Every call is checked once; a failure is an Error.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/runtime.hpp"
#include "hostless/base/error.hpp"
#include "hostless/base/wait.hpp"

namespace hostless::gpu {

/// Errors  environment  with the vendor's words and what was attempted
inline void check(HOSTLESS_GPU(Error_t) code, char const* attempt) {
  if (code == HOSTLESS_GPU(Success)) return;
  (void)HOSTLESS_GPU(GetLastError)();
  bool const memory = code == HOSTLESS_GPU(ErrorMemoryAllocation);
  throw Error(ErrorCode::environment, std::string(attempt) +
                                          " failed: " + HOSTLESS_GPU(GetErrorString)(code) + " (" +
                                          HOSTLESS_GPU_NAME + "). " +
                                          (memory ? "Use a smaller problem or another GPU."
                                                  : "Run `hostless doctor` to see what this GPU can do."));
}

/// Whether arrays are surrounded by guard bytes that are looked at when they go (HOSTLESS_GPU_GUARD=1).
bool guarded();
constexpr std::size_t guard_bytes = 256;
constexpr unsigned char guard_value = 0xa5;

/// Bytes that arrays have been copied to and from, by all threads.
struct CopiedBytes {
  std::atomic<std::int64_t> to_gpu{0}, to_host{0}, between_gpus{0};
};
inline CopiedBytes copied_bytes;

/// Memory is lent to other processes by whole pages of this size: what is lent must not share one.
constexpr std::size_t lent_page = std::size_t{2} << 20;
using LentHandle = HOSTLESS_GPU(IpcMemHandle_t);

/// Memory of somebody else that arrays are cut from, one after the other.
class Arena {
 public:
  Arena(std::byte* base, std::int64_t bytes) : base_(base), bytes_(bytes) {}
  /// Errors  environment  nothing so large is left
  void* take(std::size_t bytes) {
    constexpr std::int64_t line = 512;
    auto const all = (static_cast<std::int64_t>(bytes) + line - 1) / line * line;
    if (all > bytes_ - taken_)
      throw Error(ErrorCode::environment, "cutting " + std::to_string(bytes) + " bytes from " +
                                              std::to_string(bytes_) +
                                              " of a library (its size was computed). "
                                              "Report it.");
    return base_ + std::exchange(taken_, taken_ + all);
  }
  std::int64_t offset_of(void const* address) const { return static_cast<std::byte const*>(address) - base_; }

 private:
  std::byte* base_;
  std::int64_t bytes_, taken_ = 0;
};

/// Who else stores to an array: processes that open it through the driver, those that find it by its offset in
/// an arena; and other GPUs, while kernels of its own poll it.
struct Lending {
  bool to_processes = false;
  Arena* arena = nullptr;
  bool to_gpus = false;
};

/// [size] values in device memory: an allocation of its own, never from a pool; or cut from an arena.
template <class T>
class Array {
 public:
  Array() = default;
  // It is whole, and given back, as soon as the first constructor is done: marking guards may fail.
  explicit Array(std::size_t size, Lending lending = {}) : Array() {
    size_ = size;
    is_cut_ = lending.arena != nullptr;
    if (size == 0) return;
    std::size_t const guards = guarded() ? 2 * guard_bytes : 0;
    std::size_t bytes = size * sizeof(T) + guards;
    if (lending.to_processes) bytes = (bytes + lent_page - 1) / lent_page * lent_page;
    void* memory = is_cut_ ? lending.arena->take(bytes) : nullptr;
    if (!is_cut_)
      check(lending.to_gpus ? allocate_polled(&memory, bytes) : HOSTLESS_GPU(Malloc)(&memory, bytes),
            "allocating device memory");
    block_ = static_cast<unsigned char*>(memory);
    if (guards != 0) {
      check(HOSTLESS_GPU(Memset)(block_, guard_value, guard_bytes), "marking a guard");
      check(HOSTLESS_GPU(Memset)(block_ + guard_bytes + size * sizeof(T), guard_value, guard_bytes),
            "marking a guard");
      settle();
      guard_ = guard_bytes;
    }
  }
  Array(Array&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        guard_(other.guard_),
        is_cut_(other.is_cut_) {}
  Array& operator=(Array&& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(size_, other.size_);
    std::swap(guard_, other.guard_);
    std::swap(is_cut_, other.is_cut_);
    return *this;
  }
  ~Array() {
    if (block_ != nullptr && !is_cut_) (void)HOSTLESS_GPU(Free)(block_);
  }

  /// Of the allocation, which begins `guard` bytes before data().
  LentHandle lend(std::size_t& guard) const {
    LentHandle handle{};
    check(HOSTLESS_GPU(IpcGetMemHandle)(&handle, block_), "lending device memory to another process");
    guard = guard_;
    return handle;
  }
  T* data() const { return reinterpret_cast<T*>(block_ + guard_); }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }
  void clear() {
    if (size_ != 0) check(HOSTLESS_GPU(Memset)(data(), 0, bytes()), "clearing device memory");
    settle();
  }
  void put(T const* from, std::size_t count, std::size_t first = 0) {
    if (count != 0)
      check(HOSTLESS_GPU(Memcpy)(data() + first, from, count * sizeof(T), HOSTLESS_GPU(MemcpyHostToDevice)),
            "copying to the GPU");
    copied_bytes.to_gpu.fetch_add(static_cast<std::int64_t>(count * sizeof(T)), std::memory_order_relaxed);
    settle();
  }
  void get(T* to, std::size_t count, std::size_t first = 0) const {
    if (count != 0)
      check(HOSTLESS_GPU(Memcpy)(to, data() + first, count * sizeof(T), HOSTLESS_GPU(MemcpyDeviceToHost)),
            "copying from the GPU");
    copied_bytes.to_host.fetch_add(static_cast<std::int64_t>(count * sizeof(T)), std::memory_order_relaxed);
  }
  /// False: something was written outside the array.
  bool guards_hold() const {
    if (guard_ == 0 || size_ == 0) return true;
    std::vector<unsigned char> bytes_around(2 * guard_bytes);
    check(HOSTLESS_GPU(Memcpy)(bytes_around.data(), block_, guard_bytes, HOSTLESS_GPU(MemcpyDeviceToHost)),
          "reading a guard");
    check(HOSTLESS_GPU(Memcpy)(bytes_around.data() + guard_bytes, block_ + guard_bytes + bytes(), guard_bytes,
                               HOSTLESS_GPU(MemcpyDeviceToHost)),
          "reading a guard");
    for (unsigned char byte : bytes_around)
      if (byte != guard_value) return false;
    return true;
  }

 private:
  // Copies from pageable memory and fills return before they are done, and the streams of this project do not
  // wait for the default one.
  static void settle() {
    check(HOSTLESS_GPU(StreamSynchronize)(nullptr), "waiting for copies to the GPU");  // bounded: copies
  }
  unsigned char* block_ = nullptr;
  std::size_t size_ = 0, guard_ = 0;
  bool is_cut_ = false;
};

/// [size] values in host memory that copies to and from the GPU use as it is.
template <class T>
class Pinned {
 public:
  Pinned() = default;
  explicit Pinned(std::size_t size) : Pinned() {  // whole, and given back, when mapping fails
    size_ = size;
    if (size == 0) return;
    void* memory = nullptr;
    check(HOSTLESS_MAPPED_ALLOCATE(&memory, size * sizeof(T)), "allocating pinned host memory");
    values_ = static_cast<T*>(memory);
    check(HOSTLESS_GPU(HostGetDevicePointer)(&memory, values_, 0), "mapping pinned host memory");
    device_ = static_cast<T*>(memory);
  }
  Pinned(Pinned const&) = delete;
  Pinned& operator=(Pinned const&) = delete;
  ~Pinned() {
    if (values_ != nullptr) (void)HOSTLESS_MAPPED_FREE(values_);
  }
  T* data() const { return values_; }
  /// The same for kernels.
  T* device() const { return device_; }
  std::size_t size() const { return size_; }

 private:
  T *values_ = nullptr, *device_ = nullptr;
  std::size_t size_ = 0;
};

/// One value in host memory that kernels can read and write while they run.
template <class T>
class Mapped {
 public:
  Mapped() : memory_(1) { new (memory_.data()) T{}; }
  T volatile& host() const { return *memory_.data(); }
  T* device() const { return memory_.device(); }
  /// For copies between it and the GPU.
  T* data() const { return memory_.data(); }

 private:
  Pinned<T> memory_;
};

class Stream {
 public:
  Stream() {
    check(HOSTLESS_GPU(StreamCreateWithFlags)(&stream_, HOSTLESS_GPU(StreamNonBlocking)),
          "creating a stream");
  }
  /// Whose blocks begin before those of other streams that wait for room.
  static Stream first() {
    int last = 0, first = 0;
    check(HOSTLESS_GPU(DeviceGetStreamPriorityRange)(&last, &first), "asking for the priorities of streams");
    Stream stream{nullptr};
    check(HOSTLESS_GPU(StreamCreateWithPriority)(&stream.stream_, HOSTLESS_GPU(StreamNonBlocking), first),
          "creating a stream");
    return stream;
  }
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&&) = delete;
  ~Stream() {
    if (stream_ != nullptr) (void)HOSTLESS_GPU(StreamDestroy)(stream_);
  }
  HOSTLESS_GPU(Stream_t) get() const { return stream_; }
  /// As long as what is queued takes. Kernels that wait for others end by a deadline of their own.
  void wait() const {
    check(HOSTLESS_GPU(StreamSynchronize)(stream_), "waiting for the GPU");  // bounded: see above
  }
  /// False: not by then.
  bool wait_until(Deadline deadline) const {
    return wait_for([this] { return done(); }, [] { return false; }, deadline) == Waited::done;
  }
  /// True when all that was queued is done.
  bool done() const {
    auto const code = HOSTLESS_GPU(StreamQuery)(stream_);
    if (code == HOSTLESS_GPU(ErrorNotReady)) return false;
    check(code, "running on the GPU");
    return true;
  }

 private:
  explicit Stream(std::nullptr_t) {}
  HOSTLESS_GPU(Stream_t) stream_ = nullptr;
};

/// A point on a stream, for order alone: the GPU writes no time down.
class Event {
 public:
  Event() : Event(HOSTLESS_GPU(EventDisableTiming)) {}
  Event(Event const&) = delete;
  Event& operator=(Event const&) = delete;
  ~Event() { (void)HOSTLESS_GPU(EventDestroy)(event_); }
  void record(Stream const& stream) { record(stream.get()); }
  void record(HOSTLESS_GPU(Stream_t) stream) {
    check(HOSTLESS_GPU(EventRecord)(event_, stream), "recording an event");
  }
  /// What is queued on the stream from here on comes after this point.
  void hold(Stream const& stream) const { hold(stream.get()); }
  void hold(HOSTLESS_GPU(Stream_t) stream) const {
    check(HOSTLESS_GPU(StreamWaitEvent)(stream, event_, 0), "having a stream wait for another");
  }
  /// Whether what was queued before it is done; so before it was ever recorded.
  bool passed() const {
    auto const code = HOSTLESS_GPU(EventQuery)(event_);
    if (code == HOSTLESS_GPU(ErrorNotReady)) return false;
    check(code, "running on the GPU");
    return true;
  }

 protected:
  explicit Event(unsigned flags) {
    check(HOSTLESS_GPU(EventCreateWithFlags)(&event_, flags), "creating an event");
  }
  HOSTLESS_GPU(Event_t) event_ = nullptr;
};

/// That a thread may sleep for.
class SleepingEvent : public Event {
 public:
  SleepingEvent() : Event(HOSTLESS_GPU(EventDisableTiming) | HOSTLESS_GPU(EventBlockingSync)) {}
  /// As long as what was queued before it takes. Kernels that wait for others end by a deadline of their own.
  void sleep() const {
    check(HOSTLESS_GPU(EventSynchronize)(event_), "running on the GPU");  // bounded: see above
  }
};

/// With its time.
class TimedEvent : public Event {
 public:
  TimedEvent() : Event(HOSTLESS_GPU(EventDefault)) {}
  double seconds_since(TimedEvent const& begin) const {
    float milliseconds = 0;
    check(HOSTLESS_GPU(EventElapsedTime)(&milliseconds, begin.event_, event_), "reading an event");
    return milliseconds * 1e-3;
  }
};

}  // namespace hostless::gpu
