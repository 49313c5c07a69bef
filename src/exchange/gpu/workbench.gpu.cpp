// Memory, a stream and a graph for who has no runtime of the vendor's.
#include "exchange/gpu/workbench.hpp"

#include <optional>
#include <vector>

#include "device/graph.hpp"
#include "device/on_device.hpp"
#include "exchange/gpu/exchange_steps.hpp"
#include "exchange/gpu/sparse_product.hpp"

namespace hostless::gpu {
namespace {

class Bench final : public Workbench {
 public:
  explicit Bench(int device) : device_(device), on_(device), stream_(std::in_place) { on_.reset(); }
  ~Bench() override {
    try {
      OnDevice const on(device_);
      graph_.reset();
      memory_.clear();
      stream_.reset();
    } catch (Error const&) {  // a GPU that has failed has said so before
    }
  }
  void* stream() override { return stream_->get(); }
  std::byte* take(std::size_t bytes) override {
    OnDevice const on(device_);
    memory_.emplace_back(bytes).clear();
    return memory_.back().data();
  }
  void put(std::byte* to, void const* from, std::size_t bytes) override {
    copy(to, from, bytes, "copying to the GPU");
  }
  void get(void* to, std::byte const* from, std::size_t bytes) override {
    copy(to, from, bytes, "copying from the GPU");
  }
  void record(std::function<void()> const& queue) override {
    OnDevice const on(device_);
    graph_.emplace();
    graph_->take_recorded(*stream_, [&](HOSTLESS_GPU(Stream_t)) { queue(); });
    graph_->instantiate(*stream_);
  }
  void replay() override {
    OnDevice const on(device_);
    graph_->launch(*stream_);
  }
  void drop_graph() noexcept override {
    try {
      OnDevice const on(device_);
      graph_.reset();
    } catch (Error const&) {  // a GPU that has failed has said so before
    }
  }
  bool is_done() override {
    OnDevice const on(device_);
    return stream_->done();
  }
  void queue_steps(kernel::KernelExchange const& exchange, void const* send, void* receive,
                   int steps) override {
    OnDevice const on(device_);
    queue_exchange_steps(exchange, send, receive, steps, stream_->get());
  }
  int most_step_blocks() override {
    OnDevice const on(device_);
    return gpu::most_step_blocks(device_);
  }
  void queue_product(SparseProduct const& product) override {
    OnDevice const on(device_);
    queue_sparse_product(product, stream_->get());
  }

 private:
  void copy(void* to, void const* from, std::size_t bytes, char const* doing) {
    OnDevice const on(device_);
    if (bytes != 0)
      check(HOSTLESS_GPU(MemcpyAsync)(to, from, bytes, HOSTLESS_GPU(MemcpyDefault), stream_->get()), doing);
    stream_->wait();
  }

  int device_;
  std::optional<OnDevice> on_;  // while it is made
  std::optional<Stream> stream_;
  std::vector<Array<std::byte>> memory_;
  std::optional<Graph> graph_;
};

}  // namespace

std::unique_ptr<Workbench> make_workbench(int device) { return std::make_unique<Bench>(device); }

}  // namespace hostless::gpu
