#include "transport/memory/opened_memory.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "transport/memory/paths.hpp"

namespace hostless::gpu {

void LivingMemory::add(void const* address) {
  std::lock_guard const lock(mutex_);
  addresses_.insert(address);
}
void LivingMemory::remove(void const* address) {
  std::lock_guard const lock(mutex_);
  addresses_.erase(address);
}
void LivingMemory::keep(Array<std::byte> array) {
  std::lock_guard const lock(mutex_);
  kept_.push_back(std::move(array));
}
void LivingMemory::keep_until_returned(Array<std::byte> array, std::unique_ptr<Lent> lent,
                                       std::uint32_t borrowers) {
  {
    std::lock_guard const lock(mutex_);
    outstanding_.push_back({std::move(array), std::move(lent), borrowers});
  }
  free_returned();
}
void LivingMemory::free_returned() {
  std::vector<Outstanding> returned;  // given back without the lock: the runtime may wait for kernels
  {
    std::lock_guard const lock(mutex_);
    auto const first = std::stable_partition(
        outstanding_.begin(), outstanding_.end(),
        [](Outstanding const& one) { return !one.lent->is_returned_by(one.borrowers); });
    std::move(first, outstanding_.end(), std::back_inserter(returned));
    outstanding_.erase(first, outstanding_.end());
  }
}
LivingMemory& LivingMemory::of_this_process() {
  static auto* const all = new LivingMemory;  // exchanges may be statics that end later
  return *all;
}

// From this device to another one's memory. Both directions are asked for, by the two ranks.
void OpenedMemory::reach(int own, int other) const {
  if (processes_ || own == other) return;  // processes open what they are lent
  std::string const problem = open_path(own, other);
  if (!problem.empty())
    throw Error(ErrorCode::environment,
                problem + " (ranks store into each other's memory). Use GPUs that are linked, or one GPU.");
}

void* OpenedMemory::address_of(LentMemory const& memory, int rank) {
  if (rank == rank_ || memory.address == nullptr) return memory.address;
  if (symmetric_) {
    std::byte* const there = symmetric_->of(rank);
    if (there == nullptr)
      throw Error(
          ErrorCode::environment,
          "the persistent run with GPU transport nvshmem between ranks " + std::to_string(rank_) + " and " +
              std::to_string(rank) +
              " (its kernel loads and stores, and NVSHMEM has no address of that GPU's memory here: it "
              "is on another node, or not linked). Use --run graph or stream.");
    return there + memory.offset;
  }
  if (!processes_) return memory.address;
  LentHandle handle;
  std::memcpy(&handle, memory.handle, sizeof handle);
  borrowed_.emplace_back(memory.borrowing);  // also where the next line fails: then nothing is open
  void* base = nullptr;
  check(HOSTLESS_GPU(IpcOpenMemHandle)(&base, handle, HOSTLESS_GPU(IpcMemLazyEnablePeerAccess)),
        "opening the device memory of another process");
  opened_.push_back(base);
  return static_cast<char*>(base) + memory.offset;
}

void OpenedMemory::give_back() noexcept {
  for (void* base : opened_) (void)HOSTLESS_GPU(IpcCloseMemHandle)(base);
  opened_.clear();
  for (Borrowed& one : borrowed_) one.give_back(rank_);
  borrowed_.clear();
}
OpenedMemory::~OpenedMemory() { give_back(); }

}  // namespace hostless::gpu
