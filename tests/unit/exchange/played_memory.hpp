#pragma once
// Memory that a library which plays a GPU takes for that GPU's.

#include <cstddef>
#include <mutex>
#include <vector>

namespace hostless::testing {

/// Memory that the library takes for a GPU's.
class PlayedMemory {
 public:
  struct Range {
    std::byte const *first, *last;
    int device;
  };
  static void add(Range const& range) {
    std::lock_guard const lock(mutex());
    all().push_back(range);
  }
  static void remove(std::byte const* first) {
    std::lock_guard const lock(mutex());
    std::erase_if(all(), [&](Range const& one) { return one.first == first; });
  }
  static int device_of(void const* address) {
    std::lock_guard const lock(mutex());
    for (Range const& one : all())
      if (address >= one.first && address < one.last) return one.device;
    return -1;
  }

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::vector<Range>& all() {
    static std::vector<Range> ranges;
    return ranges;
  }
};

class GpuBytes {
 public:
  explicit GpuBytes(std::size_t bytes, int device = 0) : bytes_(bytes + 1, std::byte{0xa5}) {
    PlayedMemory::add({bytes_.data(), bytes_.data() + bytes_.size(), device});
  }
  GpuBytes(GpuBytes const&) = delete;
  GpuBytes& operator=(GpuBytes const&) = delete;
  ~GpuBytes() { PlayedMemory::remove(bytes_.data()); }
  std::byte* data() { return bytes_.data(); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace hostless::testing
