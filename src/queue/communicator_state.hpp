#pragma once
// Who matches: offers go out in the order of calls, and each finds the one of its other side.

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hostless/base/wait.hpp"
#include "hostless/transport/point_to_point.hpp"
#include "queue/groups.hpp"
#include "queue/request_state.hpp"
#include "queue/started_messages.hpp"

namespace hostless::queue {

/// Whoever waits for a side that will not come is told, where memory is shared.
void tell_gone(Offer const& other);

/// A transport while a communicator of it is open: no second one may be, since their ends of its PointToPoint are told
/// apart by how many there were before.
class TakenTransport {
 public:
  /// Errors  usage  it has one
  explicit TakenTransport(Transport const& transport);
  TakenTransport(TakenTransport const&) = delete;
  TakenTransport& operator=(TakenTransport const&) = delete;
  ~TakenTransport();

 private:
  Transport const* transport_;
};

class CommunicatorState : public std::enable_shared_from_this<CommunicatorState> {
 public:
  /// in_groups: messages between GPUs move in groups; then collective.
  /// Errors  usage  another one of the transport is open
  CommunicatorState(Transport& transport, int gpu, bool in_groups);

  int rank() const { return rank_; }
  int size() const { return size_; }
  int gpu() const { return gpu_; }  ///< -1: none, the host starts and waits
  /// What ranks set up together with.
  Group& group() const { return group_; }
  /// Where messages between GPUs move in groups; else null.
  Groups* groups() const { return groups_.get(); }
  bool shares_memory() const { return shares_memory_; }
  bool may_progress_by_thread() const { return may_progress_by_thread_; }
  /// The type of queue that starts its messages.
  std::string const& queue_type() const { return queue_type_; }
  StartedMessages& started() { return started_; }
  /// Whether the communicator is still there; requests of one that is not can only be freed.
  bool is_open();
  /// Requests are known to it until they go.
  std::shared_ptr<RequestState> make(Kind kind, int peer, int tag);
  /// One message more of a collective: with `peer`, in a direction.
  void add_part(RequestState& request, int peer, Side side, std::span<std::byte const> from,
                std::span<std::byte> to) const;

  /// Sends the offers. The caller has looked at the requests.
  void offer(std::vector<std::shared_ptr<RequestState>> const& requests);
  /// Hears what others have said.
  void listen();
  /// True when that rank has left, or is lost (of a collective: anybody).
  bool has_left(RequestState const& request);
  bool has_left(int peer);
  /// What a request that is being matched waits for, for people, and what was heard in its place.
  std::string missing(RequestState& request);
  /// How long a match over it may take.
  void set_match_limit(double seconds) { match_limit_s_.store(seconds); }
  double match_limit_s() const;
  /// A match that has ended without its other side: its buffers are the caller's again, it can only be freed.
  void abandon(RequestState& request) noexcept;
  /// Behind all that were abandoned with it: other sides that have been told since, or were heard before it was
  /// offered, are answered.
  void answer_others(RequestState const& request) noexcept;
  /// Whatever it still had under way is lost; others are told.
  void give_up() noexcept;
  void close() noexcept;
  /// Frees one that nobody uses.
  void forget(RequestState& request) noexcept;

 private:
  void tell_offer(Offer& offer);
  /// Takes all notes that have come. An offer meets none here: it may have been withdrawn by a later one.
  void hear();
  void take(Note const& note);
  void join_heard();
  void withdraw(Offer const& told);
  /// Since that rank has.
  void give_up_with(RequestState& request, int peer) noexcept;
  void tell_withdrawn(OfferKey const& key, std::uint64_t serial) noexcept;
  void join(OfferKey const& key);
  void settle(RequestState& request);
  /// What was matched with an offer's rank does not fit what that one has.
  void end_set(Offer const& of, std::string const& problem);
  void tell_leaving() noexcept;
  void hear_others_leave() noexcept;
  void abandon_locked(RequestState& request) noexcept;

  /// Of one key, in the order of calls and of what was heard, which is that of the other side's calls.
  struct Waiting {
    std::weak_ptr<RequestState> request;
    std::size_t offer = 0;
    std::uint64_t serial = 0;
  };
  std::mutex mutex_;
  Group& group_;  ///< of the transport, which outlives the communicator
  std::optional<TakenTransport> taken_;
  std::unique_ptr<PointToPoint> point_;  ///< empty: closed
  int rank_, size_, gpu_;
  bool shares_memory_, may_progress_by_thread_;
  std::string queue_type_;
  StartedMessages started_;
  std::unique_ptr<Groups> groups_;
  std::uint64_t most_small_;
  std::uint64_t collectives_ = 0, offers_ = 0;
  std::atomic<double> match_limit_s_{0};         ///< 0: none was set
  std::map<OfferKey, std::deque<Offer>> heard_;  ///< by the key of the side that waits for it; none is empty
  std::map<OfferKey, std::deque<Waiting>> waiting_;
  std::deque<OfferKey> unjoined_;  ///< of `heard_`, where something has come since
  std::map<RequestState const*, std::vector<std::optional<Offer>>>
      others_;  ///< of those that are being matched
  std::vector<std::weak_ptr<RequestState>> requests_;
  std::vector<bool> told_;  ///< by rank: one of us has an offer of the other
  std::vector<bool> left_;  ///< by rank: it has said that it leaves
};

}  // namespace hostless::queue
