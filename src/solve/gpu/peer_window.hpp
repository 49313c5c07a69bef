#pragma once
// One rank's end of memory that others store to: what it sends, and where the others are.

#include "device/memory.hpp"
#include "run/gpu/launch.hpp"
#include "solve/gpu_library.hpp"

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

class PeerWindow {
 public:
  /// Errors  usage  more ranks or levels than kernels know of
  PeerWindow(Problem const& problem, Tiling const& tiling, Lending lending);
  ~PeerWindow();
  /// In device memory; filled by `connect`.
  PeerView const* view() const { return view_.data(); }
  int levels() const { return mine_.levels; }
  LentMemory staging() const { return lend(staging_, staging_.data(), lending_); }
  void know(std::vector<PeerShape> const& all);
  /// Errors  environment  this GPU cannot reach the memory of another, or load and store there
  void connect(std::vector<PeerMemory> const& all);
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(item_.bytes() + first_of_slice_.bytes() + staging_.bytes());
  }
  bool guards_hold() const {
    return item_.guards_hold() && first_of_slice_.guards_hold() && staging_.guards_hold() &&
           view_.guards_hold();
  }

 private:
  template <class T>
  T* address_of(LentMemory const& memory, int rank);

  bool processes_;
  Lending lending_;
  std::shared_ptr<SymmetricMemory> symmetric_;  // where others' memory is found by its offset
  std::vector<void*> opened_;
  Array<PeerCopy> item_;
  Array<std::int32_t> first_of_slice_;
  Array<double> staging_;
  Array<PeerView> view_;
  PeerView mine_;
};

}  // namespace hostless::gpu
