#pragma once
// Memory of other ranks' GPUs, for kernels of this one: lent there, opened here.

#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "device/memory.hpp"
#include "transport/memory/borrowing.hpp"
#include "transport/memory/lent_memory.hpp"
#include "transport/stream/stream_setup.hpp"

namespace hostless::gpu {

/// What others need to store at `address`, inside the array; nothing of an empty one.
template <class T>
LentMemory lend(Array<T> const& array, void* address, Lending lending) {
  LentMemory lent;
  if (array.size() == 0) return lent;
  lent.address = address;
  if (lending.arena != nullptr) lent.offset = lending.arena->offset_of(address);
  if (!lending.to_processes) return lent;
  std::size_t guard = 0;
  LentHandle const handle = array.lend(guard);
  static_assert(sizeof handle == sizeof lent.handle);
  std::memcpy(lent.handle, &handle, sizeof handle);
  lent.offset =
      static_cast<char*>(address) - reinterpret_cast<char*>(array.data()) + static_cast<std::int64_t>(guard);
  return lent;
}

/// Memory of ranks of this process that kernels of others store to by its address, as long as it lives.
class LivingMemory {
 public:
  void add(void const* address);
  void remove(void const* address);
  /// It lives as long as the process.
  void keep(Array<std::byte> array);
  /// It lives until these ranks, as bits, have closed it: looked at here and by free_returned.
  void keep_until_returned(Array<std::byte> array, std::unique_ptr<Lent> lent, std::uint32_t borrowers);
  void free_returned();
  /// use(function that tells whether an address lives) while none of it is given back.
  template <class Use>
  void look(Use const& use) {
    std::lock_guard const lock(mutex_);
    use([this](void const* address) { return addresses_.count(address) != 0; });
  }
  static LivingMemory& of_this_process();

 private:
  std::mutex mutex_;
  std::set<void const*> addresses_;
  std::vector<Array<std::byte>> kept_;
  struct Outstanding {
    Array<std::byte> array;
    std::unique_ptr<Lent> lent;
    std::uint32_t borrowers;
  };
  std::vector<Outstanding> outstanding_;
};

/// What one rank has opened of others; closed when it goes.
class OpenedMemory {
 public:
  /// processes: ranks are processes of one machine, not threads of this one. symmetric: others' memory is
  /// found in it by its offset; or null.
  OpenedMemory(int rank, bool processes, std::shared_ptr<SymmetricMemory> symmetric)
      : rank_(rank), processes_(processes), symmetric_(std::move(symmetric)) {}
  OpenedMemory(OpenedMemory const&) = delete;
  OpenedMemory& operator=(OpenedMemory const&) = delete;
  ~OpenedMemory();
  /// Kernels of GPU `own` may load and store on GPU `other` afterwards.
  /// Errors  environment  this GPU cannot reach that one
  void reach(int own, int other) const;
  /// Where memory that `rank` has lent lies for kernels of this one; null: nothing was lent.
  /// Errors  environment  it cannot be opened; symmetric memory of that rank has no address here
  void* address_of(LentMemory const& memory, int rank);
  /// Closes all that other processes have lent, and tells them.
  void give_back() noexcept;

 private:
  int rank_;
  bool processes_;
  std::shared_ptr<SymmetricMemory> symmetric_;
  std::vector<void*> opened_;
  std::vector<Borrowed> borrowed_;
};

}  // namespace hostless::gpu
