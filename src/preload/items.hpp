#pragma once
// Blocks of any datatype, as bytes.

#include <cstddef>
#include <cstdint>

#include "preload/call.hpp"

namespace hostless::preload {

/// What a datatype is made of.
struct Items {
  std::int64_t bytes = 0;   ///< of one
  std::int64_t extent = 0;  ///< from one to the next
  bool plain = false;       ///< a type of MPI's own without gaps, in memory that the processor may read
};
/// Of MPI_DATATYPE_NULL: no bytes, as ranks without neighbours pass it.
Items items_of(MPI_Datatype type);

/// Copies block k as it travels, or back. Returns what MPI says.
int pack(Side const& side, Items const& items, std::size_t k, std::byte* to, MPI_Comm comm);
int unpack(Side const& side, Items const& items, std::size_t k, std::byte const* from, MPI_Comm comm);

/// Whether MPI packs a number as its bytes and nothing else.
bool packs_bytes();

}  // namespace hostless::preload
