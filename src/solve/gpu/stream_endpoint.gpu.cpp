#include "solve/gpu/stream_endpoint.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "hostless/base/deadline.hpp"

namespace hostless::gpu {
namespace {

__global__ void __launch_bounds__(block_threads, 1)
    pack_kernel(MessageItem const* items, std::int64_t count, double const* field, double const* staging,
                double* to) {
  std::int64_t const step = std::int64_t{gridDim.x} * block_threads;
  for (std::int64_t k = std::int64_t{blockIdx.x} * block_threads + threadIdx.x; k < count; k += step) {
    MessageItem const item = items[k];
    to[k] = (item.staging != 0 ? staging : field)[item.vector_offset];
  }
}

__global__ void __launch_bounds__(block_threads, 1)
    unpack_kernel(MessageItem const* items, std::int64_t count, double const* from, double* field,
                  double* staging) {
  std::int64_t const step = std::int64_t{gridDim.x} * block_threads;
  for (std::int64_t k = std::int64_t{blockIdx.x} * block_threads + threadIdx.x; k < count; k += step) {
    MessageItem const item = items[k];
    (item.staging != 0 ? staging : field)[item.vector_offset] = from[k];
  }
}

int blocks_of(std::int64_t count) {
  constexpr std::int64_t most_blocks = 512;
  return static_cast<int>(
      std::clamp<std::int64_t>((count + block_threads - 1) / block_threads, 1, most_blocks));
}

}  // namespace

void ItemList::pack(Queue& queue, double const* field, double const* staging, double* to) const {
  auto const count = static_cast<std::int64_t>(item_.size());
  MessageItem const* const items = item_.data();
  launch(queue, reinterpret_cast<void const*>(&pack_kernel), blocks_of(count), items, count, field, staging,
         to);
}

void ItemList::unpack(Queue& queue, double const* from, double* field, double* staging) const {
  auto const count = static_cast<std::int64_t>(item_.size());
  MessageItem const* const items = item_.data();
  launch(queue, reinterpret_cast<void const*>(&unpack_kernel), blocks_of(count), items, count, from, field,
         staging);
}

bool StreamEndpoint::wait(Stream const& stream) {
  bool const is_first = std::exchange(is_first_, false);
  if (!waits_on_gpu()) {
    stream.wait();
    return true;
  }
  Deadline deadline = Deadline::after(is_first ? first_s_ : later_s_);
  constexpr int polls_between_looks = 64, requests_a_poll = 16;  // to ask the driver takes a microsecond
  for (int polls = 1; !stream.done(); ++polls) {
    for (int k = 0; k < requests_a_poll; ++k) {
      Served const served = serve();
      if (served == Served::lost) return false;
      if (served == Served::something) deadline = Deadline::after(later_s_);  // it may have waited until now
    }
    if (polls % polls_between_looks != 0) continue;
    if (failed() || deadline.passed()) return false;
    std::this_thread::yield();
  }
  return !failed();  // what waited may have given up by itself
}

std::unique_ptr<StreamEndpoint> make_stream_endpoint(Problem const& problem) {
  if (problem.ranks > most_ranks) {
    throw Error(ErrorCode::usage, std::to_string(problem.ranks) +
                                      " ranks on GPUs (kernels add the sums of at most " +
                                      std::to_string(most_ranks) + "). Use fewer ranks.");
  }
  switch (problem.transport) {
    case GpuTransport::nvshmem:
      return make_nvshmem_stream(problem);
    case GpuTransport::mpi:
      return make_mpi_stream(problem);
    case GpuTransport::host:
      return make_host_stream(problem);
    default:
      return make_nccl_stream(problem);
  }
}

}  // namespace hostless::gpu
