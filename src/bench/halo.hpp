#pragma once
// What the exchange of a plan costs with nothing computed (Ismayilov et al. 2023, figure 6): beside the sum
// that solves have between two of them, and alone.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/timing.hpp"
#include "hostless/plan/exchange_plan.hpp"
#include "hostless/plan/routes.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless::bench {

/// An exchange to time.
struct Halo {
  ExchangePlan plan;              ///< of this rank
  std::vector<Pattern> patterns;  ///< [ranks] what it was made from, on every rank
  PlanOptions made_with;
  int fields = 1;              ///< arrays that travel in one message a neighbour
  std::size_t item_bytes = 8;  ///< of an item of each
};

struct HaloTiming {
  Timing step;                                       ///< an exchange and the sum that lets the next one begin
  Timing sum_alone;                                  ///< that sum without the exchange
  Timing alone;                                      ///< exchanges that follow each other without a sum
  ReuseGuarantee alone_by = ReuseGuarantee::answer;  ///< what lets those follow each other
};

/// The home of each ghost of a rank, in the order of its ghosts: what must arrive there.
struct GhostHome {
  Rank rank = 0;
  std::int32_t item = 0;
};
std::vector<GhostHome> homes_of_ghosts(std::vector<Pattern> const& patterns, Rank rank);

/// Makes those of rank 0 those of all. Collective.
void share_patterns(Group& group, std::vector<Pattern>& patterns);

/// Errors  usage  fields or bytes below 1; patterns or a plan of other numbers of ranks
void check_halo(Halo const& what, int ranks);
/// A plan that relies on sums, made again with answers. by: what lets its exchanges follow each other.
ExchangePlan plan_without_sums(Halo const& what, ReuseGuarantee& by);

/// A plan that relies on sums is made again with answers where it is timed alone: same patterns, route and
/// nodes.
///
/// Collective; the same on every rank. In the end some exchanges bring bytes of their own each, and every
/// byte of every ghost is held against what its owner has put there.
/// Errors  usage        as Exchange; fields or bytes below 1; patterns that do not fit the plan
///         environment  a ghost or a sum is not what it must be
///         peer_lost    a rank fell silent past its deadline
HaloTiming halo(Transport& transport, Halo const& what, Protocol const& protocol);

}  // namespace hostless::bench
