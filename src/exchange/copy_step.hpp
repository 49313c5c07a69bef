#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace hostless {

/// Copies items between two places of memory: item k from `from` + p * from_stride for p = from_index[k], or
/// k without a list; the same for `to`. Bases may lie inside an array, so positions may be negative.
struct CopyStep {
  std::byte const* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t items = 0;
  std::size_t bytes = 0;  ///< of an item
  std::size_t from_stride = 0, to_stride = 0;
  std::int32_t const* from_index = nullptr;
  std::int32_t const* to_index = nullptr;
};

namespace copy_detail {

/// Sizes are types where the compiler can use them: an item of 8 bytes is one load and one store.
template <class Bytes, class FromStride, class ToStride>
void copy_items(CopyStep const& s, Bytes bytes, FromStride from_stride, ToStride to_stride) {
  auto const from = [&](std::int64_t p) { return s.from + p * static_cast<std::int64_t>(from_stride); };
  auto const to = [&](std::int64_t p) { return s.to + p * static_cast<std::int64_t>(to_stride); };
  if (s.from_index != nullptr && s.to_index != nullptr) {
    for (std::int64_t k = 0; k < s.items; ++k) std::memcpy(to(s.to_index[k]), from(s.from_index[k]), bytes);
  } else if (s.from_index != nullptr) {
    for (std::int64_t k = 0; k < s.items; ++k) std::memcpy(to(k), from(s.from_index[k]), bytes);
  } else if (s.to_index != nullptr) {
    for (std::int64_t k = 0; k < s.items; ++k) std::memcpy(to(s.to_index[k]), from(k), bytes);
  } else {
    for (std::int64_t k = 0; k < s.items; ++k) std::memcpy(to(k), from(k), bytes);
  }
}

template <std::size_t N>
void copy_of_size(CopyStep const& s) {
  constexpr std::integral_constant<std::size_t, N> bytes;
  if (s.from_stride == N && s.to_stride == N) return copy_items(s, bytes, bytes, bytes);
  copy_items(s, bytes, s.from_stride, s.to_stride);
}

}  // namespace copy_detail

inline void run(CopyStep const& s) {
  bool const dense = s.from_stride == s.bytes && s.to_stride == s.bytes;
  if (dense && s.from_index == nullptr && s.to_index == nullptr) {
    if (s.items > 0) std::memcpy(s.to, s.from, static_cast<std::size_t>(s.items) * s.bytes);
    return;
  }
  switch (s.bytes) {
    case 1:
      return copy_detail::copy_of_size<1>(s);
    case 4:
      return copy_detail::copy_of_size<4>(s);
    case 8:
      return copy_detail::copy_of_size<8>(s);
    case 16:
      return copy_detail::copy_of_size<16>(s);
    case 24:
      return copy_detail::copy_of_size<24>(s);
    default:
      return copy_detail::copy_items(s, s.bytes, s.from_stride, s.to_stride);
  }
}

}  // namespace hostless
