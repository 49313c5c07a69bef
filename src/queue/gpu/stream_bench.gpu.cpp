#include "queue/gpu/stream_bench.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "device/graph.hpp"
#include "device/on_device.hpp"
#include "queue/gpu/bench_kernels.hpp"
#include "queue/gpu/halo_kernels.hpp"

namespace hostless::gpu {
namespace {

class Bench final : public StreamBench {
 public:
  explicit Bench(int device) : device_(device), released_(1), went_on_(1) {
    load_bench_kernels();
    *released_.data() = *went_on_.data() = 0;
  }
  void* stream() override { return stream_.get(); }
  std::byte* memory(std::size_t bytes) override {
    MessagePool& pool = message_pool(device_);
    memory_.push_back(pool.take(bytes));
    pool.clear(memory_.back().get(), bytes);
    return memory_.back().get();
  }
  std::byte* pinned(std::size_t bytes) override {
    OnDevice const on(device_);
    pinned_.push_back(std::make_unique<Pinned<std::byte>>(bytes));
    std::memset(pinned_.back()->data(), 0, bytes);
    return pinned_.back()->data();
  }
  void add_to_bytes(std::byte* to, std::byte const* from, std::size_t bytes, std::uint8_t plus) override {
    OnDevice const on(device_);
    // What was stored last lies in the second-level cache: of what arrived (from the first byte to the last)
    // the end, of what the kernel before has stored whatever it ended with.
    passed_backwards_ = from != passed_to_ || !passed_backwards_;
    passed_to_ = to;
    launch_add_to_bytes(launch(), {to, from, bytes, plus, passed_backwards_});
  }
  void pass_halo(queue::HaloPass const& what) override {
    OnDevice const on(device_);
    launch_halo(stream_.get(), message_pool(device_).launches_early(), what);
  }
  void fill_life(std::byte* grid, queue::LifeGrid const& what) override {
    OnDevice const on(device_);
    launch_fill_life(launch(), grid, what);
  }
  void step_life(std::byte* to, std::byte const* from, queue::LifeGrid const& what) override {
    OnDevice const on(device_);
    launch_step_life(launch(), {to, from, what});
  }
  void count_life(std::byte const* grid, queue::LifeGrid const& what, std::int64_t shift,
                  std::uint64_t* counts) override {
    OnDevice const on(device_);
    launch_count_life(launch(), {grid, what, shift, counts});
  }
  void wait() override {
    OnDevice const on(device_);
    stream_.wait();
  }
  void hold(double limit_s) override {
    OnDevice const on(device_);
    launch_hold(launch(),
                {released_.device(), went_on_.device(), static_cast<std::uint64_t>(1e9 * limit_s), ++holds_});
  }
  void release() override { *static_cast<std::uint32_t volatile*>(released_.data()) = holds_; }
  bool went_on_unreleased() const override {
    return *static_cast<std::uint32_t const volatile*>(went_on_.data()) != 0;
  }
  void record(std::function<void()> const& queue) override {
    OnDevice const on(device_);
    graph_ = std::make_unique<Graph>();
    graph_->take_recorded(stream_, [&](HOSTLESS_GPU(Stream_t)) { queue(); });
    graph_->instantiate(stream_);
  }
  void replay() override {
    OnDevice const on(device_);
    graph_->launch(stream_);
  }

 private:
  BenchLaunch launch() const { return {stream_.get(), &message_pool(device_)}; }
  int device_;
  Stream stream_;
  Pinned<std::uint32_t> released_;  // the last hold that was
  Pinned<std::uint32_t> went_on_;   // whether one was not
  std::uint32_t holds_ = 0;
  std::byte const* passed_to_ = nullptr;
  bool passed_backwards_ = false;
  std::vector<std::shared_ptr<std::byte>> memory_;
  std::vector<std::unique_ptr<Pinned<std::byte>>> pinned_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace

std::unique_ptr<StreamBench> make_stream_bench(int device) { return std::make_unique<Bench>(device); }

}  // namespace hostless::gpu
