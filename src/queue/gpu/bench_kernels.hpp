#pragma once
// Kernels of programs that time and test messages: what they send, and Life.

#include "device/memory.hpp"
#include "queue/gpu/message_library.hpp"
#include "queue/gpu/message_pool.hpp"

namespace hostless::gpu {

/// to [bytes] = from [bytes] + plus.
struct AddToBytes {
  std::byte* to;
  std::byte const* from;
  std::size_t bytes;
  std::uint8_t plus;
  bool goes_backwards;  ///< roughly: the last megabytes first
};
struct Hold {
  std::uint32_t const* released;
  std::uint32_t* went_on;
  std::uint64_t limit_ns;
  std::uint32_t number;
};
struct StepLife {
  std::byte* to;
  std::byte const* from;
  queue::LifeGrid grid;
};
struct CountLife {
  std::byte const* cells;
  queue::LifeGrid grid;
  std::int64_t shift;
  std::uint64_t* counts;
};

/// A stream of a GPU, for launch_dependent.
struct BenchLaunch {
  HOSTLESS_GPU(Stream_t) stream;
  MessagePool const* gpu;
};
void launch_add_to_bytes(BenchLaunch const& on, AddToBytes const& what);
/// Waits, at most so long, for *released to be `number`; after the limit *went_on is 1.
void launch_hold(BenchLaunch const& on, Hold const& what);
void launch_fill_life(BenchLaunch const& on, std::byte* cells, queue::LifeGrid const& grid);
void launch_step_life(BenchLaunch const& on, StepLife const& what);
void launch_count_life(BenchLaunch const& on, CountLife const& what);
/// On the GPU in use.
void load_bench_kernels();

}  // namespace hostless::gpu
