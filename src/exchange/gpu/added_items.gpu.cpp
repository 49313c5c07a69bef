#include "exchange/gpu/added_items.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace hostless::gpu {
namespace {

/// Items [count] that get contributions from_[first[k]] to from_[first[k + 1]], of `values` numbers each.
struct AddCall {
  std::int32_t const *item, *first, *from;
  std::int64_t count;
  int values;
  std::byte const* contributions;
  std::byte* owned;
};

// Bytes: a caller's array may begin anywhere.
template <class T>
__device__ __forceinline__ T loaded(std::byte const* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
__global__ void __launch_bounds__(block_threads, 1) add_kernel(HOSTLESS_PARAMETER AddCall const call) {
  std::int64_t const all = call.count * call.values, step = std::int64_t{gridDim.x} * block_threads;
  for (std::int64_t k = std::int64_t{blockIdx.x} * block_threads + threadIdx.x; k < all; k += step) {
    std::int64_t const row = k / call.values, value = k - row * call.values;
    std::byte* const to = call.owned + (call.item[row] * std::int64_t{call.values} + value) * sizeof(T);
    T sum = loaded<T>(to);
    for (std::int32_t at = call.first[row]; at < call.first[row + 1]; ++at)
      sum += loaded<T>(call.contributions + (call.from[at] * std::int64_t{call.values} + value) * sizeof(T));
    __builtin_memcpy(to, &sum, sizeof sum);
  }
}

void const* kernel_of(Element element) {
  switch (element) {
    case Element::f32:
      return reinterpret_cast<void const*>(&add_kernel<float>);
    case Element::f64:
      return reinterpret_cast<void const*>(&add_kernel<double>);
    case Element::i32:
      return reinterpret_cast<void const*>(&add_kernel<std::uint32_t>);
    default:
      return reinterpret_cast<void const*>(&add_kernel<std::uint64_t>);
  }
}

}  // namespace

AddedItems::AddedItems(AddedFields const& added, std::vector<std::byte const*> contributions)
    : fields_(added.fields), contributions_(std::move(contributions)) {
  std::vector<std::int32_t> from(added.sum.size());
  std::iota(from.begin(), from.end(), 0);
  std::stable_sort(from.begin(), from.end(), [&](std::int32_t a, std::int32_t b) {
    return added.sum[static_cast<std::size_t>(a)] < added.sum[static_cast<std::size_t>(b)];
  });
  std::vector<std::int32_t> item, first;
  for (std::size_t k = 0; k < from.size(); ++k) {
    std::int32_t const here = added.sum[static_cast<std::size_t>(from[k])];
    if (!item.empty() && item.back() == here) continue;
    item.push_back(here);
    first.push_back(static_cast<std::int32_t>(k));
  }
  first.push_back(static_cast<std::int32_t>(from.size()));
  item_ = Array<std::int32_t>(item.size());
  item_.put(item.data(), item.size());
  first_ = Array<std::int32_t>(first.size());
  first_.put(first.data(), first.size());
  from_ = Array<std::int32_t>(from.size());
  from_.put(from.data(), from.size());
}

void AddedItems::add(StreamQueue& queue) const {
  if (item_.size() == 0) return;
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    AddCall const call{item_.data(),
                       first_.data(),
                       from_.data(),
                       static_cast<std::int64_t>(item_.size()),
                       fields_[f].values,
                       contributions_[f],
                       static_cast<std::byte*>(fields_[f].owned)};
    constexpr std::int64_t most_blocks = 256;
    std::int64_t const blocks = (call.count * call.values + block_threads - 1) / block_threads;
    launch(queue, kernel_of(fields_[f].element),
           static_cast<int>(std::clamp<std::int64_t>(blocks, 1, most_blocks)), call);
  }
}

}  // namespace hostless::gpu
