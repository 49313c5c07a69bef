#pragma once
// One rank's end of memory that others store to while a text runs: what it sends, and where the others are.

#include "exchange/kernel_duties.hpp"
#include "hostless/operate/tiling.hpp"
#include "run/gpu/launch.hpp"
#include "run/gpu/rank_shapes.hpp"
#include "transport/memory/opened_memory.hpp"

namespace hostless::gpu {

struct PeerRank {
  int rank = 0, ranks = 1;
  bool processes = false;  ///< ranks are processes of one machine, not threads of this one
  std::shared_ptr<SymmetricMemory> symmetric;  ///< where others' memory is found by its offset; or null
};

class PeerWindow {
 public:
  /// Errors  usage  more ranks or rounds than kernels know of
  PeerWindow(PeerRank const& who, PeerCopies const& copies, Layout const& layout, Lending lending);
  /// In device memory; filled by `connect`.
  PeerView const* view() const { return view_.data(); }
  int rounds() const { return mine_.rounds; }
  void lend(PeerMemory& memory) const;
  /// After a loss, when all ranks have met.
  void forget() { staged_.clear(); }
  void know(std::vector<PeerShape> const& all);
  /// Errors  environment  this GPU cannot reach the memory of another, or load and store there
  void connect(std::vector<PeerMemory> const& all);
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(item_.bytes() + first_of_slice_.bytes() + staging_.bytes() +
                                     staged_.bytes() + duty_.bytes() + first_duty_.bytes());
  }
  bool guards_hold() const {
    return item_.guards_hold() && first_of_slice_.guards_hold() && staging_.guards_hold() &&
           view_.guards_hold() && staged_.guards_hold() && duty_.guards_hold() && first_duty_.guards_hold();
  }

 private:
  void deal_out(PeerCopies const& copies, Layout const& layout);
  template <class T>
  T* address_of(LentMemory const& memory, int rank) {
    return static_cast<T*>(opened_.address_of(memory, rank));
  }

  Lending lending_;
  OpenedMemory opened_;
  Array<PeerCopy> item_;
  Array<std::int32_t> first_of_slice_;
  Array<double> staging_;
  Array<FlaggedWord> staged_;  // of both parities
  Array<PeerCopy> duty_;
  Array<std::int32_t> first_duty_;
  Array<RoutedView> view_;
  RoutedView mine_;
};

}  // namespace hostless::gpu
