#include "queue/gpu/message_pool.hpp"

#include <algorithm>
#include <string>

#include "queue/gpu/halo_kernels.hpp"
#include "queue/gpu/message_kernels.hpp"

namespace hostless::gpu {
namespace {

constexpr std::size_t piece_bytes = std::size_t{8} << 20, controls_of_piece = 1024;
constexpr double settle_s = 30;
constexpr std::uint64_t close_ns = 20'000'000'000;  // less: the kernel says itself that it was in vain

}  // namespace

MessagePool::MessagePool(int device) : device_(device), stream_(Stream::first()), counts_(1), closed_(1) {
  HOSTLESS_DEVICE_PROPERTIES properties{};
  check(HOSTLESS_GPU(GetDeviceProperties)(&properties, device), "asking a GPU what it is");
  multiprocessors_ = properties.multiProcessorCount;
  load_message_kernels();
  load_halo_kernels();
  launches_early_ = message_kernels_may_come_early(properties.major);
  take(FreeBlocks::smallest);  // the first pieces are there
  QueueControl* for_kernels = nullptr;
  take_control(for_kernels);
}

// At most 32 streams run at once (CUDA_DEVICE_MAX_CONNECTIONS), and a multiprocessor holds two blocks of a wait,
// whose threads have 56 registers, or 64 beside starts. The first six queues have 16 blocks on an H100, the 32nd has three: together
// 250 of 264, whatever others do, and also where what was recorded keeps the number that it had.
int MessagePool::join_waits() {
  constexpr int most = 16;
  return std::clamp(multiprocessors_ * 3 / 4 / ++waiting_queues_, 1, most);
}

std::shared_ptr<std::byte> MessagePool::take(std::size_t bytes) {
  std::size_t const size = FreeBlocks::size_of(bytes);
  std::byte* block = nullptr;
  {
    std::lock_guard const lock(mutex_);
    block = blocks_.take(size);
    if (block == nullptr) {
      OnDevice const on(device_);
      pieces_.emplace_back(std::max(size, piece_bytes), Lending{.to_gpus = true});
      blocks_.add(pieces_.back().data(), pieces_.back().size());
      block = blocks_.take(size);
    }
  }
  return {block, [this, size](std::byte* p) { give(p, size); }};
}

void MessagePool::give(std::byte* block, std::size_t size) {
  std::lock_guard const lock(mutex_);
  blocks_.give(block, size);
}

std::shared_ptr<QueueControl> MessagePool::take_control(QueueControl*& for_kernels) {
  std::lock_guard const lock(mutex_);
  if (free_controls_.empty()) {
    OnDevice const on(device_);
    control_pieces_.push_back(std::make_unique<Pinned<QueueControl>>(controls_of_piece));
    Pinned<QueueControl> const& piece = *control_pieces_.back();
    for (std::size_t k = 0; k < controls_of_piece; ++k)
      free_controls_.push_back({piece.data() + k, piece.device() + k});
  }
  Controls const one = free_controls_.back();
  free_controls_.pop_back();
  *one.for_host = {};
  for_kernels = one.for_kernels;
  std::shared_ptr<QueueControl> taken(one.for_host, [this, one](QueueControl*) { give(one); });
  return taken;
}

void MessagePool::give(Controls const& one) {
  std::lock_guard const lock(mutex_);
  free_controls_.push_back(one);
}

bool MessagePool::is_settled() { return stream_.wait_until(Deadline::after(settle_s)); }

void MessagePool::settle() {
  if (is_settled()) return;
  throw Error(ErrorCode::environment,
              "GPU " + std::to_string(device_) + " did not set a message's words within " +
                  std::to_string(static_cast<int>(settle_s)) +
                  " s (a stream's kernel that waits is before them: streams are more than the GPU has "
                  "queues). Use fewer streams, or set CUDA_DEVICE_MAX_CONNECTIONS=32.");
}

void MessagePool::clear(void* words, std::size_t bytes) {
  at_once([&](HOSTLESS_GPU(Stream_t) stream) {
    check(HOSTLESS_GPU(MemsetAsync)(words, 0, bytes, stream), "clearing a message's words");
  });
}

bool MessagePool::close_side(SideWords* words, bool own_goes) noexcept {
  try {
    std::lock_guard const lock(stream_mutex_);
    OnDevice const on(device_);
    std::uint32_t const call = ++closes_;  // one that comes late says nothing about another
    launch_close_side(stream_.get(), words, own_goes, close_ns, closed_.device(), call);
    return is_settled() && *static_cast<std::uint32_t volatile*>(closed_.data()) == call;
  } catch (Error const&) {  // a GPU that has failed runs no kernel any more, and has said so before
    return true;
  }
}

ReachedCounts MessagePool::counts(SideWords const* words) {
  std::lock_guard const lock(stream_mutex_);
  OnDevice const on(device_);
  static_assert(sizeof(ReachedCounts) == 2 * sizeof(std::uint64_t) &&
                offsetof(SideWords, waits) == offsetof(SideWords, starts) + sizeof(std::uint64_t));
  check(HOSTLESS_GPU(MemcpyAsync)(counts_.data(), &words->starts, sizeof(ReachedCounts),
                                  HOSTLESS_GPU(MemcpyDeviceToHost), stream_.get()),
        "reading a message's words");
  settle();
  ReachedCounts now = *counts_.data();
  now.starts >>= share_bits;
  now.waits >>= share_bits;
  return now;
}

MessagePool& message_pool(int device) {
  static auto* const mutex = new std::mutex;
  static auto* const pools = new std::vector<std::unique_ptr<MessagePool>>;
  std::lock_guard const lock(*mutex);
  auto const at = static_cast<std::size_t>(device);
  if (pools->size() <= at) pools->resize(at + 1);
  auto& pool = (*pools)[at];
  if (!pool) {
    OnDevice const on(device);
    pool = std::make_unique<MessagePool>(device);
  }
  return *pool;
}

}  // namespace hostless::gpu
