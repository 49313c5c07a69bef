#include "transport/stream/hosted_stream.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/variable.hpp"
#include "device/clock.hpp"
#include "device/graph.hpp"
#include "hostless/base/wait.hpp"
#include "transport/stream/await.gpu.hpp"

namespace hostless::gpu {
namespace {

constexpr int gather_job = most_rounds;  // and the width of what is gathered; below are rounds
static_assert(gather_job + widest_sum + 1 < 1 << job_bits);

/// So many doubles the block that has waited brings itself; copies of more go faster by the copy engine.
constexpr std::int64_t most_brought_by_block = 4096;

// Of what the host has written: no cache may know it. Some are on their way at once, a microsecond each.
__device__ __forceinline__ void bring(BroughtPart const& part) {
  constexpr int together = 8;
  for (std::int64_t first = threadIdx.x; first < part.count; first += together * block_threads) {
    double value[together] = {};
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u)
      if (std::int64_t const k = first + u * block_threads; k < part.count)
        value[u] = *static_cast<double const volatile*>(part.from + k);
    HOSTLESS_UNROLL
    for (int u = 0; u < together; ++u)
      if (std::int64_t const k = first + u * block_threads; k < part.count) part.to[k] = value[u];
  }
}

/// One block. What was stored before this kernel, and what it says, is there when the host sees the word.
__global__ void __launch_bounds__(block_threads, 1)
    ask_kernel(HOSTLESS_PARAMETER BroughtPart const said, int job, std::uint64_t* asked,
               std::uint64_t* word) {
  for (std::int64_t k = threadIdx.x; k < said.count; k += block_threads) said.to[k] = said.from[k];
  fence_system();
  __syncthreads();
  if (threadIdx.x != 0) return;
  fence_system();
  std::uint64_t const number = ++*asked;
  store_signal(word, request_of(number, job));
}

struct Brought {
  BroughtPart part[2];
};

/// One block. After a loss it brings nothing.
__global__ void __launch_bounds__(block_threads, 1)
    answer_kernel(HOSTLESS_PARAMETER AwaitCall const call, HOSTLESS_PARAMETER Brought const brought) {
  if (!await_signals(call)) return;
  bring(brought.part[0]);
  bring(brought.part[1]);
}

void launch_answer(StreamQueue& queue, AwaitCall const& call, Brought const& brought) {
  launch(queue, reinterpret_cast<void const*>(&answer_kernel), 1, call, brought);
}

}  // namespace

HostedStream::HostedStream(StreamSetup const& setup)
    : StreamEndpoint(setup),
      host_(*setup.host),
      rank_(setup.rank),
      is_part_(!setup.composite.empty()),
      everyone_(static_cast<std::size_t>(setup.ranks) * (widest_sum + 1)),
      mine_(widest_sum + 1),
      all_(everyone_.size()),
      asked_(1),
      arrived_(1),
      lost_(1),
      hertz_(clock_hertz(setup.device)) {
  if (setup.rounds.size() > most_rounds)
    throw Error(ErrorCode::usage, "a plan of " + std::to_string(setup.rounds.size()) +
                                      " rounds that the host carries for kernels (at most " +
                                      std::to_string(most_rounds) + "). Use another route.");
  clear();
  kernels_wait_ = setup.sharers == 1 && !is_one("HOSTLESS_GPU_HOST_WAITS") && launch_returns(false);
  graphs_wait_ = kernels_wait_ && launch_returns(true);
}

// Whether the host is back from a launch, and copies behind it, before the kernel that waits for it gives up.
bool HostedStream::launch_returns(bool recorded) {
  constexpr double longest_s = 1;
  Stream const stream;
  DirectQueue queue(stream);
  auto const launch = [&] { launch_answer(queue, await_call(longest_s), {}); };
  Graph graph;
  if (recorded) {
    graph.take_recorded(stream, [&](HOSTLESS_GPU(Stream_t)) { launch(); });
    graph.instantiate(stream);
    graph.launch(stream);
  } else {
    launch();
  }
  auto const copy = [&](double* to, double const* from) {
    check(HOSTLESS_GPU(MemcpyAsync)(to, from, sizeof(double), HOSTLESS_GPU(MemcpyDefault), stream.get()),
          "copying behind a kernel that waits");
  };
  copy(all_.data(), everyone_.data());
  copy(everyone_.data(), all_.data());
  answer_.host() = requests_.answer();
  stream.wait();
  bool const heard = told_.host() == 0;
  clear();
  return heard;
}

AwaitCall HostedStream::await_call(double longest_s) const {
  return {answer_.device(),
          arrived_.data(),
          1,
          lost_.data(),
          ended_.device(),
          told_.device(),
          cycles_of(longest_s, hertz_)};
}

void HostedStream::clear() {
  everyone_.clear();
  asked_.clear();
  arrived_.clear();
  lost_.clear();
  request_.host() = 0;
  answer_.host() = 0;
  ended_.host() = 0;
  told_.host() = 0;
  requests_.forget();
  is_under_way_ = false;
}

void HostedStream::connect(UniqueId const&, std::byte*) {
  clear();
  try_it();
  is_connected_ = true;
}

void HostedStream::abort() noexcept {
  is_connected_ = false;
  end_waits();
}

void HostedStream::end_waits() noexcept {
  ended_.host() = 1;
  answer_.host() = poisoned_signal;
}

void HostedStream::ask(StreamQueue& queue, int job, BroughtPart const& said) {
  launch(queue, reinterpret_cast<void const*>(&ask_kernel), 1, said, job, asked_.data(), request_.device());
}

void HostedStream::await_exchange(StreamQueue& queue, std::array<BroughtPart, 2> const& parts) {
  bool const by_block = kernels_wait_ && parts[0].count + parts[1].count <= most_brought_by_block;
  if (!kernels_wait_) {
    queue.call([&](HOSTLESS_GPU(Stream_t) stream) {
      await_what_is_sent(stream);
      if (serve() == Served::lost) throw RankLost{};
    });
  } else {
    double const longest_s =
        2 * std::max(first_s(), deadline_s()) + 1;  // the host gives up first, and says so
    launch_answer(queue, await_call(longest_s), by_block ? Brought{{parts[0], parts[1]}} : Brought{});
  }
  if (by_block) return;
  queue.call([&](HOSTLESS_GPU(Stream_t) stream) {
    for (BroughtPart const& part : parts)
      if (part.count != 0)
        check(HOSTLESS_GPU(MemcpyAsync)(part.to, part.from,
                                        static_cast<std::size_t>(part.count) * sizeof(double),
                                        HOSTLESS_GPU(MemcpyDefault), stream),
              "copying from the host");
  });
}

// The other part's kernels give up later than hosts do, and its loss is seen here first.
void HostedStream::await_what_is_sent(HOSTLESS_GPU(Stream_t) stream) {
  if (!is_part_) {
    // bounded: kernels before it wait for nobody
    check(HOSTLESS_GPU(StreamSynchronize)(stream), "waiting for what is sent");
    return;
  }
  auto const is_done = [&] {
    auto const code = HOSTLESS_GPU(StreamQuery)(stream);
    if (code == HOSTLESS_GPU(ErrorNotReady)) return false;
    check(code, "waiting for what is sent");
    return true;
  };
  auto const is_lost = [&] { return poll() == Served::lost; };
  if (wait_for(is_done, is_lost, Deadline::after(next_limit_s())) != Waited::done) throw RankLost{};
}

double const* HostedStream::gather(StreamQueue& queue, double const* mine, int count) {
  ask(queue, gather_job + count, {mine, mine_.device(), count});
  await_exchange(queue, {BroughtPart{all_.device(), everyone_.data(), std::int64_t{ranks()} * count}, {}});
  return everyone_.data();
}

StreamEndpoint::Served HostedStream::poll() {
  if (is_lost()) return Served::lost;
  int const job = requests_.asked(request_.host());
  if (job == Requests::none) return Served::nothing;
  MessageState state = MessageState::lost;
  try {
    state = std::exchange(is_under_way_, true) ? host_.test() : begin_job(job);
  } catch (...) {
    abort();  // kernels do not wait for what will not come
    throw;
  }
  if (state == MessageState::under_way) return Served::under_way;
  is_under_way_ = false;
  if (state == MessageState::lost) {
    abort();
    return Served::lost;
  }
  std::atomic_thread_fence(std::memory_order_release);
  answer_.host() = requests_.answer();
  return Served::something;
}

MessageState HostedStream::begin_job(int job) {
  std::atomic_thread_fence(std::memory_order_acquire);  // what was said comes after the word
  if (job >= gather_job)
    return host_.gather(mine_.data(), job - gather_job, all_.data()) ? MessageState::complete
                                                                     : MessageState::lost;
  host_.start(job);
  return host_.test();
}

}  // namespace hostless::gpu
