#include "counted_memory.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace hostless::counted_memory {
namespace {

std::atomic<bool> counting{false};
std::atomic<std::int64_t> made{0}, failing{0}, live{0}, peak{0};

void* allocate(std::size_t bytes) {
  if (counting.load() && made.fetch_add(1) + 1 == failing.load()) return nullptr;
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory != nullptr && counting.load()) {
    auto const size = static_cast<std::int64_t>(malloc_usable_size(memory));
    std::int64_t const now = live.fetch_add(size) + size;
    for (std::int64_t top = peak.load(); now > top && !peak.compare_exchange_weak(top, now);) {
    }
  }
  return memory;
}

void release(void* memory) {
  if (memory != nullptr && counting.load()) live -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void start() {
  made = live = peak = failing = 0;
  counting = true;
}
void fail(std::int64_t number) { failing = made + number; }
void stop() { counting = false; }
std::int64_t allocations() { return made; }
std::int64_t live_bytes() { return live; }
std::int64_t peak_bytes() { return peak; }

}  // namespace hostless::counted_memory

using hostless::counted_memory::allocate;
using hostless::counted_memory::release;

void* operator new(std::size_t bytes) {
  void* const memory = allocate(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new(std::size_t bytes, std::nothrow_t const&) noexcept { return allocate(bytes); }
void* operator new[](std::size_t bytes, std::nothrow_t const&) noexcept { return allocate(bytes); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::nothrow_t const&) noexcept { release(memory); }
void operator delete[](void* memory, std::nothrow_t const&) noexcept { release(memory); }
