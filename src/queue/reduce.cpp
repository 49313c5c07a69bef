#include "queue/reduce.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

namespace hostless::queue {
namespace {

template <class T, class Two>
void each(std::byte* total, std::byte const* next, std::size_t count, Two const& two) {
  for (std::size_t k = 0; k < count; ++k) {
    T a, b;  // callers' arrays may lie anywhere
    std::memcpy(&a, total + k * sizeof(T), sizeof(T));
    std::memcpy(&b, next + k * sizeof(T), sizeof(T));
    T const result = two(a, b);
    std::memcpy(total + k * sizeof(T), &result, sizeof(T));
  }
}

// Integers wrap around, as MPI's do on every machine; a signed overflow would be undefined.
template <class T, class Two>
T wrapped(T a, T b, Two const& two) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(two(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  } else {
    return two(a, b);
  }
}

template <class T>
void reduce_as(std::byte* total, std::byte const* next, std::size_t count, ReduceOperation operation) {
  switch (operation) {
    case ReduceOperation::sum:
      return each<T>(total, next, count, [](T a, T b) { return wrapped(a, b, std::plus<>()); });
    case ReduceOperation::product:
      return each<T>(total, next, count, [](T a, T b) { return wrapped(a, b, std::multiplies<>()); });
    case ReduceOperation::minimum:
      return each<T>(total, next, count, [](T a, T b) { return std::min(a, b); });
    case ReduceOperation::maximum:
      return each<T>(total, next, count, [](T a, T b) { return std::max(a, b); });
  }
}

}  // namespace

void reduce(std::byte* total, std::byte const* next, std::size_t count, Datatype datatype,
            ReduceOperation operation) {
  switch (datatype) {
    case Datatype::f32:
      return reduce_as<float>(total, next, count, operation);
    case Datatype::f64:
      return reduce_as<double>(total, next, count, operation);
    case Datatype::i32:
      return reduce_as<std::int32_t>(total, next, count, operation);
    case Datatype::i64:
      return reduce_as<std::int64_t>(total, next, count, operation);
    case Datatype::byte:
      return reduce_as<std::uint8_t>(total, next, count, operation);
  }
}

}  // namespace hostless::queue
