#pragma once
// What a rank's halo is made of: found by all ranks together, or refused on all of them.

#include <cstddef>
#include <string>
#include <vector>

#include "hostless/queue/halo.hpp"
#include "queue/halo/halo_text.hpp"

namespace hostless::queue {

class CommunicatorState;

/// Of each direction, and of each set of messages.
constexpr int halo_tags = 2 * halo_directions;

struct HaloPlan {
  HaloPass pass;                   ///< packs the fields' own arrays, into messages at null
  std::vector<int> peers;          ///< by neighbour
  std::vector<std::size_t> bytes;  ///< of each message
  std::size_t set_bytes = 0;       ///< of all messages of one way
};

/// Collective. Errors  those of QueueHalo
HaloPlan plan_halo(CommunicatorState const& ranks, HaloGrid const& grid, std::vector<HaloField> const& fields,
                   HaloOptions const& options);

/// Why not; empty: nothing is wrong.
struct HaloProblem {
  std::string text;
  bool is_unsupported = false;
};
/// What this rank finds by itself.
HaloProblem plan_own_halo(CommunicatorState const& ranks, HaloGrid const& grid,
                          std::vector<HaloField> const& fields, HaloOptions const& options, HaloPlan& plan);
/// Of an array of those strides.
HaloProblem problem_of_array(CommunicatorState const& ranks, HaloPass const& pass, HaloArray const& array);

/// As many bytes as all addresses of the array are multiples of, and its cells have.
std::uint32_t unit_of(HaloArray const& array);

}  // namespace hostless::queue
