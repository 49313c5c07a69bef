#pragma once
// A request: what it is, where it stands, and its messages.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hostless/queue/queue.hpp"
#include "queue/offer.hpp"
#include "queue/part.hpp"

namespace hostless::queue {

class CommunicatorState;
class QueueState;
struct OrderedMessage;

enum class Kind : std::uint8_t { send, ready_send, receive, barrier, all_reduce, broadcast, match };

class RequestState {
 public:
  /// lost: the match ended without the other side.
  enum class Phase : std::uint8_t { inactive, matching, matched, misfit, lost, closed };

  RequestState();
  RequestState(RequestState const&) = delete;
  RequestState& operator=(RequestState const&) = delete;
  ~RequestState();

  Kind kind = Kind::send;
  std::shared_ptr<CommunicatorState> communicator;
  RequestStatus last;             ///< guarded by `guard`
  std::vector<Offer> offers;      ///< of this side, one a message; keys are complete once it is matched
  std::function<void()> done;     ///< of a collective: when all its messages are there
  std::vector<std::byte> memory;  ///< of a collective: what arrives from others
  std::shared_ptr<std::byte> gpu_memory;            ///< the same on a GPU; of a halo: its buffer, anywhere
  std::optional<gpu::StreamReduction> on_gpu_done;  ///< `done` of a GPU's stream

  // ---- matching, guarded by the communicator
  std::atomic<Phase> phase{Phase::inactive};
  std::size_t unmatched = 0;  ///< offers without the other side's
  std::string problem;        ///< why it is a misfit
  int given_up_by = -1;       ///< of a lost one: the rank whose side was withdrawn

  // ---- a match
  std::vector<std::shared_ptr<RequestState>> matches;
  bool is_fetched = false;  ///< the match was waited for, or tested with success

  // ---- what the caller has enqueued: by the caller's thread alone
  bool is_started = false;      ///< and no wait enqueued since
  QueueState* queue = nullptr;  ///< of the last start
  /// Waits and starts that the queue has not come to.
  std::atomic<int> unreached{0};
  std::uint64_t enqueued_waits = 0;  ///< of a GPU's stream, those that were not recorded

  bool is_persistent() const { return kind != Kind::match; }
  /// "a send to rank 1 with tag 2", for people.
  std::string words() const;
  /// That move at a start.
  std::size_t messages() const;

  // ---- by whoever executes the queue
  void start();
  /// False while something is pending. `lost` where it will never be.
  Progress poll();
  /// After a loss: all its sides go.
  void lose() noexcept;
  /// Of a matched one: an other side will never start. Its sides stay until its queue lets go of them.
  void lose_other() noexcept;
  /// The communicator goes.
  void close() noexcept;
  /// When all have been matched.
  void open(PointToPoint& point, std::vector<Offer> const& others);
  RequestStatus status();
  /// A GPU's stream has got one more wait that was not recorded.
  void count_wait();
  /// Whether a queue has starts or waits before it.
  bool is_unreached();
  /// Of a GPU's stream; none after a loss. What they use lives as long as `sides`.
  void add_ends(std::vector<gpu::MessageEnd*>& all);
  std::vector<std::shared_ptr<gpu::LentSide>> const& sides() const { return sides_; }
  /// Where messages move in groups; none after a loss.
  void add_messages(std::vector<OrderedMessage>& all);
  bool is_lost();

 private:
  void leave_all() noexcept;
  void open_in_groups(std::vector<Offer> const& others);
  /// Whether a stream has not come to the end of all its groups.
  bool is_in_group() const;
  void count_starts() noexcept;
  std::mutex guard_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<std::unique_ptr<gpu::MessageEnd>> ends_;  ///< instead of parts
  std::vector<std::shared_ptr<gpu::LentSide>> sides_;   ///< of both ranks
  std::vector<OrderedMessage> ordered_;                 ///< instead of both
  bool moves_in_groups_ = false;
  std::vector<bool> pending_;  ///< by part
  bool is_running_ = false, is_lost_ = false, other_is_lost_ = false;
};

/// Requests that a queue has started, each once.
using KnownRequests = std::set<std::weak_ptr<RequestState>, std::owner_less<>>;
/// Some kernels did not end that use a buffer of who has gone: to those who read what programs say.
void say_still_used() noexcept;
/// After a loss: gives up all of them and whoever else waits for their ranks.
void lose_all(KnownRequests& known) noexcept;

}  // namespace hostless::queue
