#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "hostless/transport/transport.hpp"
#include "transport/binding.hpp"

namespace hostless {

/// What each rank owns in the memory that all ranks of a bind share. Two epochs deep: a fast rank may be one
/// ahead.
struct alignas(128) RankArea {
  double value[2][most_gather_width] = {};
  std::atomic<std::uint32_t> epoch[2] = {0, 0};
  /// Its endpoint went away in order, in the process that made it: its rank may be gone now, and is not lost.
  std::atomic<std::uint32_t> ended{0};
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "words in shared memory hold no lock");

/// Ranks that can share memory: threads of a process, or processes of a machine.
class ZoneWorld {
 public:
  virtual ~ZoneWorld() = default;
  /// The same memory on all ranks, of that size, aligned for RankArea. Collective.
  /// Errors  environment  on all ranks, when there is not enough
  virtual std::shared_ptr<std::byte> allocate(std::size_t bytes) = 0;
  /// True when a rank has failed or died; `areas` [ranks] tells those apart that ended in order. Never
  /// blocks.
  virtual bool rank_lost(RankArea const* areas) = 0;
};

/// An endpoint over memory that all ranks see: messages are put into the receiver's landing zone and
/// announced by a release store of the epoch. No locks and no calls of the system on the critical path.
/// Collective. `binding` is checked here; `world` must outlive the endpoint.
std::unique_ptr<Endpoint> bind_zone(Group& group, ZoneWorld& world, Binding const& binding);

}  // namespace hostless
