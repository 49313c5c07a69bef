#include "transport/memory/opened_memory.hpp"

#include "transport/memory/paths.hpp"

namespace hostless::gpu {

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
  void* base = nullptr;
  check(HOSTLESS_GPU(IpcOpenMemHandle)(&base, handle, HOSTLESS_GPU(IpcMemLazyEnablePeerAccess)),
        "opening the device memory of another process");
  opened_.push_back(base);
  return static_cast<char*>(base) + memory.offset;
}

OpenedMemory::~OpenedMemory() {
  for (void* base : opened_) (void)HOSTLESS_GPU(IpcCloseMemHandle)(base);
}

}  // namespace hostless::gpu
