#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

namespace hostless {

/// Cache-line aligned memory that is not zeroed first (it is filled once, by the thread that will use it), on
/// huge pages where the system gives them: one product walks gigabytes, and x is read in jumps.
template <class T>
struct ArrayAllocator {
  using value_type = T;
  ArrayAllocator() = default;
  template <class U>
  ArrayAllocator(ArrayAllocator<U> const&) noexcept {}

  T* allocate(std::size_t count) {
    constexpr std::size_t line = 64, huge = std::size_t{2} << 20;
    if (count > (~std::size_t{0} >> 1) / sizeof(T)) throw std::bad_alloc();
    std::size_t const bytes = count * sizeof(T);
    std::size_t const alignment = bytes >= 2 * huge ? huge : line;
    void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (memory == nullptr) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
    if (alignment == huge)
      madvise(memory, bytes, MADV_HUGEPAGE);  // only advice: a refusal costs time, not results
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) noexcept { std::free(memory); }
  template <class U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
  }
  bool operator==(ArrayAllocator const&) const { return true; }
};

template <class T>
using Array = std::vector<T, ArrayAllocator<T>>;

}  // namespace hostless
