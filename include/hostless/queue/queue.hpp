#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "hostless/queue/refusal.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless {

/// What executes a queue's work, and what carries between it and others (docs/howto/queue.md has the table).
enum class QueueType : std::uint8_t {
  automatic,  ///< "auto": what the ranks of its first request have
  threads,    ///< ranks are threads of this process
  peer,       ///< GPUs load and store in each other's memory: ranks are threads of this process
  mpi,        ///< the host calls MPI
  nccl,       ///< NCCL moves between GPUs in groups: Communicator(transport, gpu, QueueType::nccl)
  ofi         ///< libfabric between processes: Communicator(open_ofi_transport(...))
};
char const* name(QueueType type);
/// Errors  usage  unknown name
QueueType queue_type_from(char const* text);

/// What the elements of a reduction are.
enum class Datatype : std::uint8_t { f32, f64, i32, i64, byte };
std::size_t bytes_of(Datatype datatype);
enum class ReduceOperation : std::uint8_t { sum, product, minimum, maximum };

/// What arrived at a receive, or what went with a send.
struct RequestStatus {
  int peer = -1;  ///< -1 of a collective
  int tag = -1;
  std::size_t bytes = 0;     ///< of the message, which may be shorter than the receiver's buffer
  std::uint64_t starts = 0;  ///< how often it has been complete
  bool lost = false;         ///< its peer is lost, or stayed silent for the queue's limit: not complete
};

namespace queue {
class CommunicatorState;
class QueueState;
class RequestState;
}  // namespace queue

/// A message or collective that is started again and again (MPI's persistent requests), or the match of some.
/// Move-only handle. Not thread-safe: one thread at a time calls anything about a request.
///
/// A handle that goes while its request is enqueued leaves it to the queue. When both have gone nobody uses its
/// buffer, also where a start was not waited for (docs/waits.md: what MPI has begun, and cannot take back).
class Request {
 public:
  Request() = default;
  explicit Request(std::shared_ptr<queue::RequestState> state) : state_(std::move(state)) {}
  Request(Request&&) = default;
  Request& operator=(Request&&) = default;
  /// Frees it. Errors  QueueError in_use  started and not yet waited for, its last wait not yet reached, or
  ///                                      under match with a rank that has not left
  void free();
  /// Not collective, never blocks. The match of several is complete when all of them are matched.
  bool is_matched() const;
  /// Of a match: polls whether all its requests are matched. Errors  as wait
  bool test();
  /// Of a match: waits until all its requests are matched. look: called ten times a second meanwhile; what it
  /// throws ends the wait, and the match goes on.
  /// Errors  QueueError in_use    a persistent request: its waits are enqueued
  ///         QueueError mismatch  one of them does not fit its other side
  ///         peer_lost            a rank has left, has given its side up (its match has ended without this one),
  ///                              or stayed silent for ten times the first wait of a solve
  ///         After each error requests without their other side can only be freed.
  void wait(std::function<void()> const& look = {});
  /// Errors  QueueError in_use, always: neither matches nor what is enqueued can be taken back
  void cancel();
  /// Of the last start whose wait was reached. Never blocks.
  RequestStatus status() const;
  bool exists() const { return state_ != nullptr; }
  std::shared_ptr<queue::RequestState> const& state() const { return state_; }

 private:
  std::shared_ptr<queue::RequestState> state_;
};

/// The ranks of a transport, as requests name them. Its end, or that of the transport, is how a rank leaves:
/// whoever waits for this rank is told, and requests of it that still exist can only be freed. Over MPI its
/// end takes up to a quarter of a second where others do not leave at about the same time.
class Communicator {
 public:
  static constexpr int no_gpu = -1;
  /// Not collective, but of one transport one exists at a time, and all ranks make as many. `transport` must
  /// outlive it.
  ///
  /// gpu: whose streams start and wait for its requests (queues of the type peer), between ranks that are
  /// threads of one process. Several ranks may have one GPU. All of them are made before the first wait:
  /// memory, kernels and paths between GPUs are got ready here.
  ///
  /// by: what carries between GPUs. automatic: peer. nccl: collective, and each rank has a GPU of its own, whose
  /// requests are those of queues of the type nccl, of one at a time; the first one of the same ranks connects
  /// them, a second or more, within the first wait of a solve. What two ranks have between them is matched by one
  /// call on either side and waited for as a whole (docs/howto/queue.md). A loss ends it for all its ranks.
  /// Errors  usage                  another one of this transport is there; it carries nothing between two ranks
  ///                                alone; HOSTLESS_QUEUE_...
  ///                                that mean nothing; `by` says something else, or nccl or peer without a GPU
  ///         environment            there is no such GPU, or none can be used; no NCCL, or it fails
  ///         QueueError unsupported a GPU between ranks that are processes; by nccl two ranks with one GPU
  explicit Communicator(Transport& transport, int gpu = no_gpu, QueueType by = QueueType::automatic);
  Communicator(Communicator const&) = delete;
  Communicator& operator=(Communicator const&) = delete;
  ~Communicator();

  /// How long a match over it may take, of several communicators the least: 600 s (HOSTLESS_DEADLINE_SCALE
  /// multiplies them) unless set here. Local. Errors  usage  not above 0
  void set_limit(double seconds);

  /// Requests, inactive and unmatched. Local. Buffers [bytes] are the caller's, in host memory, and are used
  /// while the request exists: a source between a start and its wait is only read, a target belongs to the
  /// library. With a GPU they are in its memory, or in pinned memory of the host; anything else is refused as
  /// QueueError unsupported. Messages go fastest between addresses that are equal modulo 16.
  ///
  /// A standard send leaves when the receiver's queue has reached the receiver's start. A ready send leaves
  /// at once: the caller promises that the receiver's start has been reached.
  /// Errors  usage                no such rank, a tag below 0
  ///         QueueError wildcard  any_rank, any_tag
  Request send_init(std::span<std::byte const> buffer, int peer, int tag);
  Request ready_send_init(std::span<std::byte const> buffer, int peer, int tag);
  Request receive_init(std::span<std::byte> buffer, int peer, int tag);
  /// Collectives are matched by their order among collectives. A barrier's wait ends when all ranks have
  /// reached its start.
  Request barrier_init();
  /// result [count] = from [count] of all ranks, added (...) in the order of ranks: equal bits on all. The
  /// minimum and maximum are NaN where any rank has one. `from` may be `result`. Costs size() - 1
  /// messages a rank, and memory for size() + 1 times `result`.
  /// Errors  usage        more bytes than a memory has
  ///         environment  out of memory
  Request all_reduce_init(void const* from, void* result, std::size_t count, Datatype datatype,
                          ReduceOperation operation);
  /// Errors  usage  no such root
  Request broadcast_init(std::span<std::byte> buffer, int root);

  static constexpr int any_rank = -1, any_tag = -1;

 private:
  friend class QueueHalo;  // hostless/queue/halo.hpp
  std::shared_ptr<queue::CommunicatorState> state_;
};

/// Matches requests with those of their peers, by (communicator, peer, tag) in the order of calls and, inside
/// one, of the array; once and for good. Blocks until all are matched. Only inactive persistent requests.
/// Errors  QueueError no_request, not_persistent, already_matched, twice; by nccl unsupported (beside what was
///         matched with the same rank and not freed): nothing was matched;
///         QueueError mismatch, peer_lost: as Request::wait
void match(std::span<Request* const> requests);
/// The same without waiting. The returned request is waited for (Request::wait, test), also after is_matched
/// has said yes, then freed.
Request begin_match(std::span<Request* const> requests);

/// Work that is done in order, by a thread of its own or (over an MPI that only one thread may call) inside
/// calls of this library: starts, which never block it, waits, which do, and functions.
///
/// A call is accepted or refused as a whole. Not thread-safe. Any number of them may exist.
class Queue {
 public:
  /// stream: of a GPU, which does all of the work by kernels and calls functions by a thread of the vendor's;
  /// nullptr: the queue has work of the host. The stream is the caller's, outlives the queue, and may have
  /// other work between. While it records, starts, waits and functions become part of the graph, which may be
  /// launched as long as the queue and the requests exist, never beside itself; every request that it starts
  /// it also waits for.
  /// Errors  QueueError unsupported  a stream for a type of the host, none for peer or nccl
  ///         usage, environment      a stream that belongs to no GPU; no GPU can be used
  explicit Queue(QueueType type = QueueType::automatic, void* stream = nullptr);
  Queue(Queue const&) = delete;
  Queue& operator=(Queue const&) = delete;
  /// Waits for what is enqueued, as wait() but without an error.
  ~Queue();

  /// Errors  QueueError  of both   no_request, not_persistent, twice, mismatch, unsupported (another transport
  ///                               than the type's)
  ///                     of start  not_matched, already_started, other_queue (an earlier wait on another one
  ///                               is not yet reached); by nccl unsupported (another queue of its communicator
  ///                               has work)
  ///                     of wait   not_started, other_queue; by nccl unsupported (a part of what was matched
  ///                               with a rank, or requests of two communicators)
  void enqueue_start(std::span<Request* const> requests);
  void enqueue_wait(std::span<Request* const> requests);
  /// Starts `starts`, then waits for `waits`: requests that this call starts, or that were started on this queue
  /// before. On a stream (type peer) a launch less than both by themselves: one kernel where each has at most 24
  /// messages.
  /// Errors  those of both, before anything is enqueued
  void enqueue_start_and_wait(std::span<Request* const> starts, std::span<Request* const> waits);
  /// Waits for all that was started on this queue and is not yet waited for.
  void enqueue_wait_all();
  /// Calls `work` when the queue comes to it. What it throws is thrown by wait(). Inside it every call about
  /// queues and matches is refused (QueueError in_use). On a stream it may not call the vendor's runtime.
  void enqueue_function(std::function<void()> work);

  /// Blocks until all is done, on a stream until that is idle. look: called ten times a second meanwhile; what
  /// it throws ends the wait, and the work goes on.
  /// Errors  peer_lost  a wait ended by a loss or by the limit: from then on all requests of this queue are
  ///                    lost, starts and waits on it do nothing, functions are still called
  ///         usage      the same, by a ready send whose promise was broken; its stream records
  ///         std::bad_alloc, or what else ends the work of starts and waits: once, then peer_lost
  void wait(std::function<void()> const& look = {});
  /// True when all is done. Never blocks; errors as wait.
  bool test();
  /// How long a wait on this queue may take: 600 s (HOSTLESS_DEADLINE_SCALE multiplies them) unless set here. By
  /// nccl losses and the limit are noticed inside calls about the queue.
  void set_limit(double seconds);
  /// True when there is neither work nor a start without a wait.
  bool is_idle() const;

 private:
  friend class QueueHalo;
  /// Starts `early`, does `between`, starts `late`, waits for `waits` and does `behind`; both of these enqueue. Accepted or
  /// refused as a whole; on a stream by parts, where memory runs out or the GPU fails between two of them.
  void enqueue_step(std::span<Request* const> early, std::function<void()> const& between,
                    std::span<Request* const> late, std::span<Request* const> waits,
                    std::function<void()> const& behind);
  std::shared_ptr<queue::QueueState> state_;
};

}  // namespace hostless
