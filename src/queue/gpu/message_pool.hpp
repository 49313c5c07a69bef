#pragma once
// Memory of one GPU for the words, slots and arrays of messages, and a stream on which they are set and read.
// A driver that is asked for memory, or given some back, may wait for kernels that wait for messages; so
// blocks are taken from it in large pieces, and used again.

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "device/on_device.hpp"
#include "queue/gpu/free_blocks.hpp"
#include "queue/gpu/message_library.hpp"
#include "queue/gpu/message_words.gpu.hpp"

namespace hostless::gpu {

/// Mapped.
struct QueueControl {
  std::uint32_t ended = 0;     ///< by the host: no wait goes on
  std::uint32_t told = 0;      ///< by a kernel: a queue::Progress, when a wait has ended without its message
  std::uint32_t limit_ms = 0;  ///< of a wait
};

class MessagePool {
 public:
  explicit MessagePool(int device);
  int device() const { return device_; }
  int multiprocessors() const { return multiprocessors_; }
  /// launch_dependent
  bool launches_early() const { return launches_early_; }
  /// Of a queue more, until it leaves: how many blocks of a wait it may have on this GPU.
  int join_waits();
  void leave_waits() { --waiting_queues_; }
  /// Aligned to 256. Its bytes are anything.
  std::shared_ptr<std::byte> take(std::size_t bytes);
  /// What a queue's kernels share with the host, all 0: for it, and for kernels.
  std::shared_ptr<QueueControl> take_control(QueueControl*& for_kernels);
  /// All 0.
  void clear(void* words, std::size_t bytes);
  ReachedCounts counts(SideWords const* words);
  /// launch_close_side. False: kernels may still use the buffer, some did not end in time.
  bool close_side(SideWords* words, bool own_goes) noexcept;
  /// use(stream), then waits for what it has queued.
  template <class Use>
  void at_once(Use const& use) {
    std::lock_guard const lock(stream_mutex_);
    OnDevice const on(device_);
    use(stream_.get());
    settle();
  }

 private:
  struct Controls {
    QueueControl *for_host, *for_kernels;
  };
  void settle();
  bool is_settled();
  void give(Controls const& one);
  void give(std::byte* block, std::size_t size);

  int device_, multiprocessors_ = 1;
  bool launches_early_ = false;
  std::atomic<int> waiting_queues_{0};
  std::mutex mutex_;  // pieces and what is free of them
  std::vector<Array<std::byte>> pieces_;
  FreeBlocks blocks_;
  std::vector<std::unique_ptr<Pinned<QueueControl>>> control_pieces_;
  std::vector<Controls> free_controls_;
  std::mutex stream_mutex_;
  Stream stream_;
  Pinned<ReachedCounts> counts_;
  Pinned<std::uint32_t> closed_;  // the last of `closes_` that was not in vain
  std::uint32_t closes_ = 0;
};

/// Of that GPU, made when it is first asked for; lives as long as the process.
MessagePool& message_pool(int device);

}  // namespace hostless::gpu
