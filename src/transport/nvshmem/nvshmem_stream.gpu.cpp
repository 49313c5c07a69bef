// NVSHMEM: halos and parts of sums are put, with a signal behind each, from the stream; the signals are
// awaited by a kernel of ours, which has a deadline and hears the host, where those of the library have
// neither. rocSHMEM has the same face, but no library that could be loaded here.
#include <algorithm>
#include <cstring>
#include <utility>

#include "device/clock.hpp"
#include "device/on_device.hpp"
#include "transport/nvshmem/facts.hpp"
#include "transport/nvshmem/nvshmem.hpp"
#include "transport/stream/await.gpu.hpp"
#include "transport/stream/signal_messages.hpp"
#include "transport/stream/stream_transports.hpp"

namespace hostless::gpu {
namespace {

/// One block. What a rank says goes where puts take it from, and to its own place.
__global__ void __launch_bounds__(block_threads, 1)
    say_kernel(double const* mine, int count, double* to, double* own) {
  int const k = static_cast<int>(threadIdx.x);
  if (k < count) to[k] = own[k] = mine[k];
}

/// All signals of this rank's on others: the memory of those that this GPU can store to, else null.
struct Reached {
  std::byte* memory[most_ranks] = {};
  std::int64_t first_signal = 0;
  int words = 0;
};

/// By one block: whoever waits for this rank need not wait for the deadline.
__device__ __forceinline__ void poison(Reached const& others) {
  int const other = static_cast<int>(threadIdx.x) % most_ranks;
  if (others.memory[other] == nullptr) return;
  auto* const signals = reinterpret_cast<std::uint64_t*>(others.memory[other] + others.first_signal);
  for (int k = static_cast<int>(threadIdx.x) / most_ranks; k < others.words; k += block_threads / most_ranks)
    store_signal(signals + k * most_ranks, poisoned_signal);
  fence_system();
}
__global__ void __launch_bounds__(block_threads, 1) poison_kernel(HOSTLESS_PARAMETER Reached const others) {
  poison(others);
}

/// One block. What is queued behind a loss puts all the same, of ghosts that never came, where others may
/// still read: they hear of the loss before.
__global__ void __launch_bounds__(block_threads, 1)
    await_kernel(HOSTLESS_PARAMETER AwaitCall const call, HOSTLESS_PARAMETER Reached const others) {
  if (!await_signals(call)) poison(others);
}

class NvshmemStream final : public StreamEndpoint {
 public:
  explicit NvshmemStream(StreamSetup const& setup)
      : StreamEndpoint(setup),
        use_(nvshmem::functions()),
        device_(setup.device),
        rank_(setup.rank),
        memory_(setup.symmetric),
        base_(memory_->here()),
        messages_(setup.rounds, setup.rank, setup.ranks),
        arrived_(2 * static_cast<std::size_t>(messages_.offsets().channels())),
        lost_(1) {
    longest_cycles_ = cycles_of(std::max(first_s(), deadline_s()), clock_hertz(device_));
    for (int other = 0; other < ranks(); ++other)
      if (other != rank_) others_.memory[other] = memory_->of(other);
    others_.first_signal = messages_.offsets().signal(0, 0, rank_);
    others_.words = 2 * messages_.offsets().channels();
    clear();
  }
  ~NvshmemStream() override {
    if (was_lost_) nvshmem::never_again(*memory_);
  }

  std::byte* outgoing(int) override { return base_ + messages_.offsets().outgoing(); }
  std::byte const* incoming(int round) override { return base_ + messages_.incoming(round); }
  void send(StreamQueue& queue, int round, std::byte*) override {
    OnStream here(*this, queue);
    messages_.send(here, round);
  }
  void await(StreamQueue& queue, int round, std::byte*) override {
    OnStream here(*this, queue);
    messages_.await(here, round);
  }
  void end_exchange(StreamQueue& queue) override {
    OnStream here(*this, queue);
    messages_.end_exchange(here);
  }
  double const* gather(StreamQueue& queue, double const* mine, int count) override {
    OnStream here(*this, queue);
    return at<double>(messages_.gather(here, mine, count));
  }
  bool is_recorded() const override { return true; }
  bool replays_anywhere() const override { return false; }  // buffers take turns on the host
  int phase() const override { return messages_.phase(); }
  void reach(StreamQueue& queue, int phase) override {
    OnStream here(*this, queue);
    messages_.reach(here, phase);
  }

  // The first time nothing has ever been sent; afterwards all ranks have forgotten, and meet once more before
  // they send.
  void connect(UniqueId const&, std::byte*) override {
    if (was_lost_) clear();
    is_connected_ = true;
    if (!std::exchange(was_lost_, false)) try_it();
  }
  bool is_connected() const override { return is_connected_; }
  void abort() noexcept override {
    ended_.host() = 1;
    is_connected_ = false;
    was_lost_ = true;
    void* parameters[] = {&others_};
    (void)HOSTLESS_GPU(LaunchKernel)(reinterpret_cast<void const*>(&poison_kernel), dim3(1),
                                     dim3(block_threads), parameters, 0, side_.get());
  }
  void forget() override {
    was_lost_ = true;  // by another rank, perhaps
    struct Side {
      Stream stream;
    };
    auto const side = std::make_shared<Side>();  // outlives a call that does not return
    bool const quiet = nvshmem::call_within(
        deadline_s(), enter_device(device_),
        [side] {
          nvshmem::functions().quiet(static_cast<void*>(side->stream.get()));
          (void)HOSTLESS_GPU(StreamSynchronize)(side->stream.get());  // bounded: call_within leaves it behind
        },
        "what it had under way for a lost rank did not end");
    bool const poisoned = side_.wait_until(Deadline::after(deadline_s()));
    if (quiet && poisoned) return;
    if (!poisoned) nvshmem::give_up("telling others that this rank is lost did not end within the deadline");
    throw Error(ErrorCode::environment,
                "GPU transport nvshmem after a rank was lost (" + nvshmem::why_given_up() +
                    ", so this process cannot use it again). Start the program again, or use "
                    "--gpu-transport nccl, peer or host.");
  }

  std::string describe() const override {
    return "nvshmem (" + nvshmem::describe() + ", " + std::to_string(memory_->bytes()) +
           " bytes of symmetric memory a rank)";
  }
  std::int64_t bytes() const override { return memory_->bytes(); }
  bool guards_hold() const override { return arrived_.guards_hold() && lost_.guards_hold(); }
  static std::function<void()> enter_device(int device) {
    return [device] { (void)HOSTLESS_GPU(SetDevice)(device); };
  }

 protected:
  bool waits_on_gpu() const override { return true; }
  bool failed() override { return told_.host() != 0; }

 private:
  /// A rank's part of what messages_ says, on a queue.
  class OnStream final : public SignalQueue {
   public:
    OnStream(NvshmemStream& endpoint, StreamQueue& queue) : endpoint_(endpoint), queue_(queue) {}
    void say(double const* mine, int count, std::int64_t to, std::int64_t own) override {
      gpu::launch(queue_, reinterpret_cast<void const*>(&say_kernel), 1, mine, count,
                  endpoint_.at<double>(to), endpoint_.at<double>(own));
    }
    void put(SignalPut const& put) override {
      queue_.call([&](HOSTLESS_GPU(Stream_t) stream) { endpoint_.put(put, stream); });
    }
    void copy(std::int64_t to, std::int64_t from, std::int64_t bytes) override {
      queue_.call([&](HOSTLESS_GPU(Stream_t) stream) {
        check(HOSTLESS_GPU(MemcpyAsync)(endpoint_.base_ + to, endpoint_.base_ + from,
                                        static_cast<std::size_t>(bytes), HOSTLESS_GPU(MemcpyDeviceToDevice),
                                        stream),
              "copying inside the GPU");
      });
    }
    void await(int channel, int parity, std::uint32_t sources) override {
      gpu::launch(queue_, reinterpret_cast<void const*>(&await_kernel), 1,
                  endpoint_.await_call(channel, parity, sources), endpoint_.others_);
    }
    void in_earnest(std::function<void()> const& use) override {
      queue_.call([&](HOSTLESS_GPU(Stream_t)) { use(); });
    }

   private:
    NvshmemStream& endpoint_;
    StreamQueue& queue_;
  };

  template <class T>
  T* at(std::int64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }
  AwaitCall await_call(int channel, int parity, std::uint32_t sources) const {
    return {at<std::uint64_t>(messages_.offsets().signal(channel, parity, 0)),
            arrived_.data() + 2 * channel + parity,
            sources,
            lost_.data(),
            ended_.device(),
            told_.device(),
            longest_cycles_};
  }
  void put(SignalPut const& put, HOSTLESS_GPU(Stream_t) stream) const {
    if (!is_connected_)
      throw Error(
          ErrorCode::environment,
          "ranks of a library that has lost one (they are not connected any more). Make a new solver.");
    auto* const signal = at<std::uint64_t>(put.signal);
    if (put.bytes == 0) {
      use_.tell(signal, 1, nvshmem::add_to_signal, put.rank, static_cast<void*>(stream));
    } else {
      use_.put(base_ + put.to, base_ + put.from, static_cast<std::size_t>(put.bytes), signal, 1,
               nvshmem::add_to_signal, put.rank, static_cast<void*>(stream));
    }
  }
  // Of this rank; nobody may be putting.
  void clear() {
    check(HOSTLESS_GPU(Memset)(base_, 0, static_cast<std::size_t>(messages_.offsets().bytes())),
          "clearing symmetric memory");
    arrived_.clear();
    lost_.clear();
    ended_.host() = 0;
    told_.host() = 0;
    messages_.forget();
  }
  void try_it() {
    Stream const stream;
    DirectQueue queue(stream);
    exchange_buffers(queue, messages_.offsets().sums(), nullptr);
    static_cast<void>(gather(queue, at<double>(messages_.offsets().spoken()), 1));
    expect_late_ranks();
    if (wait(stream)) return;
    abort();
    stream.wait();  // bounded: kernels hear the host
    throw Error(ErrorCode::environment,
                "GPU transport nvshmem: the first messages did not arrive (not within the deadline; "
                "NVSHMEM_DEBUG=WARN says why). Use --gpu-transport nccl, peer or host.");
  }

  nvshmem::Functions const& use_;
  int device_, rank_;
  std::shared_ptr<SymmetricMemory> memory_;
  std::byte* base_;
  SignalMessages messages_;
  Array<std::uint64_t> arrived_;
  Array<std::uint32_t> lost_;
  Mapped<std::uint32_t> ended_, told_;
  Stream side_;
  Reached others_;
  std::uint64_t longest_cycles_ = 0;
  bool is_connected_ = false, was_lost_ = false;
};

bool is_of_cuda() { return std::strcmp(HOSTLESS_GPU_NAME, "CUDA") == 0; }
char const* const none_here =
    "GPU transport nvshmem under HIP (rocSHMEM, which has its face there, is no library that can be loaded). "
    "Use --gpu-transport nccl, peer or host.";

TransportFacts nvshmem_library() {
  if (!is_of_cuda()) return {"nvshmem", "", none_here, ""};
  return library_facts("nvshmem", nvshmem::describe, nvshmem::how_it_would_carry);
}

SymmetricOffer nvshmem_offer(StreamSetup const& setup, std::int64_t window_bytes) {
  if (!is_of_cuda()) throw Error(ErrorCode::environment, none_here);
  std::int64_t const wanted =
      window_bytes != 0 ? window_bytes : SignalOffsets(setup.rounds, setup.ranks).bytes();
  return nvshmem::offer(wanted, setup.rank);
}

std::shared_ptr<SymmetricMemory> nvshmem_memory(StreamSetup const& setup,
                                                std::vector<SymmetricOffer> const& all) {
  OnDevice const on(setup.device);
  return nvshmem::take(setup, all, NvshmemStream::enter_device(setup.device));
}

}  // namespace

StreamTransport nvshmem_stream() {
  return {nvshmem_facts, &make_stream<NvshmemStream>, &nvshmem_library, &nvshmem_offer, &nvshmem_memory};
}

}  // namespace hostless::gpu
