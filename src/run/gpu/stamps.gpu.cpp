#include "run/gpu/stamps.hpp"

#include <algorithm>

#include "run/told_column.hpp"

namespace hostless::gpu {
namespace {

constexpr std::uint32_t most_stamps = 1u << 15;  // some hundred iterations of any method

__global__ void stamp_kernel(StampView view, Mark mark, Gate gate) {
  if (threadIdx.x != 0) return;
  std::uint64_t now = 0;
  HOSTLESS_READ_NANOSECONDS(now);
  std::uint32_t const at = atomicAdd(view.count, 1u);
  if (at >= view.capacity) return;
  view.stamp[at] = {now, mark, any_open(view.state, view.columns, gate) ? 1u : 0u,
                    furthest_iteration(view.state, view.columns)};
}

}  // namespace

Stamps::Stamps(State const* state, int columns)
    : stamp_(most_stamps), count_(1), state_(state), columns_(columns) {
  stamp_.clear();
  count_.clear();
}

void Stamps::put(StreamQueue& queue, Mark mark, Gate gate) const {
  launch(queue, reinterpret_cast<void const*>(&stamp_kernel), 1,
         StampView{stamp_.data(), count_.data(), most_stamps, state_, columns_}, mark, gate);
}

// All bytes of a count alike: none so far, or more than there is room for.
void Stamps::restart(Stream const& stream) const {
  check(HOSTLESS_GPU(MemsetAsync)(count_.data(), wanted_ ? 0 : 0x7f, sizeof(std::uint32_t), stream.get()),
        "beginning a trace");
}

std::vector<Stamp> Stamps::read() const {
  std::uint32_t count = 0;
  count_.get(&count, 1);
  std::vector<Stamp> all(wanted_ ? std::min(count, most_stamps) : 0);
  stamp_.get(all.data(), all.size());
  return all;
}

}  // namespace hostless::gpu
