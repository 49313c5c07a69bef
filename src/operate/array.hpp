#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

namespace hostless {

/// Cache-line aligned memory that is not zeroed first (it is filled once, by the thread that will use it), on
/// huge pages where the system gives them: one product walks gigabytes, and x is read in jumps. Large arrays
/// begin at other places of their pages, as what a loop reads at the same places falls onto the same lines of a
/// cache.
template <class T>
struct ArrayAllocator {
  using value_type = T;
  ArrayAllocator() = default;
  template <class U>
  ArrayAllocator(ArrayAllocator<U> const&) noexcept {}

  T* allocate(std::size_t count) {
    if (count > (~std::size_t{0} >> 1) / sizeof(T)) throw std::bad_alloc();
    if (!is_large(count)) return reinterpret_cast<T*>(aligned(line, count * sizeof(T)));
    static std::atomic<std::size_t> made{0};
    std::size_t const shift = made.fetch_add(1, std::memory_order_relaxed) % starts * apart;
    std::size_t const bytes = shift + count * sizeof(T);
    std::byte* const memory = aligned(huge, bytes);
#if defined(MADV_HUGEPAGE)
    madvise(memory, bytes, MADV_HUGEPAGE);  // only advice: a refusal costs time, not results
#endif
    return reinterpret_cast<T*>(memory + shift);
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    std::byte* const begin = reinterpret_cast<std::byte*>(memory);
    std::free(is_large(count) ? begin - reinterpret_cast<std::uintptr_t>(begin) % huge : begin);
  }
  template <class U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
  }
  bool operator==(ArrayAllocator const&) const { return true; }

 private:
  static constexpr std::size_t line = 64, huge = std::size_t{2} << 20;
  // Over a page of 4 KiB, beyond which lines of a first cache repeat.
  static constexpr std::size_t starts = 13, apart = 5 * line;
  static bool is_large(std::size_t count) { return count * sizeof(T) >= 2 * huge; }
  static std::byte* aligned(std::size_t alignment, std::size_t bytes) {
    void* const memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<std::byte*>(memory);
  }
};

template <class T>
using Array = std::vector<T, ArrayAllocator<T>>;

}  // namespace hostless
