#include "queue/reduce.hpp"

#include <cstring>

namespace hostless::queue {
namespace {

template <class T>
void reduce_as(std::byte* total, std::byte const* next, std::size_t count, ReduceOperation operation) {
  for (std::size_t k = 0; k < count; ++k) {
    T a, b;  // callers' arrays may lie anywhere
    std::memcpy(&a, total + k * sizeof(T), sizeof(T));
    std::memcpy(&b, next + k * sizeof(T), sizeof(T));
    T const result = reduced(a, b, operation);
    std::memcpy(total + k * sizeof(T), &result, sizeof(T));
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
