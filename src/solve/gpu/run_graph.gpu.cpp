#include "solve/gpu/run_graph.hpp"

#include <array>
#include <utility>

#include "base/variable.hpp"

namespace hostless::gpu {
namespace {

/// Iterations in the body of a WHILE node, each round of which costs about as much as two kernels; and in a
/// graph that is replayed. What lies beyond the end of a solve finds its gates closed.
constexpr int iterations_a_round = 4, iterations_a_replay = 8;
static_assert(iterations_a_replay % 2 == 0);  // what takes turns is at its end where it was at its beginning

__global__ void tell_kernel(State const* state, int columns, Loop loop) {
  set_condition(loop.condition, loop_goes_on(state, columns, loop.gate));
}

bool while_nodes_wanted() { return !is_zero("HOSTLESS_GPU_WHILE"); }

}  // namespace

bool while_nodes_expected() { return has_while_nodes && while_nodes_wanted(); }

/// Records the whole text: loops become WHILE nodes, told by the last decision of their bodies.
class GraphRunner::LoopQueue final : public Queue {
 public:
  LoopQueue(Graph& graph, State const* state, int columns, Stream const& stream)
      : graph_(graph), state_(state), columns_(columns), stream_(stream) {}
  void launch(KernelLaunch const& launch) override {
    graph_.add_kernel(launch.kernel, launch.blocks, block_threads, launch.parameters);
    told_ = launch.decides;
  }
  void call(std::function<void(HOSTLESS_GPU(Stream_t))> const& use) override {
    graph_.add_recorded(stream_, use);
    told_ = false;
  }
  void repeat(Gate gate, std::function<void()> const& text) override {
    Loop const inner{graph_.new_condition(), gate, true};
    tell(inner);
    graph_.enter_while(inner.condition);
    Loop const outer = std::exchange(loop_, inner);
    told_ = has_inner_loop_ = false;
    text();
    if (!has_inner_loop_) {
      for (int k = 1; k < iterations_a_round; ++k) text();
    }
    if (!told_) tell(inner);
    graph_.leave();
    loop_ = outer;
    has_inner_loop_ = true;
    told_ = false;
  }
  Loop loop() const override { return loop_; }

 private:
  void tell(Loop loop) {
    void* parameters[] = {&state_, &columns_, &loop};
    graph_.add_kernel(reinterpret_cast<void const*>(&tell_kernel), 1, 1, parameters);
  }

  Graph& graph_;
  State const* state_;
  int columns_;
  Stream const& stream_;
  Loop loop_;
  bool has_inner_loop_ = false;
  bool told_ = false;  // by the last node
};

/// Launches several iterations of an innermost loop at once.
class GraphRunner::ReplayQueue final : public LookingQueue {
 public:
  using LookingQueue::LookingQueue;
  /// Returns why nothing can be recorded; all is then launched on the stream. With a stream endpoint all
  /// ranks must replay, and equally often.
  /// Errors  environment  with a stream endpoint: nothing can be recorded
  std::string prepare(Arguments const& arguments, Instance const& instance) {
    forget_recorded();
    Graph outside;  // what lies outside all loops is only loaded
    recording_ = &outside;
    trace_with(arguments.stamps);
    std::string problem;
    try {
      instance.run_phases(arguments, *this);
    } catch (Error const& error) {
      problem = error.what();
      forget_recorded();
    } catch (RankLost const&) {
      problem = "a rank is lost, or the library refused";
      forget_recorded();
    }
    is_captured_ = false;
    recording_ = nullptr;
    return problem;
  }
  void launch(KernelLaunch const& launch) override {
    if (recording_ != nullptr && !is_captured_) {
      recording_->add_kernel(launch.kernel, launch.blocks, block_threads, launch.parameters);
    } else {
      LookingQueue::launch(launch);
    }
  }
  void call(std::function<void(HOSTLESS_GPU(Stream_t))> const& use) override {
    if (recording_ == nullptr || is_captured_) {
      LookingQueue::call(use);
    } else if (endpoint() == nullptr) {
      recording_->add_recorded(stream(), use);
    }  // what a stream endpoint does outside all loops, it does then
  }
  void repeat(Gate gate, std::function<void()> const& text) override {
    if (recording_ == nullptr) return LookingQueue::repeat(gate, text);
    auto body = std::make_unique<Graph>();
    Graph* const outer = std::exchange(recording_, body.get());
    recorded_loop_ = false;
    text();
    if (!recorded_loop_) {
      if (endpoint() == nullptr) {
        for (int k = 1; k < iterations_a_replay; ++k) text();
      } else {
        phases_[static_cast<std::size_t>(gate)] = endpoint()->phase();
        capture(*body, text);
      }
      body->instantiate(stream());
      graphs_[static_cast<std::size_t>(gate)] = std::move(body);
    }
    recording_ = outer;
    recorded_loop_ = true;
  }

 protected:
  void forget_recorded() override {
    for (auto& graph : graphs_) graph.reset();
  }
  Aside* aside() const override {  // outside all loops kernels are only loaded, one after the other
    return recording_ == nullptr || is_captured_ ? LookingQueue::aside() : nullptr;
  }
  bool is_recording() const override { return recording_ != nullptr; }
  void execute(Gate gate, std::function<void()> const& text, int iterations) override {
    if (iterations < iterations_a_replay || !graphs_[static_cast<std::size_t>(gate)])
      return LookingQueue::execute(gate, text, iterations);
    if (endpoint() != nullptr) endpoint()->reach(*this, phases_[static_cast<std::size_t>(gate)]);
    for (int k = 0; k < iterations / iterations_a_replay; ++k) {
      graphs_[static_cast<std::size_t>(gate)]->launch(stream());
      count_launch();
    }
  }

 private:
  // As the library sees it when it is called: its own streams and buffers become part of one graph.
  void capture(Graph& body, std::function<void()> const& text) {
    is_captured_ = true;
    body.take_recorded(stream(), [&](HOSTLESS_GPU(Stream_t)) {
      for (int k = 0; k < iterations_a_replay; ++k) text();
    });
    is_captured_ = false;
  }
  std::array<std::unique_ptr<Graph>, 4> graphs_;  // by gate
  std::array<int, 4> phases_{};                   // of the stream endpoint, where they begin and end
  Graph* recording_ = nullptr;
  bool is_captured_ = false;  // what is launched on the stream, a text of which is being recorded
  bool recorded_loop_ = false;
};

GraphRunner::GraphRunner(Arguments& arguments, Instance const& instance, bool free_order)
    : instance_(instance), mailbox_(arguments, free_order) {}
GraphRunner::~GraphRunner() = default;

void GraphRunner::prepare(Arguments const& arguments) {
  whole_.reset();
  replay_.reset();
  StreamEndpoint* const endpoint = arguments.endpoint;
  if (endpoint != nullptr && !endpoint->is_connected()) return;  // prepared when it is
  why_replay_ = endpoint != nullptr    ? "nothing that carries between ranks was seen inside a WHILE node"
                : !has_while_nodes     ? "this runtime has no WHILE nodes"
                : while_nodes_wanted() ? record_loops(arguments)
                                       : "HOSTLESS_GPU_WHILE is 0";
  if (why_replay_.empty()) return;
  whole_.reset();
  replay_ =
      std::make_unique<ReplayQueue>(mailbox_, stream_, 0, endpoint, arguments.tile_order.tile != nullptr);
  why_stream_ = replay_->prepare(arguments, instance_);
  if (endpoint != nullptr && !why_stream_.empty()) {  // others would replay, and not equally often
    throw Error(ErrorCode::environment, "iterations with GPU transport " + endpoint->describe() +
                                            " cannot be recorded (" + why_stream_ + "). Use --run stream.");
  }
}

// Returns why it cannot be done: the driver may be older than the runtime.
std::string GraphRunner::record_loops(Arguments const& arguments) {
  try {
    LoopQueue queue(whole_.emplace(), arguments.state, arguments.phases.columns, stream_);
    queue.trace_with(arguments.stamps);
    instance_.run_phases(arguments, queue);
    whole_->instantiate(stream_);
    return {};
  } catch (Error const& error) {
    return error.what();
  }
}

void GraphRunner::run(Arguments const& arguments, Watch const& watch, Cost& cost) {
  mailbox_.be_silent(arguments.control.silence);
  if (whole_) {
    run_loops(arguments, watch, cost);
  } else {
    run_looking(arguments, instance_, *replay_, stream_, watch, cost);
  }
}

void GraphRunner::run_loops(Arguments const& arguments, Watch const& watch, Cost& cost) {
  TimedEvent begin, end;
  mailbox_.begin_run(stream_);
  if (arguments.stamps != nullptr) arguments.stamps->restart(stream_);
  begin.record(stream_);
  whole_->launch(stream_);
  end.record(stream_);
  ++cost.launches;
  bool ordered = false;
  watch_stream(stream_, [&] {
    if (!ordered && watch.stop && watch.stop()) {
      mailbox_.order_stop(side_);
      ordered = true;
    }
    watch.tell(mailbox_.states_after(arguments.state, side_));  // which may be in the making
  });
  side_.wait();
  cost.device_s += end.seconds_since(begin);
}

std::string GraphRunner::describe(Arguments const& arguments) const {
  std::string const shape = products_of(arguments) + std::to_string(arguments.layout.tiles) + " blocks of " +
                            std::to_string(block_threads) + " threads, ";
  if (whole_) {
    return shape + "the whole solve one graph with WHILE nodes, " + std::to_string(whole_->nodes()) +
           " nodes, " + std::to_string(iterations_a_round) + " iterations a round";
  }
  if (!why_stream_.empty())
    return shape + "launched on a stream (" + why_replay_ + "; nor can they be replayed: " + why_stream_ +
           ")";
  return shape + "graphs of " + std::to_string(iterations_a_replay) + " iterations replayed (" + why_replay_ +
         ")";
}

}  // namespace hostless::gpu
