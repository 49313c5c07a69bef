#include "stencil/grid_array.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>

#include "hostless/base/error.hpp"

namespace hostless {

namespace {
constexpr std::int64_t line = 64, huge_page = std::int64_t{1} << 21;

std::int64_t rounded_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }
}  // namespace

GridArray::GridArray(Box const& box, std::array<std::int64_t, 3> halo, std::size_t value_bytes,
                     std::int64_t given)
    : box_(box), bytes_(static_cast<std::int64_t>(value_bytes)), given_(given) {
  std::int64_t const values_a_line = line / bytes_;
  // arrays begin at other places of their pages: a load from one would wait for a store to the same place of
  // another
  static std::atomic<std::int64_t> made{0};
  std::int64_t const shift = made++ % 4 * (1024 + line) / bytes_;
  // what lies before a row is the end of the one before it
  std::int64_t const before = rounded_up(halo[2] + given, values_a_line) - given;
  stride_[1] = rounded_up(box.extent(2) + 2 * halo[2], values_a_line);
  // rows a power of two apart would meet in the same sets of a cache
  if (stride_[1] * bytes_ % 4096 == 0) stride_[1] += values_a_line;
  stride_[0] = stride_[1] * (box.extent(1) + 2 * halo[1]);
  std::int64_t const values = shift + before + stride_[0] * (box.extent(0) + 2 * halo[0]);
  std::size_t const bytes = static_cast<std::size_t>(rounded_up(values * bytes_, line));
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(ErrorCode::environment, fmt::format("no memory for an array of {} bytes of a stencil (cells "
                                                    "and halo). Use more ranks, or a smaller grid.",
                                                    bytes));
  memory_ = {static_cast<std::byte*>(memory), [bytes](std::byte* first) { (void)::munmap(first, bytes); }};
  if (values * bytes_ >= 2 * huge_page)
    (void)::madvise(memory, bytes, MADV_HUGEPAGE);  // fewer misses in address translation
  first_ = memory_.get() + (halo[0] * stride_[0] + halo[1] * stride_[1] + before + shift) * bytes_;
}

}  // namespace hostless
