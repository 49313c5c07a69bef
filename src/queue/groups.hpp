#pragma once
// What a communicator has whose messages a vendor's library (NCCL) moves in groups. Such a library knows no
// tags: of each two ranks the k-th groups move together, message by message. So both must give it the same
// messages in the same order, and each rank can see for itself that they do:
//
// All that two ranks have between them, their set, was matched by one call on either side, which their offers
// tell (Offer::call, in_call), and moves as a whole: a wait has all of the set, or nothing of it. Messages of
// one direction stand in the order in which their sender has offered them. A set of one direction has one
// message more, without bytes, in the other: so a group ends on one rank only when it has begun on the other,
// and two ranks that are through with their sets have had equally many groups.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "queue/gpu/message_library.hpp"
#include "queue/looks.hpp"
#include "queue/offer.hpp"

namespace hostless {
class Group;
}

namespace hostless::queue {

class CommunicatorState;
class QueueState;
class RequestState;

/// Of a request: what it has in a group, and its place there.
struct OrderedMessage {
  gpu::GroupMessage message;
  std::uint64_t order = 0;  ///< of the sender's offers
};

class Groups {
 public:
  using Requests = std::vector<std::shared_ptr<RequestState>>;

  /// Collective: connects the ranks. Errors  QueueError unsupported  two of them have one GPU, or there are too
  /// many;  environment  the library is missing, or does not connect them
  Groups(hostless::Group& group, int gpu);

  // ---- sets
  /// Why a request cannot be matched beside what was matched before, or empty.
  std::string why_not_matched(RequestState const& request) const;
  /// Of one match call: their offers get their places in sets.
  void add(Requests const& requests);
  /// Both are known. Why their sets are not equal, or empty.
  std::string misfit(Offer const& mine, Offer const& other);
  /// Idempotent.
  void remove(RequestState& request) noexcept;
  /// Why they are not whole sets, or empty.
  std::string why_not_waited(Requests const& requests) const;

  // ---- what moves
  struct Plan {
    std::vector<gpu::GroupMessage> messages;
    gpu::GroupPeers peers = 0;
  };
  /// Of a wait for these.
  Plan plan(Requests const& requests) const;
  /// Of all sets of the rank, from their match on.
  gpu::GroupCounts counts(int peer) const;
  /// One wait more that was not recorded.
  void count_wait() { ++enqueued_; }
  /// Empty once it is closed.
  std::shared_ptr<gpu::GroupRanks> const& ranks() const { return ranks_; }
  /// The queue that starts them becomes this one. False: another one has them, and work.
  bool move_to(std::shared_ptr<QueueState> const& queue);

  // ---- losses, which end it for all its ranks
  /// Called now and then by whoever waits: whether a group has lasted too long, one of its ranks has left, or the
  /// library has failed. limit_s: of groups that are seen to begin from now on
  bool looks_lost(CommunicatorState& communicator, double limit_s);
  /// Whether one of these has left: it has ended what both have begun, so a group that begins now moves nothing,
  /// though the library may take or deliver what it can store (seen with NCCL 2.28).
  bool has_one_left(CommunicatorState& communicator, gpu::GroupPeers peers) const;
  /// Whether it was given up.
  bool is_over() const { return is_over_; }
  /// Groups that wait end. False: that was so before.
  bool give_up() noexcept;
  /// Nothing is under way any more, or it is said what may be.
  void close() noexcept;

 private:
  /// What was matched with one rank.
  struct Set {
    std::uint32_t call = 0, other_call = 0;  ///< of matches, here and there; 0: none
    std::size_t offers = 0, there = 0;       ///< of this side, and those of them that were not freed
    std::uint64_t groups_before = 0;
  };
  bool has_unreached() const;

  int rank_ = 0;
  mutable std::mutex mutex_;  // sets
  std::vector<Set> sets_;     // by rank
  std::uint32_t calls_ = 0;
  std::uint64_t orders_ = 0;
  std::shared_ptr<gpu::GroupRanks> ranks_;
  std::weak_ptr<QueueState> queue_;
  std::uint64_t enqueued_ = 0;
  std::atomic<bool> is_over_{false};
  std::uint64_t seen_begun_ = 0;
  LossWatch watch_;  // of the group that has begun
};

/// Errors  QueueError unsupported  a wait that is not one for whole sets of one communicator
void check_whole_sets(Groups::Requests const& requests);

}  // namespace hostless::queue
