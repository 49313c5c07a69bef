#pragma once
// Queues of GPUs' streams: ranks that share one GPU, or several.

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

#include "queue/gpu/message_library.hpp"
#include "queue_home.hpp"

namespace hostless::test {

/// What a rank needs is made when a rank of its number first enters, and lives as long as this: nothing is
/// asked of a driver while somebody waits.
class GpuQueueHome final : public QueueHome {
 public:
  static constexpr int queues = 3;
  explicit GpuQueueHome(int gpus, QueueType type = QueueType::peer) : gpus_(gpus), type_(type) {}

  void enter(Transport& transport) override {
    int const rank = transport.group().rank();
    {
      std::lock_guard const lock(mutex_);
      auto& of_rank = ranks_[rank];
      if (!of_rank) of_rank = std::make_unique<Rank>(rank % gpus_);
      mine() = of_rank.get();
    }
    again();
    transport.group().barrier();
  }
  void again() override { mine()->pinned_used = mine()->memory_used = 0; }
  int gpu() const override { return mine()->gpu; }
  QueueType type() const override { return type_; }
  void* stream(int queue) override { return bench(queue).stream(); }
  std::byte* memory(std::size_t bytes) override {
    std::byte* const at = mine()->pinned + take(mine()->pinned_used, bytes);
    std::memset(at, 0, bytes);
    return at;
  }
  std::byte* other_memory(std::size_t bytes) override {
    return mine()->memory + take(mine()->memory_used, bytes);
  }
  void pass(int queue, std::byte* to, std::byte const* from, std::size_t bytes) override {
    bench(queue).add_to_bytes(to, from, bytes, 0);
  }
  gpu::StreamBench& bench(int queue) { return *mine()->bench[static_cast<std::size_t>(queue)]; }

 private:
  static constexpr std::size_t room = std::size_t{16} << 20;
  struct Rank {
    explicit Rank(int gpu_) : gpu(gpu_) {
      for (auto& one : bench) one = gpu::message_library().bench(gpu);
      constexpr std::size_t item = 16;
      pinned = bench[0]->pinned(room + queues * item);
      memory = bench[0]->memory(room + queues * item);
      // The kernel that passes is loaded, by each stream on bytes that nobody else uses.
      std::size_t at = room;
      for (auto& one : bench) {
        one->add_to_bytes(memory + at, pinned + at, item, 0);
        at += item;
      }
    }
    int gpu;
    std::unique_ptr<gpu::StreamBench> bench[queues];
    std::byte *pinned, *memory;
    std::size_t pinned_used = 0, memory_used = 0;
  };
  static std::size_t take(std::size_t& used, std::size_t bytes) {
    constexpr std::size_t line = 256;
    std::size_t const first = used;
    used += (bytes + line) / line * line;
    if (used > room) throw std::runtime_error("a test needs more memory than its ranks have taken");
    return first;
  }
  static Rank*& mine() {
    thread_local Rank* of_thread = nullptr;
    return of_thread;
  }
  int gpus_;
  QueueType type_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<Rank>> ranks_;
};

}  // namespace hostless::test
