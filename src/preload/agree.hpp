#pragma once
// What all ranks of a communicator say alike: one small all-reduce, blocking as the calls that it is part of.

#include <mpi.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace hostless::preload {

struct Agreed {
  std::uint64_t bits = 0;  ///< those that all have set
  bool same = false;       ///< all gave equal numbers
};

/// Collective. `numbers`: as many on all ranks. Where MPI fails, nothing is agreed; the error handler of the
/// communicator has been called then.
inline Agreed agree(MPI_Comm comm, std::uint64_t bits, std::vector<std::uint64_t> const& numbers = {}) {
  std::vector<std::uint64_t> mine{bits};
  for (std::uint64_t const number : numbers) {
    mine.push_back(number);
    mine.push_back(~number);
  }
  std::vector<std::uint64_t> all(mine.size());
  // bounded: by what MPI bounds the collective that it is part of (docs/waits.md)
  if (PMPI_Allreduce(mine.data(), all.data(), static_cast<int>(mine.size()), MPI_UINT64_T, MPI_BAND, comm) !=
      MPI_SUCCESS)
    return {};
  Agreed agreed{all[0], true};
  for (std::size_t k = 1; k < all.size(); k += 2) agreed.same = agreed.same && all[k] == ~all[k + 1];
  return agreed;
}

}  // namespace hostless::preload
