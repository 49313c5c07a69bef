#include "operate/gpu/host_copy.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/thread_team.hpp"
#include "device/memory.hpp"
#include "operate/gpu/numbers.gpu.hpp"

namespace hostless::gpu {
namespace {

constexpr std::size_t chunk = std::size_t{1} << 20;
constexpr std::size_t worth_a_thread = 16 * chunk;  // pinned memory costs a millisecond

/// Whatever is thrown: nothing reads pinned memory that goes.
struct WaitAtEnd {
  std::array<Stream, 2> const& streams;
  ~WaitAtEnd() {
    for (Stream const& one : streams) (void)HOSTLESS_GPU(StreamSynchronize)(one.get());  // bounded: copies
  }
};

/// While the GPU takes one chunk, the next is put beside it.
void copy_piece(std::byte* to, std::byte const* from, std::size_t bytes) {
  std::array<Pinned<std::byte>, 2> const pinned{Pinned<std::byte>(chunk), Pinned<std::byte>(chunk)};
  std::array<Stream, 2> const stream{};
  WaitAtEnd const wait{stream};
  for (std::size_t at = 0; at < bytes; at += chunk) {
    std::size_t const which = at / chunk % 2, count = std::min(chunk, bytes - at);
    stream[which].wait();
    std::memcpy(pinned[which].data(), from + at, count);
    check(HOSTLESS_GPU(MemcpyAsync)(to + at, pinned[which].data(), count, HOSTLESS_GPU(MemcpyHostToDevice),
                                    stream[which].get()),
          "copying a matrix to the GPU");
  }
  for (Stream const& one : stream) one.wait();
  copied_bytes.to_gpu.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
}

}  // namespace

std::int64_t free_bytes(int device) {
  OnDevice const on(device);
  std::size_t free_now = 0, total = 0;
  check(HOSTLESS_GPU(MemGetInfo)(&free_now, &total), "asking a GPU for its memory");
  return static_cast<std::int64_t>(free_now);
}

std::shared_ptr<void> copy_of_host(void const* from, std::size_t bytes, int device, int threads) {
  OnDevice const on(device);
  auto const held = std::make_shared<Array<std::byte>>(bytes);
  auto const* const source = static_cast<std::byte const*>(from);
  std::size_t const most = bytes / worth_a_thread;
  int const parts = most < static_cast<std::size_t>(threads) ? static_cast<int>(most) : threads;
  if (parts < 2) {
    held->put(source, bytes);
  } else {
    std::size_t const piece = (bytes / static_cast<std::size_t>(parts) + chunk) / chunk * chunk;
    share_out(parts, parts, [&](int part) {
      OnDevice const also_on(device);
      std::size_t const first = std::min(bytes, static_cast<std::size_t>(part) * piece);
      copy_piece(held->data() + first, source + first, std::min(piece, bytes - first));
    });
  }
  return {held, held->data()};
}

}  // namespace hostless::gpu
