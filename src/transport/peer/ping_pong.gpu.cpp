// Messages there and back between two kernels that run at the same time, on two GPUs or on one.
#include <algorithm>
#include <memory>

#include "device/block.hpp"
#include "device/clock.hpp"
#include "transport/memory/paths.hpp"
#include "transport/peer/flagged_words.gpu.hpp"
#include "transport/stream/signals.hpp"

namespace hostless::gpu {
namespace {

constexpr int most_blocks = 32, values_of_thread = 4;

/// One end: each of its blocks has a part of the message, and the same block of the other end answers it.
struct PingPongCall {
  void const* here = nullptr;  ///< [values] words or doubles
  void* there = nullptr;
  FlaggedWord const* mark_here = nullptr;  ///< [blocks], behind doubles
  FlaggedWord* mark_there = nullptr;
  std::int64_t values = 0;
  std::uint32_t steps = 0;  ///< after the first one, which waits for the other kernel to begin
  bool begins = false, by_flagged_words = false;
  std::uint64_t deadline_cycles = 0;
  std::uint32_t* done = nullptr;   ///< [blocks] steps that went well, the first one too
  std::uint64_t* clock = nullptr;  ///< [blocks] cycles of those after it
};

/// Value i of a message; neighbours in place and time differ.
__device__ __forceinline__ double value_at(std::int64_t i, std::uint32_t epoch) {
  return __builtin_fma(static_cast<double>(i), 0.5, static_cast<double>(epoch));
}

class PingPong {
 public:
  __device__ explicit PingPong(PingPongCall const& call)
      : call_(call),
        first_(call.values * blockIdx.x / gridDim.x + threadIdx.x),
        end_(call.values * (blockIdx.x + 1) / gridDim.x) {}

  /// The block's threads have read what came before, which they wait for in `receive`: the target is free.
  __device__ __forceinline__ void send(std::uint32_t epoch) const {
    if (call_.by_flagged_words) {
      auto* const to = static_cast<FlaggedWord*>(call_.there);
      for (std::int64_t i = first_; i < end_; i += blockDim.x) put_value(to + i, value_at(i, epoch), epoch);
      return;
    }
    auto* const to = static_cast<double*>(call_.there);
    for (std::int64_t i = first_; i < end_; i += blockDim.x) to[i] = value_at(i, epoch);
    fence_system();
    __syncthreads();
    if (threadIdx.x == 0) put_value(call_.mark_there + blockIdx.x, 0.0, epoch);
  }
  /// True for all threads: what came is what was sent.
  __device__ __forceinline__ bool receive(std::uint32_t epoch) const {
    bool whole = true;
    FlaggedWord flagged_word{};
    if (call_.by_flagged_words) {
      auto const* const from = static_cast<FlaggedWord const*>(call_.here);
      for (std::int64_t i = first_; i < end_; i += blockDim.x)
        whole = whole && await_flagged_word(from + i, flagged_word, epoch, call_.deadline_cycles) &&
                value_of(flagged_word) == value_at(i, epoch);
    } else {
      if (threadIdx.x == 0) {
        whole = await_flagged_word(call_.mark_here + blockIdx.x, flagged_word, epoch, call_.deadline_cycles);
        fence_system();
      }
      __syncthreads();
      auto const* const from = static_cast<double const*>(call_.here);
      for (std::int64_t i = first_; i < end_; i += blockDim.x) whole = whole && from[i] == value_at(i, epoch);
    }
    return __syncthreads_or(whole ? 0 : 1) == 0;
  }

 private:
  PingPongCall const& call_;
  std::int64_t first_, end_;
};

__global__ void ping_pong_kernel(HOSTLESS_PARAMETER PingPongCall const call) {
  PingPong const end(call);
  std::uint32_t epoch = 1, step = 0;
  std::uint64_t begun = 0;
  for (; step <= call.steps; ++step) {
    epoch = next_epoch(epoch);
    if (call.begins) end.send(epoch);
    if (!end.receive(epoch)) break;
    if (!call.begins) end.send(epoch);
    if (step == 0) begun = cycles();
  }
  if (threadIdx.x != 0) return;
  call.done[blockIdx.x] = step;
  call.clock[blockIdx.x] = cycles() - begun;
}

/// What one GPU lends to a ping-pong.
class Player {
 public:
  Player(int device, PingPongRequest const& request, int blocks)
      : device_(device), blocks_(blocks), deadline_(cycles_of(device, request.deadline_s)) {
    use_device(device);
    auto const values = static_cast<std::size_t>(call_.values = static_cast<std::int64_t>(request.bytes / 8));
    call_.by_flagged_words = request.by_flagged_words;
    call_.deadline_cycles = deadline_;
    stream_ = std::make_unique<Stream>();
    begin_ = std::make_unique<TimedEvent>();
    end_ = std::make_unique<TimedEvent>();
    message_ = Array<FlaggedWord>(request.by_flagged_words ? values : (values + 1) / 2);
    mark_ = Array<FlaggedWord>(static_cast<std::size_t>(blocks));
    done_ = Array<std::uint32_t>(static_cast<std::size_t>(blocks));
    clock_ = Array<std::uint64_t>(static_cast<std::size_t>(blocks));
    call_.here = message_.data();
    call_.mark_here = mark_.data();
    call_.done = done_.data();
    call_.clock = clock_.data();
    HOSTLESS_GPU(FuncAttributes)
    attributes{};  // loads the kernel: a wait for the other one would hold that up
    check(HOSTLESS_GPU(FuncGetAttributes)(&attributes, reinterpret_cast<void const*>(&ping_pong_kernel)),
          "loading a kernel");
  }
  void answers(Player const& other) {
    call_.there = other.message_.data();
    call_.mark_there = other.mark_.data();
  }
  void clear() {
    use_device(device_);
    message_.clear();
    mark_.clear();
    done_.clear();
  }
  void start(std::uint32_t steps, bool begins) {
    use_device(device_);
    PingPongCall call = call_;
    call.steps = steps;
    call.begins = begins;
    std::int64_t const of_block = (call.values + blocks_ - 1) / blocks_;
    auto const threads = static_cast<int>(std::min<std::int64_t>(block_threads, (of_block + 31) / 32 * 32));
    begin_->record(*stream_);
    launch_kernel(reinterpret_cast<void const*>(&ping_pong_kernel), blocks_, threads, stream_->get(), call);
    end_->record(*stream_);
  }
  /// Steps of which all of the message came, after the kernel is done.
  std::uint32_t steps_done() const {
    use_device(device_);
    stream_->wait();
    std::vector<std::uint32_t> done(done_.size());
    done_.get(done.data(), done.size());
    return *std::min_element(done.begin(), done.end());
  }
  double clock_s() const {
    use_device(device_);
    std::vector<std::uint64_t> clock(clock_.size());
    clock_.get(clock.data(), clock.size());
    return static_cast<double>(*std::max_element(clock.begin(), clock.end())) /
           static_cast<double>(cycles_of(device_, 1.0));
  }
  double events_s() const { return end_->seconds_since(*begin_); }

 private:
  int device_, blocks_;
  std::uint64_t deadline_;
  PingPongCall call_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<TimedEvent> begin_, end_;
  Array<FlaggedWord> message_, mark_;
  Array<std::uint32_t> done_;
  Array<std::uint64_t> clock_;
};

// So many that blocks of both ends work at the same time.
int blocks_of(PingPongRequest const& request) {
  int multiprocessors = most_blocks;
  for (int const device : {request.first, request.second}) {
    HOSTLESS_DEVICE_PROPERTIES properties{};
    check(HOSTLESS_GPU(GetDeviceProperties)(&properties, device), "asking a GPU what it is");
    multiprocessors = std::min(multiprocessors, properties.multiProcessorCount / 2);
  }
  auto const wanted = static_cast<std::int64_t>(request.bytes / 8) / (block_threads * values_of_thread);
  return static_cast<int>(std::clamp<std::int64_t>(wanted, 1, std::max(1, multiprocessors)));
}

/// False: not all came.
bool bounce(Player& first, Player& second, int steps) {
  first.clear();
  second.clear();
  auto const count = static_cast<std::uint32_t>(steps);
  second.start(count, false);
  first.start(count, true);
  bool const whole = first.steps_done() == count + 1;
  return second.steps_done() == count + 1 && whole;
}

}  // namespace

std::uint64_t cycles_of(int device, double seconds) { return cycles_of(seconds, clock_hertz(device)); }

PingPongFacts ping_pong(PingPongRequest const& request) {
  PingPongFacts facts;
  facts.problem = open_path(request.first, request.second);
  if (facts.problem.empty())
    facts.problem = open_path(request.second, request.first);  // answers come that way
  if (!facts.problem.empty()) return facts;
  int const blocks = blocks_of(request);
  Player first(request.first, request, blocks), second(request.second, request, blocks);
  first.answers(second);
  second.answers(first);
  for (int round = -1; round < request.repeat; ++round) {
    int const steps = round < 0 ? request.warm_up : request.steps;
    if (!bounce(first, second, steps)) {
      facts.problem = "a message of " + std::to_string(request.bytes) +
                      " bytes between two kernels did not come within " + std::to_string(request.deadline_s) +
                      " s, or not as it was sent";
      return facts;
    }
    if (round < 0) continue;
    facts.clock_s.push_back(first.clock_s() / (2.0 * steps));
    facts.events_s.push_back(first.events_s() / (2.0 * (steps + 1)));
  }
  return facts;
}

}  // namespace hostless::gpu
