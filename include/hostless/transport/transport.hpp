#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hostless/base/deadline.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// How a transport offers a face. `unproven`: compiled, never seen moving data on such hardware. Nothing is
/// accepted and ignored: asking for an absent face is an error when binding.
enum class Support : std::uint8_t { native, adapted, unproven, absent };
char const* name(Support support);

/// What a transport can do, as a queried fact; `hostless doctor` prints this table.
struct Capabilities {
  std::string transport;                  ///< "threads", "mpi", ...
  Support host = Support::absent;         ///< one host thread starts and finishes messages
  Support stream = Support::absent;       ///< enqueued on a device stream
  Support graph = Support::absent;        ///< recorded once, replayed
  Support graph_while = Support::absent;  ///< inside a device-side loop node
  Support kernel =
      Support::absent;  ///< from inside a persistent kernel (host: from threads behind a barrier)
  Support gather = Support::absent;         ///< all-gather of K doubles, for ordered sums
  Support all_reduce = Support::absent;     ///< a library all-reduce, for `fast` sums
  Support host_callback = Support::absent;  ///< a user's host function may run between phases
  bool threads_as_ranks = false;
  bool processes_as_ranks = false;
  bool device_memory = false;
  bool needs_own_heap = false;
  bool bounded_waits = false;       ///< every wait ends by a deadline
  bool survives_peer_loss = false;  ///< a dead rank ends as `peer_lost` on the others, not as their death
  bool late_access = false;         ///< messages given up may be read and written later (Binding::memory)
  std::string note;                 ///< why something is absent or adapted
};

/// One message of a bound plan on its source.
struct Outgoing {
  int id;                 ///< unique in the plan; the same number on both sides
  int target;             ///< rank
  std::byte const* from;  ///< [bytes], read between `send` and `sent`
  std::size_t bytes;
  /// A message of no bytes that says only that its source is ready for what the target sends it. A transport
  /// whose messages wait until they are received may leave it out, on both sides: it is then sent, and
  /// received, at once.
  bool credit = false;
};

/// One message of a bound plan on its target.
struct Incoming {
  int id;
  int source;     ///< rank
  std::byte* to;  ///< [bytes], written between `receive` and `received`
  std::size_t bytes;
  bool credit = false;  ///< as Outgoing::credit
};

/// All that a rank will ever ask of its endpoint, known before the first iteration.
struct Binding {
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  int gather_width = 4;  ///< most doubles one `gather` or `all_reduce` carries
  /// Owns what `from` and `to` point into. A library that still has a message under way when the endpoint
  /// goes may write there later: its transport keeps this until it cannot. Empty: the caller's memory
  /// outlives the process' ranks.
  std::shared_ptr<void> memory;
};

/// One rank's end of a bound transport. Nothing is allocated, registered or matched after `bind`.
///
/// Not thread-safe: the run calls it from one thread at a time. No call blocks; waiting (deadline, abort) is
/// written once, in `exchange`.
///
/// Exchanges are numbered by `epoch`, rising by one; all ranks use the same numbers. Between the `received`
/// of epoch e and the first `send` of epoch e + 2 by its peers every rank must have taken part in one
/// complete `gather` or `all_reduce` that it began after that `received` (the plan's reason `reduction`), or
/// the peer has received what that rank sent it in epoch e + 1 (`answer`), or the plan carries a `credit`.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  /// Starts message binding.out[index].
  virtual void send(int index, std::uint32_t epoch) = 0;
  /// Allows binding.in[index].to to be written from now on.
  virtual void receive(int index, std::uint32_t epoch) = 0;
  /// Polls. True when the source bytes may be changed again.
  virtual bool sent(int index) = 0;
  /// Polls. True when all bytes of the message of the epoch given to `receive` lie in `to`.
  virtual bool received(int index) = 0;
  /// Contributes `mine` (at most gather_width doubles) to the next all-gather. One may be under way at a
  /// time.
  virtual void gather(std::span<double const> mine) = 0;
  /// Polls. When true, all[r * K + k] is value k of rank r, where K is what `gather` was given.
  virtual bool gathered(std::span<double> all) = 0;
  /// As gather, summed by the transport's library in whatever order it likes; only where capabilities say so.
  virtual void all_reduce(std::span<double const> mine) = 0;
  virtual bool all_reduced(std::span<double> sums) = 0;
  /// True when another rank has said that it leaves, or is known to be dead. Messages that it sent before can
  /// still be received.
  virtual bool peer_left() = 0;
  /// Tells all ranks that this one leaves; their next poll of `peer_left` says so. Best effort, never blocks.
  virtual void leave() noexcept = 0;
};

class PointToPoint;  // hostless/transport/point_to_point.hpp

/// A transport of plans. One object a process (or a rank, for threads).
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Capabilities capabilities() const = 0;
  /// The set-up collectives of the same ranks.
  virtual Group& group() = 0;
  /// Collective over group(). Allocates, registers and matches everything.
  /// Errors  usage  the two sides of a message disagree about its size
  virtual std::unique_ptr<Endpoint> bind(Binding const& binding) = 0;
  /// Messages between two ranks. One at a time for each transport, which must outlive it; not collective.
  /// Errors  usage  this transport has none
  virtual std::unique_ptr<PointToPoint> point_to_point();
};

/// Runs `body(transport)` on `ranks` threads, each with the threads transport between them; see
/// run_on_threads.
void run_with_threads_transport(int ranks, std::function<void(Transport&)> const& body);

/// The threads transport of this thread alone: one rank, for programs without any others.
std::unique_ptr<Transport> single_transport();

}  // namespace hostless
