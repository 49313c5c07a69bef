#pragma once
// A neighbourhood collective as a program has called it.

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hostless::preload {

enum class Operation : std::uint8_t { allgather, allgatherv, alltoall, alltoallv };
inline bool gathers(Operation operation) {
  return operation == Operation::allgather || operation == Operation::allgatherv;
}
/// Whether blocks are of equal bytes on all ranks, as MPI has it.
inline bool is_equal(Operation operation) {
  return operation == Operation::allgather || operation == Operation::alltoall;
}

/// Counts and displacements in either of MPI's widths, or one count for all blocks, which lie one behind the
/// other.
struct Numbers {
  std::int64_t equal = 0;
  int const* narrow = nullptr;
  std::byte const* wide = nullptr;  ///< of MPI_Count or MPI_Aint, which have names of their own in each MPI

  std::int64_t operator[](std::size_t k) const {
    if (narrow != nullptr) return narrow[k];
    std::int64_t number = equal;
    if (wide != nullptr) std::memcpy(&number, wide + k * sizeof number, sizeof number);
    return number;
  }
};
inline Numbers list_of(int const* numbers) { return {0, numbers, nullptr}; }
template <class Wide>
Numbers list_of(Wide const* numbers) {
  static_assert(sizeof(Wide) == sizeof(std::int64_t));
  return {0, nullptr, reinterpret_cast<std::byte const*>(numbers)};
}

/// What is sent, or what is received.
struct Side {
  void* memory = nullptr;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  bool listed = false;  ///< of a v-variant
  Numbers counts, displacements;

  std::int64_t count(std::size_t k) const { return counts[k]; }
  /// In extents of the type.
  std::int64_t displacement(std::size_t k) const {
    return listed ? displacements[k] : static_cast<std::int64_t>(k) * counts.equal;
  }
};
inline Side equal_side(void const* memory, std::int64_t count, MPI_Datatype type) {
  return {const_cast<void*>(memory), type, false, {count, nullptr, nullptr}, {}};
}
inline Side listed_side(void const* memory, Numbers const& counts, Numbers const& displacements,
                        MPI_Datatype type) {
  return {const_cast<void*>(memory), type, true, counts, displacements};
}

struct Call {
  char const* name;
  Operation operation;
  Side send, receive;
  MPI_Comm comm;
};

}  // namespace hostless::preload
