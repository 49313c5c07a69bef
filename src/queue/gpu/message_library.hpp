#pragma once
// What a GPU library (loaded at run time) offers to queues. The same compiler builds both sides; the version
// of transport/stream/gpu_files.hpp changes with every change of this file.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "hostless/queue/queue.hpp"
#include "queue/halo/halo_text.hpp"
#include "queue/life_text.hpp"
#include "queue/message_text.hpp"
#include "transport/stream/stream_setup.hpp"

namespace hostless::gpu {

/// What one side of a message brings, in the memory of its GPU: words, and a receiver's slots. All ranks are
/// threads of one process. It lives as long as one of both sides.
class LentSide {
 public:
  virtual ~LentSide() = default;
  virtual int device() const = 0;
  /// The other side goes: no kernel of this one touches its buffer afterwards, waits of this one for it end.
  /// False: it may, some did not end in time.
  virtual bool lose_other() noexcept = 0;
  /// This side goes: no kernel of it touches either buffer afterwards, its waits end. False: as above.
  virtual bool leave() noexcept = 0;
};

/// A message of which both sides are known.
struct MatchedMessage {
  std::shared_ptr<LentSide> mine, other;
  queue::Side side = queue::Side::sender;  ///< of `mine`
  queue::Mode mode = queue::Mode::standard;
  std::byte const* from = nullptr;
  std::byte* to = nullptr;
  std::size_t bytes = 0;
};

/// What streams have reached of one side of a message, also when what was recorded was launched.
struct ReachedCounts {
  std::uint64_t starts = 0, waits = 0;
};

/// One side of a message that streams start and wait for.
class MessageEnd {
 public:
  virtual ~MessageEnd() = default;
  /// Not while its streams' work is being recorded in the strict mode of the vendor's.
  virtual ReachedCounts counts() const = 0;
  /// This side goes: no kernel touches its buffer afterwards, waits of both sides for it end. False: some that
  /// do have not ended in time.
  virtual bool leave() noexcept = 0;
};

/// result [count] = own and what came of the others, in the order of ranks.
struct Reduction {
  std::byte const* all = nullptr;  ///< [ranks][count], the own part unused
  std::byte const* own = nullptr;
  std::byte* result = nullptr;  ///< may be own
  std::size_t count = 0;
  int ranks = 1, rank = 0;
  Datatype datatype = Datatype::f64;
  ReduceOperation operation = ReduceOperation::sum;
};
struct StreamReduction {
  Reduction what;
  std::shared_ptr<LentSide> side;  ///< of this request alone: once it has left, nothing is reduced
};

/// This rank's side of a message that moves in one group with the others of its wait.
struct GroupMessage {
  queue::Side side = queue::Side::sender;
  int peer = 0;                 ///< may be this rank
  std::byte* buffer = nullptr;  ///< a sender's is only read
  std::size_t bytes = 0;        ///< of both sides; 0: it is there for order
};
/// Ranks as bits; so many at most.
using GroupPeers = std::uint64_t;
constexpr int most_group_ranks = 64;
/// Waits that streams have come to, and those of them that have their messages.
struct GroupCounts {
  std::uint64_t begun = 0, done = 0;
};

/// One rank of those that a library of the vendor's connects, each with a GPU of its own. A group of one rank
/// ends when all ranks that it has messages with have come to theirs; of each two ranks the k-th groups move
/// together. Calls come from one thread at a time.
class GroupRanks {
 public:
  /// Whole ones, with nothing under way, stay connected for the next ones.
  virtual ~GroupRanks() = default;
  /// Where ranks that are idle have met, or nowhere. Asked again, because not all have said the same: a new
  /// place, of rank 0.
  virtual UniqueId unique_id() = 0;
  /// Collective. Errors  environment  not within the limit, or with the library's words
  virtual void connect(UniqueId const& point, double limit_s) = 0;
  /// Of groups with messages of that rank, and of all. From memory of the host: no driver is asked.
  virtual GroupCounts counts(int peer) const = 0;
  virtual GroupCounts counts() const = 0;
  /// Whether the library says that it goes on no more.
  virtual bool has_failed() = 0;
  /// Groups that wait end, and none is counted from now on. One that a stream comes to only afterwards may
  /// still move what has come.
  virtual void abort() noexcept = 0;
  /// The library and its version.
  virtual std::string describe() const = 0;
};

/// The stream of a queue. Calls about it come from one thread at a time; none blocks.
class MessageStream {
 public:
  virtual ~MessageStream() = default;
  virtual int device() const = 0;
  /// Onto the stream, or into what it records. Ends that have left are nobody's to give.
  virtual void start(std::span<MessageEnd* const> ends) = 0;
  virtual void wait(std::span<MessageEnd* const> ends) = 0;
  /// As both, one after the other, by a kernel less (launch_kernels).
  virtual void start_and_wait(std::span<MessageEnd* const> starts, std::span<MessageEnd* const> waits) = 0;
  virtual void reduce(StreamReduction const& what) = 0;
  /// All neighbours' messages by one kernel.
  virtual void pass_halo(queue::HaloPass const& what) = 0;
  /// One group, and what counts that it has begun and is done: for itself, and for each of `peers`.
  /// Errors  peer_lost, environment  the library refuses it, with its words
  virtual void move(GroupRanks& ranks, std::span<GroupMessage const> messages, GroupPeers peers) = 0;
  /// By a thread of the vendor's.
  virtual void call(void (*function)(void*), void* user) = 0;
  virtual bool is_recording() const = 0;
  /// Whether all that is on the stream is done. Not while it records.
  virtual bool is_done() const = 0;
  /// pending: none has; lost, broken: a wait has ended without its message, and starts and waits do nothing
  /// any more.
  virtual queue::Progress ending() const = 0;
  /// Until all is done that was queued before, without a processor's help. Not while it records.
  virtual void sleep() = 0;
  /// Waits that spin end, as if lost.
  virtual void give_up() noexcept = 0;
  /// Of waits that are reached from now on.
  virtual void set_limit(double seconds) = 0;
};

/// A stream of one GPU with memory, kernels and a graph, for programs without a runtime of the vendor's:
/// where messages are timed and tested.
class StreamBench {
 public:
  virtual ~StreamBench() = default;
  virtual void* stream() = 0;
  /// Memory of the GPU, and of the host for kernels too, all 0; both go with this.
  virtual std::byte* memory(std::size_t bytes) = 0;
  virtual std::byte* pinned(std::size_t bytes) = 0;
  /// to [bytes] = from [bytes] + plus, byte by byte: what packs and unpacks.
  virtual void add_to_bytes(std::byte* to, std::byte const* from, std::size_t bytes, std::uint8_t plus) = 0;
  /// As MessageStream.
  virtual void pass_halo(queue::HaloPass const& what) = 0;
  virtual void fill_life(std::byte* grid, queue::LifeGrid const& what) = 0;
  /// Without the halo.
  virtual void step_life(std::byte* to, std::byte const* from, queue::LifeGrid const& what) = 0;
  /// counts [2], of the GPU, become greater by the cells that are alive, and by those that are not what they
  /// would be when all gliders had gone `shift` cells.
  virtual void count_life(std::byte const* grid, queue::LifeGrid const& what, std::int64_t shift,
                          std::uint64_t* counts) = 0;
  /// Blocks until all is done that is on the stream.
  virtual void wait() = 0;
  /// What is queued from now on waits until `release`, at most so long.
  virtual void hold(double limit_s) = 0;
  virtual void release() = 0;
  /// Whether a hold went on by itself, because nobody had released it in time. Once its stream is done.
  virtual bool went_on_unreleased() const = 0;
  /// What `queue` queues on the stream becomes the graph, which `replay` queues.
  virtual void record(std::function<void()> const& queue) = 0;
  virtual void replay() = 0;
};

class MessageLibrary {
 public:
  virtual ~MessageLibrary() = default;
  virtual int devices() const = 0;
  virtual std::string vendor() const = 0;  ///< cuda, hip; of tests: played
  /// Before the first wait on that GPU: memory, kernels, and paths to the GPUs that were prepared before.
  /// Errors  environment  no such GPU
  virtual void prepare(int device) = 0;
  /// Whether kernels of the GPU may load and store there: its own memory, or the host's where it is mapped.
  /// Empty: they may; else why not.
  virtual std::string why_unreached(void const* address, int device) const = 0;
  virtual std::shared_ptr<LentSide> lend_side(int device, std::size_t slot_bytes) = 0;
  /// Memory of a GPU, given back without a word to its driver, which might wait for kernels that wait.
  virtual std::shared_ptr<std::byte> memory(int device, std::size_t bytes) = 0;
  /// Memory of the host that kernels of the GPU reach too. Its end may wait for all kernels of the GPU.
  virtual std::shared_ptr<std::byte> pinned(int device, std::size_t bytes) = 0;
  /// A stream of that GPU whose kernels begin before those of others that wait for room.
  virtual std::shared_ptr<void> own_stream(int device) = 0;
  /// Errors  environment  one GPU cannot reach the other's memory
  virtual std::unique_ptr<MessageEnd> open(MatchedMessage const& message) = 0;
  /// Not yet connected. call_s: how long calls of the vendor's library may take that wait for nobody.
  /// Errors  environment  that cannot be loaded
  virtual std::shared_ptr<GroupRanks> group_ranks(int device, int rank, int ranks, double call_s) = 0;
  /// Of the GPU that the stream belongs to.
  /// Errors  usage  a stream of no GPU
  virtual std::unique_ptr<MessageStream> stream(void* stream) = 0;
  /// The GPU becomes that of the calling thread, as that of a program's: calls about its stream then need not
  /// choose it each time.
  virtual std::unique_ptr<StreamBench> bench(int device) = 0;
};

using OpenMessages = MessageLibrary*();
constexpr char const* open_messages_name = "hostless_gpu_messages";

/// The first library that sees a GPU.
/// Errors  environment  none does, and why
MessageLibrary& message_library();

}  // namespace hostless::gpu
