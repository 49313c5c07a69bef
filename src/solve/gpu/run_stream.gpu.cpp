#include "solve/gpu/run_stream.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <thread>
#include <utility>

#include "hostless/base/deadline.hpp"
#include "hostless/base/order.hpp"
#include "hostless/base/wait.hpp"
#include "transport/memory/opened_memory.hpp"

namespace hostless::gpu {
namespace {

constexpr int longest_interval = 64;         // looks then cost less than 1 %: 15 us for 64 iterations of 20
constexpr double longest_interval_s = 0.05;  // somebody may want to stop
constexpr int most_tiles_a_thread = 4096;
// With a stream endpoint: a host that launches into a full queue (1024) cannot see that a rank is lost, nor
// serve. What a library launches in a call is not seen.
constexpr int most_under_way = 960, launches_of_a_call = 3;
constexpr double s_to_let_go =
    10;  // of kernels that waited for a lost rank; what is queued behind them still runs

// Kernels are loaded when they are first asked for.
class LoadingQueue final : public Queue {
 public:
  void launch(KernelLaunch const& launch) override { load_kernel(launch.kernel); }
  void repeat(Gate, std::function<void()> const& text) override { text(); }
  void call(std::function<void(HOSTLESS_GPU(Stream_t))> const&) override {}  // libraries load themselves
};

// Iterations to the target if the residual goes on falling as it did on average.
double expected_iterations(State const& s) {
  double const fallen = std::log(s.first_rr / s.rr), missing = std::log(s.rr) - 2 * std::log(s.closes_at());
  if (!(fallen > 0) || !std::isfinite(missing)) return longest_interval;
  return std::max(0.0, static_cast<double>(s.iteration) * missing / fallen);
}

}  // namespace

Mailbox::Mailbox(Arguments& arguments, bool free_order)
    : partial_(static_cast<std::size_t>(widest_sum) * static_cast<std::size_t>(arguments.layout.tiles) *
               static_cast<std::size_t>(arguments.columns)),
      total_(1 + widest_sum * static_cast<std::size_t>(arguments.columns)),
      lending_(arguments.lending),
      arrived_(1 + static_cast<std::size_t>(arguments.columns)),
      epoch_(1),
      flagged_words_(arguments.peers == nullptr
                         ? 0
                         : 2 * static_cast<std::size_t>(phase_flagged_words_of_parity(arguments.ranks)) *
                               sizeof(FlaggedWord),
                     arguments.lending),
      orders_(1),
      columns_(static_cast<std::size_t>(arguments.columns)),
      seen_(columns_) {
  int const tiles = arguments.layout.tiles;
  int const tiles_a_thread = power_of_two(std::max(1, (tiles + block_threads - 1) / block_threads));
  if (tiles_a_thread > most_tiles_a_thread) {
    throw Error(ErrorCode::usage, std::to_string(arguments.layout.tiling.slices) +
                                      " slices (one block adds their sums, at most " +
                                      std::to_string(2 * block_threads * most_tiles_a_thread) +
                                      "). Use fewer slices.");
  }
  std::fill_n(seen_.data(), columns_, State{});
  partial_.clear();
  total_.clear();
  arrived_.clear();
  orders_.clear();
  forget_barriers(0);
  arguments.phases = {arguments.state,
                      orders_.data(),
                      partial_.data(),
                      total_.data() + 1,
                      arrived_.data(),
                      tiles,
                      arguments.columns,
                      arguments.column_stride,
                      arrived_.data() + arguments.columns,
                      tiles_a_thread,
                      free_order,
                      arguments.peers,
                      arguments.rounds,
                      epoch_.data(),
                      arguments.control.deadline_cycles,
                      std::max(arguments.control.first_cycles, arguments.control.deadline_cycles)};
}

void Mailbox::lend(PeerMemory& memory) const {
  memory.phase_flagged_words = gpu::lend(flagged_words_, flagged_words_.data(), lending_);
}

void Mailbox::forget_barriers(std::uint32_t last_epoch) {
  flagged_words_.clear();
  epoch_.put(&last_epoch, 1);
}

void Mailbox::ask_for(State const* state, Stream const& stream) {
  check(HOSTLESS_GPU(MemcpyAsync)(seen_.data(), state, sizeof(State) * columns_,
                                  HOSTLESS_GPU(MemcpyDeviceToHost), stream.get()),
        "reading the state");
}

std::span<State const> Mailbox::states_after(State const* state, Stream const& stream) {
  ask_for(state, stream);
  stream.wait();
  return states();
}

void Mailbox::lose(State* state, Stream const& stream) {
  static_cast<void>(states_after(state, stream));
  arrived_.clear();  // of a parted sweep only the first part may have been launched
  for (std::size_t c = 0; c < columns_; ++c) seen_.data()[c].status = Status::peer_lost;
  check(HOSTLESS_GPU(MemcpyAsync)(state, seen_.data(), sizeof(State) * columns_,
                                  HOSTLESS_GPU(MemcpyHostToDevice), stream.get()),
        "ending a solve");
  stream.wait();
}

void Mailbox::begin_run(Stream const& stream) {
  given_.host().awaits_first = 1;  // for good: a copy that is under way reads it
  give(0, sizeof(Orders), stream);
  begun_.record(stream);
}

// What ranks wait for in a run that is under way is the phases' to say.
void Mailbox::order_stop(Stream const& stream) {
  static_assert(offsetof(Orders, stop) == 0);
  begun_.hold(stream);  // else its copy may take the order back
  give(1, sizeof(Orders::stop), stream);
}

void Mailbox::give(std::uint32_t stop, std::size_t bytes, Stream const& stream) {
  given_.host().stop = stop;
  check(HOSTLESS_GPU(MemcpyAsync)(orders_.data(), given_.data(), bytes, HOSTLESS_GPU(MemcpyHostToDevice),
                                  stream.get()),
        "giving an order to the GPU");
  said_.host() = stop;
  check(HOSTLESS_GPU(MemcpyAsync)(total_.data(), said_.data(), sizeof(double),
                                  HOSTLESS_GPU(MemcpyHostToDevice), stream.get()),
        "giving an order to the GPU");
}

void LookingQueue::start(Arguments const& arguments, Watch const& watch) {
  state_ = arguments.state;
  watch_ = &watch;
  silence_ = arguments.control.silence;
  looks_ = 0;
  has_inner_loop_ = false;
  if (endpoint_ != nullptr) endpoint_->expect_late_ranks();
  mailbox_.begin_run(stream_);
}

void LookingQueue::wait() {
  under_way_ = 0;
  if (endpoint_ == nullptr) return stream_.wait();
  if (!endpoint_->wait(stream_)) throw RankLost{};
}

void LookingQueue::let_go() {
  if (endpoint_ == nullptr) return;
  endpoint_->abort();
  Deadline const deadline = Deadline::after(s_to_let_go);
  while (!stream_.done() || (aside_ != nullptr && !aside_->stream.done())) {
    if (deadline.passed()) {
      throw Error(ErrorCode::environment, "a rank was lost and kernels go on waiting for it (" +
                                              endpoint_->describe() + " does not give up). End the program.");
    }
    Backoff::give_core_away();
  }
  forget_recorded();
  endpoint_->settle();
}

void LookingQueue::lose(State* state) {
  let_go();
  mailbox_.lose(state, stream_);
}

void LookingQueue::launch(KernelLaunch const& launch) {
  check(HOSTLESS_GPU(LaunchKernel)(launch.kernel, dim3(static_cast<unsigned>(launch.blocks)),
                                   dim3(block_threads), launch.parameters, 0, current().get()),
        "launching a kernel");
  count_launch();
  if (!waits_for_sums_ || !launch.decides) return;
  mailbox_.ask_for(state_, stream_);
  wait();
}

// A rank that waits here queues no more and no less than the others.
void LookingQueue::count_launch(int of_the_queue) {
  ++launches_;
  if (endpoint_ == nullptr || is_recording()) return;
  if (endpoint_->serve() == StreamEndpoint::Served::lost) throw RankLost{};
  under_way_ += of_the_queue;
  if (under_way_ >= most_under_way && !is_aside_) wait();
}

void LookingQueue::fork() {
  Aside* const to = aside();
  if (to == nullptr) return;
  to->parted.record(stream_);
  to->parted.hold(to->stream);
}

void LookingQueue::beside(std::function<void()> const& use) {
  is_aside_ = aside() != nullptr;
  try {
    use();
  } catch (...) {
    is_aside_ = false;
    throw;
  }
  is_aside_ = false;
}

void LookingQueue::join() {
  Aside* const from = aside();
  if (from == nullptr) return;
  from->joined.record(from->stream);
  from->joined.hold(stream_);
}

void LookingQueue::call(std::function<void(HOSTLESS_GPU(Stream_t))> const& use) {
  use(current().get());
  count_launch(launches_of_a_call);
}

void LookingQueue::execute(Gate, std::function<void()> const& text, int iterations) {
  for (int k = 0; k < iterations; ++k) text();
}

void LookingQueue::repeat(Gate gate, std::function<void()> const& text) {
  int interval = 0;
  auto begin = std::chrono::steady_clock::now();
  for (;;) {
    std::span<State const> const states = look();
    if (!loop_goes_on(states.data(), static_cast<int>(states.size()), gate)) break;
    auto const now = std::chrono::steady_clock::now();
    double const last_s = std::chrono::duration<double>(now - std::exchange(begin, now)).count();
    if (interval == 0 || has_inner_loop_) {
      has_inner_loop_ = false;
      text();
      interval = 1;
    } else {
      interval = next_interval(states, gate, interval, last_s);
      execute(gate, text, interval);
    }
  }
  has_inner_loop_ = true;
}

std::span<State const> LookingQueue::look() {
  if (endpoint_ != nullptr && silence_.block >= 0 && looks_++ >= silence_.barrier) fall_silent();
  if (watch_->stop && watch_->stop()) mailbox_.order_stop(stream_);
  mailbox_.ask_for(state_, stream_);
  wait();
  watch_->tell(mailbox_.states());
  return mailbox_.states();
}

// As a process does that hangs; in the end it sees that nobody has waited.
void LookingQueue::fall_silent() const {
  std::this_thread::sleep_for(std::chrono::duration<double>(endpoint_->deadline_s()));
  throw RankLost{};
}

// Never beyond an iteration at which the solve is known to end or pause, half of what is expected otherwise.
int LookingQueue::next_interval(std::span<State const> states, Gate gate, int last, double last_s) const {
  if (fixed_interval_ > 0) return fixed_interval_;
  std::int64_t longest = longest_interval;
  for (State const& state : states) {
    if (!state.open(gate)) continue;
    std::int64_t known = state.limit - state.iteration;
    if (state.pause_at > state.iteration) known = std::min(known, state.pause_at - state.iteration);
    double const expected = std::min<double>(longest_interval, expected_iterations(state) / 2);
    longest = std::min({longest, known, static_cast<std::int64_t>(expected)});
  }
  bool const is_slow = endpoint_ == nullptr && last_s > longest_interval_s / 2;
  int const grown = is_slow ? std::max(1, last / 2) : 2 * last;
  return static_cast<int>(std::clamp<std::int64_t>(longest, 1, grown));
}

void run_looking(Arguments const& arguments, Instance const& instance, LookingQueue& queue,
                 Stream const& stream, Watch const& watch, Cost& cost) {
  TimedEvent begin, end;
  std::int64_t const launches = queue.launches();
  queue.start(arguments, watch);
  queue.trace_with(arguments.stamps);
  if (arguments.stamps != nullptr) arguments.stamps->restart(stream);
  begin.record(stream);
  try {
    instance.run_phases(arguments, queue);
    end.record(stream);
    queue.wait();
    cost.device_s += end.seconds_since(begin);
  } catch (RankLost const&) {
    queue.lose(arguments.state);
  } catch (...) {
    queue.let_go();
    throw;
  }
  cost.launches += queue.launches() - launches;
}

StreamRunner::StreamRunner(Arguments& arguments, Instance const& instance, Problem const& problem)
    : instance_(instance),
      fixed_interval_(problem.host_waits != HostWaits::when_needed ? 1
                      : problem.check_interval > 1                 ? problem.check_interval
                                                                   : 0),
      host_waits_(problem.host_waits),
      mailbox_(arguments, problem.free_order) {}

void StreamRunner::prepare(Arguments const& arguments) {
  LoadingQueue loading;
  loading.trace_with(arguments.stamps);
  instance_.run_phases(arguments, loading);
}

void StreamRunner::run(Arguments const& arguments, Watch const& watch, Cost& cost) {
  mailbox_.be_silent(arguments.control.silence);
  LookingQueue queue(mailbox_, stream_, fixed_interval_, arguments.endpoint,
                     arguments.tile_order.tile != nullptr, host_waits_ == HostWaits::every_sum);
  run_looking(arguments, instance_, queue, stream_, watch, cost);
}

std::string StreamRunner::describe(Arguments const& arguments) const {
  std::string const interval = fixed_interval_ == 1 ? "iteration"
                               : fixed_interval_ > 1
                                   ? std::to_string(fixed_interval_) + " iterations"
                                   : "1 to " + std::to_string(longest_interval) + " iterations";
  return products_of(arguments) + std::to_string(arguments.layout.tiles) + " blocks of " +
         std::to_string(block_threads) + " threads, a kernel a phase, a look at the state every " + interval +
         (host_waits_ == HostWaits::every_sum ? ", and a wait for every sum" : "");
}

}  // namespace hostless::gpu
