#pragma once
// What carries halos and sums between ranks where no kernel does it, and how it begins, is lost and ends.
// What its verbs queue is done whether gates are open or not: all ranks must queue equally much.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/memory.hpp"
#include "run/gpu/queue.hpp"
#include "solve/gpu_library.hpp"

namespace hostless::gpu {

/// Thrown through a text that the host executes: a rank is lost, the solve ends.
struct RankLost {};

class StreamEndpoint : public StreamFace {
 public:
  /// Whether what it queues can be part of a graph that is replayed.
  virtual bool is_recorded() const = 0;
  /// Of rank 0, for all: made anew after a loss.
  virtual UniqueId unique_id() { return {}; }
  /// All ranks together, before anything is queued, and again after a loss. Overwrites the ghosts of `field`.
  /// Errors  environment  not within Problem::first_s, or with the library's words
  virtual void connect(UniqueId const&, double* field) = 0;
  virtual bool is_connected() const = 0;
  /// Of every level, what goes out and what comes in: for messages that the host program binds to them.
  virtual std::vector<std::pair<double const*, double*>> buffers() const { return {}; }
  /// After a loss, on all ranks, before they connect anew: nothing of this rank is under way any more.
  /// Errors  environment  it may be for ever
  virtual void forget() {}
  /// Whose turn it is, where buffers take turns: what is recorded goes on where it was recorded, so `reach`
  /// queues what brings them there.
  virtual int phase() const { return 0; }
  virtual void reach(Queue&, int) {}
  /// Takes kernels that wait for a lost rank off the GPU. `settle` follows when all streams are done and
  /// recorded graphs are gone.
  virtual void abort() noexcept {}
  virtual void settle() noexcept {}
  /// Where kernels ask the host to carry, what they have asked so far is done: whoever launches or waits
  /// calls it now and then.
  enum class Served { nothing, something, lost };
  virtual Served serve() { return Served::nothing; }
  /// False: not all that was queued is done within the deadline, or a rank is known to be lost.
  bool wait(Stream const& stream);
  /// Before the text of a solve: ranks have met, but do not start together.
  void expect_late_ranks() { is_first_ = true; }

  int ranks() const override { return ranks_; }
  double deadline_s() const { return later_s_; }
  virtual std::string describe() const = 0;
  virtual std::int64_t bytes() const = 0;
  virtual bool guards_hold() const = 0;

 protected:
  explicit StreamEndpoint(Problem const& problem)
      : ranks_(problem.ranks), first_s_(problem.first_s), later_s_(problem.deadline_s) {}
  /// Whether what is queued waits for other ranks on the GPU; else a GPU may take as long as it likes.
  virtual bool waits_on_gpu() const = 0;
  /// Asked now and then during a wait, and at its end.
  virtual bool failed() { return false; }
  double first_s() const { return first_s_; }

 private:
  int ranks_;
  double first_s_, later_s_;
  bool is_first_ = true;
};

/// What is launched at once.
class DirectQueue final : public Queue {
 public:
  explicit DirectQueue(Stream const& stream) : stream_(stream) {}
  void launch(KernelLaunch const& launch) override {
    check(HOSTLESS_GPU(LaunchKernel)(launch.kernel, dim3(static_cast<unsigned>(launch.blocks)),
                                     dim3(block_threads), launch.parameters, 0, stream_.get()),
          "launching a kernel");
  }
  void repeat(Gate, std::function<void()> const& text) override { text(); }
  void call(std::function<void(HOSTLESS_GPU(Stream_t))> const& use) override { use(stream_.get()); }

 private:
  Stream const& stream_;
};

/// The values become the kernel's parameters.
template <class... Values>
void launch(Queue& queue, void const* kernel, int blocks, Values... values) {
  void* parameters[] = {&values...};
  queue.launch({kernel, blocks, parameters, false});
}

/// Items of a level of messages, in device memory.
class ItemList {
 public:
  ItemList() = default;
  explicit ItemList(std::vector<MessageItem> const& items) : item_(items.size()) {
    item_.put(items.data(), items.size());
  }
  std::size_t size() const { return item_.size(); }
  /// to[k] = item k.
  void pack(Queue& queue, double const* field, double const* staging, double* to) const;
  /// item k = from[k].
  void unpack(Queue& queue, double const* from, double* field, double* staging) const;
  std::int64_t bytes() const { return static_cast<std::int64_t>(item_.bytes()); }
  bool guards_hold() const { return item_.guards_hold(); }

 private:
  Array<MessageItem> item_;
};

/// As Problem::transport says; not for peer.
/// Errors  environment  the vendor's library cannot be loaded
std::unique_ptr<StreamEndpoint> make_stream_endpoint(Problem const& problem);
std::unique_ptr<StreamEndpoint> make_host_stream(Problem const& problem);
std::unique_ptr<StreamEndpoint> make_nccl_stream(Problem const& problem);
std::unique_ptr<StreamEndpoint> make_nvshmem_stream(Problem const& problem);
std::unique_ptr<StreamEndpoint> make_mpi_stream(Problem const& problem);
TransportFacts nccl_facts();
TransportFacts nvshmem_facts();
/// With nvshmem, before a stream endpoint is made, or a window of so many bytes: as Library's.
SymmetricOffer symmetric_offer(Problem const& problem, std::int64_t window_bytes);
std::shared_ptr<SymmetricMemory> symmetric_memory(Problem const& problem,
                                                  std::vector<SymmetricOffer> const& all);

}  // namespace hostless::gpu
