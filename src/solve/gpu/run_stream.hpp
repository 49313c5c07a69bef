#pragma once
// Launches the phases of a text on a stream, and looks at the state now and then to see whether a loop goes
// on.

#include <cstdint>
#include <memory>
#include <span>

#include "solve/gpu/runner.hpp"
#include "transport/stream/stream_endpoint.hpp"

namespace hostless::gpu {

/// What the host shares with the phases of one bound solve.
class Mailbox {
 public:
  /// Errors  usage  more slices than the phases' sums can be added of
  Mailbox(Arguments& arguments, bool free_order);
  /// The state as it is when all that was queued is done: queued, then there when the stream is done.
  void ask_for(State const* state, Stream const& stream);
  std::span<State const> states() const { return {seen_.data(), columns_}; }  ///< of all right-hand sides
  /// Both, and waits.
  std::span<State const> states_after(State const* state, Stream const& stream);
  /// The same state, which has ended because a rank is lost. Waits.
  void lose(State* state, Stream const& stream);
  /// Phases end the solve, with its true residual, from the next decision on. Queued, like `begin_run`.
  void order_stop(Stream const& stream);
  /// Without orders; the ranks are awaited as for the first time.
  void begin_run(Stream const& stream);
  /// Of several ranks: where others store their parts of sums.
  void lend(PeerMemory& memory) const;
  void forget_barriers(std::uint32_t last_epoch);
  /// Of the next runs.
  void be_silent(Silence silence) { given_.host().silent_from = silence.block < 0 ? 0 : silence.barrier; }
  bool guards_hold() const {
    return partial_.guards_hold() && total_.guards_hold() && arrived_.guards_hold() &&
           orders_.guards_hold() && flagged_words_.guards_hold() && epoch_.guards_hold();
  }

 private:
  /// So many bytes of the orders.
  void give(std::uint32_t stop, std::size_t bytes, Stream const& stream);
  Array<double> partial_, total_;
  Lending lending_;
  Array<std::uint32_t> arrived_, epoch_;
  Array<unsigned char> flagged_words_;
  Array<Orders> orders_;
  Mapped<Orders> given_;
  Mapped<double> said_;  // the order to stop, as gathered sums have it
  Event begun_;          // the orders of the run are there
  std::size_t columns_;
  Pinned<State> seen_;
};

/// A second stream beside a first one, for what travels while that works.
struct Aside {
  Stream stream = Stream::first();
  Event parted, joined;
};

/// A queue whose loops end when the host has seen that their gate is closed. Between two looks it launches 1,
/// 2, 4 ... iterations: phases behind a closed gate cost only their launches.
class LookingQueue : public Queue {
 public:
  /// `fixed_interval`: iterations between two looks; 0: by the rule. `endpoint`: what carries between ranks
  /// whose kernels do not, else null; all of them then queue equally much, by rules that know no clock.
  /// parts: with a stream endpoint, whether sweeps are parted; exchanges then go on a second stream.
  /// waits_for_sums: the host reads the state behind every kernel that decides.
  LookingQueue(Mailbox& mailbox, Stream const& stream, int fixed_interval, StreamEndpoint* endpoint,
               bool parts, bool waits_for_sums = false)
      : mailbox_(mailbox),
        stream_(stream),
        fixed_interval_(fixed_interval),
        endpoint_(endpoint),
        aside_(parts ? std::make_unique<Aside>() : nullptr),
        waits_for_sums_(waits_for_sums) {}
  /// Before each execution of a text.
  void start(Arguments const& arguments, Watch const& watch);
  /// Until all that was queued is done.
  /// Throws  RankLost  with a stream endpoint, at the deadline
  void wait();
  /// With a stream endpoint, when nobody will serve it any more: takes what waits off the GPU.
  /// Errors  environment  the GPU goes on waiting
  void let_go();
  /// After RankLost: the same, and the state says that a rank is lost.
  void lose(State* state);
  void launch(KernelLaunch const& launch) override;
  void call(std::function<void(HOSTLESS_GPU(Stream_t))> const& use) override;
  void repeat(Gate gate, std::function<void()> const& text) override;
  void fork() override;
  void beside(std::function<void()> const& use) override;
  void join() override;
  std::int64_t launches() const { return launches_; }

 protected:
  /// text(), about so often, for a loop without loops inside.
  virtual void execute(Gate gate, std::function<void()> const& text, int iterations);
  /// Whether what is launched is being recorded, so that nobody can wait for it.
  virtual bool is_recording() const { return false; }
  /// Where `beside` queues now; null: where everything goes.
  virtual Aside* aside() const { return aside_.get(); }
  /// What was recorded of a stream endpoint that has lost a rank goes.
  virtual void forget_recorded() {}
  Stream const& stream() const { return stream_; }
  StreamEndpoint* endpoint() const { return endpoint_; }
  void count_launch(int of_the_queue = 1);

 private:
  std::span<State const> look();
  void fall_silent() const;
  int next_interval(std::span<State const> states, Gate gate, int last, double last_s) const;

  Stream const& current() const { return is_aside_ ? aside_->stream : stream_; }

  Mailbox& mailbox_;
  Stream const& stream_;
  int fixed_interval_;
  StreamEndpoint* endpoint_;
  std::unique_ptr<Aside> aside_;
  bool waits_for_sums_;
  bool is_aside_ = false;
  State const* state_ = nullptr;
  Watch const* watch_ = nullptr;
  Silence silence_;
  std::uint32_t looks_ = 0;
  bool has_inner_loop_ = false;
  std::int64_t launches_ = 0;
  int under_way_ = 0;  // of the stream's queue, at most
};

/// Executes a text with a queue of this kind and keeps its time.
void run_looking(Arguments const& arguments, Instance const& instance, LookingQueue& queue,
                 Stream const& stream, Watch const& watch, Cost& cost);

/// What makes products apart, and what they go on beside, for the beginning of a description.
inline std::string products_of(Arguments const& arguments) {
  TileOrder const& order = arguments.tile_order;
  if (arguments.product != nullptr) return arguments.product->describe() + "; ";
  if (order.tile == nullptr) return {};
  return std::to_string(order.interior) + " of " + std::to_string(arguments.layout.tiles) +
         " tiles beside the exchange; ";
}

class StreamRunner final : public Runner {
 public:
  StreamRunner(Arguments& arguments, Instance const& instance, Problem const& problem);
  void prepare(Arguments const& arguments) override;
  void run(Arguments const& arguments, Watch const& watch, Cost& cost) override;
  std::string describe(Arguments const& arguments) const override;
  void lend(PeerMemory& memory, Arguments const&) const override { mailbox_.lend(memory); }
  void forget_barriers(std::uint32_t last_epoch) override { mailbox_.forget_barriers(last_epoch); }
  bool guards_hold() const override { return mailbox_.guards_hold(); }

 private:
  Instance const& instance_;
  int fixed_interval_;
  HostWaits host_waits_;
  Stream stream_;
  Mailbox mailbox_;
};

}  // namespace hostless::gpu
