#pragma once
// One rank's end of what carries messages and sums between ranks on a stream, and how it begins, is lost and
// ends. What it queues is done whether gates of a solve are open or not: all ranks must queue equally much.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/queue.hpp"
#include "transport/peer/put_round.hpp"
#include "transport/stream/stream_setup.hpp"

namespace hostless::gpu {

/// Thrown through a text that the host executes: a rank is lost, the solve ends.
struct RankLost {};

class StreamEndpoint {
 public:
  virtual ~StreamEndpoint() = default;

  /// Where a round is packed by kernels, and where it arrives: for what is queued next, until end_exchange.
  virtual std::byte* outgoing(int round) = 0;
  virtual std::byte const* incoming(int round) = 0;
  /// The same where kernels that pack store into the memory of those who receive, and buffers take turns on
  /// the GPU. With PutRound::exchanges they do so instead of packing to `outgoing`, and end with
  /// signal_round.
  virtual PutRound put(int) const { return {}; }
  virtual ArrivedRound arrived(int round) { return {incoming(round), nullptr, 0}; }
  /// With AwaitedRound::exchanges, kernels that unpack a round wait by themselves, instead of `await`.
  virtual AwaitedRound awaited(int) const { return {}; }
  /// Whether a round is sent from where it lies (StreamPart::from): nothing is packed.
  virtual bool takes_from_field(int) const { return false; }
  /// Whether a round arrives in the field itself, in place.
  virtual bool lands(int) const { return false; }
  /// Queues what sends outgoing(round); `field` is row 0 of where a round lands.
  virtual void send(StreamQueue& queue, int round, std::byte* field) = 0;
  /// Queues what waits for the round: incoming(round), or the field, may be read by what follows.
  virtual void await(StreamQueue&, int, std::byte*) {}
  /// Whether `await` may have the host wait for what `send` has queued: work that needs no ghosts is queued
  /// between them. Else both are queued at once.
  virtual bool host_may_wait() const { return false; }
  /// After the last round has been unpacked.
  virtual void end_exchange(StreamQueue&) {}
  /// Queues what brings `count` doubles of every rank, rank after rank; they stay until the next call.
  virtual double const* gather(StreamQueue& queue, double const* mine, int count) = 0;

  /// Whether what it queues can be part of a graph that is replayed.
  virtual bool is_recorded() const = 0;
  /// Whether that graph may be replayed any number of times without `reach`.
  virtual bool replays_anywhere() const { return is_recorded(); }
  /// Of rank 0, for all: made anew after a loss.
  virtual UniqueId unique_id() { return {}; }
  /// Where others find this rank, gathered from all of them before `connect`.
  virtual StreamContact contact() const { return {}; }
  /// The same, whole: what `know` of the others is told.
  StreamContact contact_on(int device) {
    StreamContact mine = contact();
    mine.device = device;
    mine.unique_id = unique_id();
    return mine;
  }
  /// Errors  environment  a GPU cannot reach the memory of another
  virtual void know(std::vector<StreamContact> const&) {}
  /// All ranks together, before anything is queued, and again after a loss. Overwrites the ghosts of `field`.
  /// Errors  environment  not within StreamSetup::first_s, or with the library's words
  virtual void connect(UniqueId const&, std::byte* field) = 0;
  virtual bool is_connected() const = 0;
  /// Of every round, what goes out and what comes in: for messages that the host program binds to them.
  virtual std::vector<StreamBuffers> buffers() const { return {}; }
  /// After a loss, on all ranks, before they connect anew: nothing of this rank is under way any more.
  /// Errors  environment  it may be for ever
  virtual void forget() {}
  /// Whose turn it is, where buffers take turns: what is recorded goes on where it was recorded, so `reach`
  /// queues what brings them there.
  virtual int phase() const { return 0; }
  virtual void reach(StreamQueue&, int) {}
  /// Takes kernels that wait for a lost rank off the GPU. `settle` follows when all streams are done and
  /// recorded graphs are gone.
  virtual void abort() noexcept {}
  /// What of `abort` needs no call of the driver, which may wait for another rank of this process.
  virtual void end_waits() noexcept {}
  virtual void settle() noexcept {}
  /// Where kernels ask the host to carry: moves what they have asked on without waiting for other ranks,
  /// whose messages have limits of their own. Whoever launches or waits calls this or the next now and then.
  enum class Served { nothing, under_way, something, lost };
  virtual Served poll() { return Served::nothing; }
  /// The same until nothing is under way.
  Served serve();
  /// Whether a rank is known to be lost.
  bool has_failed() { return failed(); }
  /// False: not all that was queued is done within the deadline, or a rank is known to be lost.
  bool wait(Stream const& stream);
  /// Before the text of a solve: ranks have met, but do not start together.
  virtual void expect_late_ranks() { is_first_ = true; }

  int ranks() const { return ranks_; }
  double deadline_s() const { return later_s_; }
  virtual std::string describe() const = 0;
  virtual std::int64_t bytes() const = 0;
  virtual bool guards_hold() const = 0;

 protected:
  explicit StreamEndpoint(StreamSetup const& setup)
      : ranks_(setup.ranks), first_s_(setup.first_s), later_s_(setup.deadline_s) {}
  /// All rounds once, of whatever the buffers hold.
  void exchange_buffers(StreamQueue& queue, int rounds, std::byte* field) {
    for (int round = 0; round < rounds; ++round) {
      send(queue, round, field);
      await(queue, round, field);
    }
    end_exchange(queue);
  }
  /// Whether what is queued waits for other ranks on the GPU; else a GPU may take as long as it likes.
  virtual bool waits_on_gpu() const = 0;
  /// Asked now and then during a wait, and at its end.
  virtual bool failed() { return false; }
  double first_s() const { return first_s_; }
  /// How long the wait that begins may take.
  double next_limit_s() { return std::exchange(is_first_, false) ? first_s_ : later_s_; }

 private:
  int ranks_;
  double first_s_, later_s_;
  bool is_first_ = true;
};

}  // namespace hostless::gpu
