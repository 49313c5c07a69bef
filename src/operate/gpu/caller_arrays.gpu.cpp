// A thread works on a number. All functions return when the GPU is done.
#include "operate/gpu/caller_arrays.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "device/block.hpp"
#include "operate/gpu/numbers.gpu.hpp"
#include "operate/gpu/value_indices.impl.hpp"

namespace hostless::gpu {
namespace {

/// Each index becomes the value that lies there.
__global__ void __launch_bounds__(number_threads)
    gather_kernel(double* value_index, std::int64_t count, HOSTLESS_PARAMETER Numbers const values) {
  each(count, [&](std::int64_t k) { value_index[k] = value_of(value_index[k], values); });
}
/// row null: the caller's rows follow each other from `first` on.
__global__ void __launch_bounds__(number_threads)
    take_kernel(HOSTLESS_PARAMETER Numbers const from, std::int64_t const* row, std::int64_t first,
                double* to, std::int64_t count) {
  each(count, [&](std::int64_t k) { to[k] = from.at(row != nullptr ? row[k] : first + k); });
}
__global__ void __launch_bounds__(number_threads)
    give_kernel(double const* from, std::int64_t const* row, std::int64_t first,
                HOSTLESS_PARAMETER Numbers const to, std::int64_t count) {
  each(count, [&](std::int64_t k) { to.put(row != nullptr ? row[k] : first + k, from[k]); });
}

/// Non-negative doubles are ordered as their bits are, and NaN lies above infinity.
__device__ __forceinline__ unsigned long long rank_of(double value) {
  return __builtin_bit_cast(unsigned long long, value);
}

__global__ void __launch_bounds__(number_threads)
    largest_kernel(double const* values, std::int64_t count, unsigned long long* most) {
  unsigned long long mine = 0;
  each(count, [&](std::int64_t k) {
    unsigned long long const one = rank_of(fabs(values[k]));
    mine = mine > one ? mine : one;
  });
  if (mine != 0) atomicMax(most, mine);
}

/// What threads that compare mirrors agree on.
struct Compared {
  unsigned long long difference;  ///< the bits of the largest one
  unsigned long long entry;       ///< the first that has it
  unsigned int differs;
  std::int64_t row, column;  ///< of that entry
  double value, other;
};

/// A thread a row. `locate`: looks for the entry with compared->difference instead.
__global__ void __launch_bounds__(number_threads)
    mirror_kernel(HOSTLESS_PARAMETER RowsOfCaller const a, Compared* compared, bool locate) {
  each(a.rows, [&](std::int64_t row) {
    bool differs = false;
    double most = 0;
    for (std::int64_t k = a.offset.whole(row); k < a.offset.whole(row + 1); ++k) {
      double const difference = mirror_difference(a, row, k, differs);
      if (locate && rank_of(difference) == compared->difference)
        atomicMin(&compared->entry, static_cast<unsigned long long>(k));
      most = difference > most ? difference : most;
    }
    if (locate) return;
    if (most > 0) atomicMax(&compared->difference, rank_of(most));
    if (differs) atomicOr(&compared->differs, 1u);
  });
}

/// What compared->entry is.
__global__ void __launch_bounds__(number_threads)
    describe_kernel(HOSTLESS_PARAMETER RowsOfCaller const a, Compared* compared) {
  auto const k = static_cast<std::int64_t>(compared->entry);
  each(a.rows, [&](std::int64_t row) {
    if (k < a.offset.whole(row) || k >= a.offset.whole(row + 1)) return;
    compared->row = row;
    compared->column = a.column.whole(k);
    compared->value = a.value.at(k);
    compared->other = entry_at(a, compared->column, row);
  });
}

class Moment final : public GpuMoment {
 public:
  Moment(int device, HOSTLESS_GPU(Stream_t) stream) {
    OnDevice const on(device);
    check(HOSTLESS_GPU(EventCreateWithFlags)(&event_, HOSTLESS_GPU(EventDisableTiming)), "creating an event");
    auto const code = HOSTLESS_GPU(EventRecord)(event_, stream);
    if (code == HOSTLESS_GPU(Success)) return;
    (void)HOSTLESS_GPU(EventDestroy)(event_);
    check(code, "recording an event on the stream of a caller's array");
  }
  Moment(Moment const&) = delete;
  Moment& operator=(Moment const&) = delete;
  ~Moment() override { (void)HOSTLESS_GPU(EventDestroy)(event_); }
  HOSTLESS_GPU(Event_t) event() const { return event_; }

 private:
  HOSTLESS_GPU(Event_t) event_ = nullptr;
};

void gather(double* value_index, std::int64_t count, GpuArray const& from) {
  wait_for(from);
  launch_each("gathering a matrix' values", reinterpret_cast<void const*>(&gather_kernel), count, value_index,
              count, numbers_of(from));
  settle("gathering a matrix' values");
}

}  // namespace

void wait_for(GpuArray const& array) {
  auto const* const moment = static_cast<Moment const*>(array.after.get());
  if (moment == nullptr) return;
  check(HOSTLESS_GPU(StreamWaitEvent)(nullptr, moment->event(), 0),
        "waiting for the stream of a caller's array");
}

void copy_between(void* to, int to_device, void const* from, int from_device, std::size_t bytes) {
  if (bytes == 0) return;
  check(HOSTLESS_GPU(MemcpyPeer)(to, to_device, from, from_device, bytes), "copying from one GPU to another");
  copied_bytes.between_gpus.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  for (int device :
       {from_device, to_device}) {  // such copies are ordered on both, and return before they are done
    OnDevice const on(device);
    settle("copying from one GPU to another");
  }
}

std::shared_ptr<GpuMoment const> moment(int device, std::uintptr_t stream) {
  return std::make_shared<Moment>(device, reinterpret_cast<HOSTLESS_GPU(Stream_t)>(stream));
}

MirrorFacts compare_with_mirror(GpuRows const& rows) {
  OnDevice const on(rows.offsets.device);
  RowsOfCaller const a = numbers_of(rows);
  Compared found{0, std::numeric_limits<unsigned long long>::max(), 0, 0, 0, 0, 0};
  Array<Compared> compared(1);
  compared.put(&found, 1);
  char const* const what = "comparing a matrix with its mirror";
  for (GpuArray const* array : {&rows.offsets, &rows.columns, &rows.values}) wait_for(*array);
  auto const compare = [&](bool locate) {
    launch_each(what, reinterpret_cast<void const*>(&mirror_kernel), a.rows, a, compared.data(), locate);
  };
  compare(false);
  settle(what);
  compared.get(&found, 1);
  MirrorFacts facts;
  facts.same_bits = found.differs == 0;
  std::memcpy(&facts.difference, &found.difference, sizeof facts.difference);
  if (facts.difference == 0) return facts;
  compare(true);
  launch_each(what, reinterpret_cast<void const*>(&describe_kernel), a.rows, a, compared.data());
  settle(what);
  compared.get(&found, 1);
  facts.row = found.row, facts.column = found.column;
  facts.value = found.value, facts.other = found.other;
  return facts;
}

void gather_values(DeviceRows const& rows, Array<double>& to, int device) {
  auto const count = static_cast<std::int64_t>(rows.value.size());
  if (rows.from.device == device) return gather(to.data(), count, rows.from);
  OnDevice const on(rows.from.device);
  Array<double> packed(rows.value.size());
  packed.put(rows.value.data(), rows.value.size());
  gather(packed.data(), count, rows.from);
  copy_between(to.data(), device, packed.data(), rows.from.device, packed.size() * sizeof(double));
}

double largest(double const* values, std::int64_t count) {
  Array<unsigned long long> most(1);
  most.clear();
  launch_each("looking for the largest entry", reinterpret_cast<void const*>(&largest_kernel), count, values,
              count, most.data());
  settle("looking for the largest entry");
  unsigned long long bits = 0;
  most.get(&bits, 1);
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value == value ? value : std::numeric_limits<double>::infinity();
}

CallerVectors::CallerVectors(int device, std::int64_t owned, std::int64_t first_row,
                             std::vector<std::int64_t> caller_row)
    : device_(device),
      owned_(owned),
      first_row_(first_row),
      caller_row_(std::move(caller_row)),
      rows_needed_(caller_row_.empty() ? first_row_ + owned_
                                       : *std::max_element(caller_row_.begin(), caller_row_.end()) + 1) {}

CallerVectors::Slot& CallerVectors::slot_on(int device) const {
  for (auto const& slot : slots_)
    if (slot->device == device) return *slot;
  auto slot = std::make_unique<Slot>();
  slot->device = device;
  slot->row = Array<std::int64_t>(caller_row_.size());
  slot->row.put(caller_row_.data(), caller_row_.size());
  if (device != device_) slot->packed = Array<double>(static_cast<std::size_t>(owned_));
  return *slots_.emplace_back(std::move(slot));
}

void CallerVectors::check_size(GpuArray const& array) const {
  if (array.size >= rows_needed_) return;
  throw Error(ErrorCode::usage,
              "a vector of " + std::to_string(array.size) + " entries in the memory of a GPU (row " +
                  std::to_string(rows_needed_ - 1) + " is this rank's). Pass one entry a row.");
}

void CallerVectors::take(GpuArray const& from, double* to) const {
  check_size(from);
  OnDevice const on(from.device);
  Slot const& slot = slot_on(from.device);
  std::int64_t const* const row = slot.row.size() == 0 ? nullptr : slot.row.data();
  double* const there = from.device == device_ ? to : slot.packed.data();
  wait_for(from);
  launch_each("reading a caller's vector", reinterpret_cast<void const*>(&take_kernel), owned_,
              numbers_of(from), row, first_row_, there, owned_);
  settle("reading a caller's vector");
  if (there != to) copy_between(to, device_, there, from.device, owned_bytes());
}

void CallerVectors::give(double const* from, GpuArray const& to) const {
  check_size(to);
  OnDevice const on(to.device);
  Slot const& slot = slot_on(to.device);
  double const* here = from;
  if (to.device != device_) {
    copy_between(slot.packed.data(), to.device, from, device_, owned_bytes());
    here = slot.packed.data();
  }
  std::int64_t const* const row = slot.row.size() == 0 ? nullptr : slot.row.data();
  wait_for(to);
  launch_each("writing a caller's vector", reinterpret_cast<void const*>(&give_kernel), owned_, here, row,
              first_row_, numbers_of(to), owned_);
  settle("writing a caller's vector");
}

std::int64_t CallerVectors::bytes() const {
  std::size_t bytes = 0;
  for (auto const& slot : slots_)
    bytes += slot->row.bytes() + (slot->device == device_ ? slot->packed.bytes() : 0);
  return static_cast<std::int64_t>(bytes);
}

}  // namespace hostless::gpu
