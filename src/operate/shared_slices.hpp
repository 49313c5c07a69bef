#pragma once
// Set-up that is shared out over threads by slices. What comes of it does not depend on how many there are.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/thread_team.hpp"
#include "operate/array.hpp"
#include "operate/storage.hpp"

namespace hostless {

class SharedSlices {
 public:
  /// Both live as long as this does. One thread where the rows can be read by no more.
  SharedSlices(LocalRows const& rows, Tiling const& tiling, int threads)
      : rows_(rows),
        tiling_(tiling),
        threads_(rows.is_concurrent() ? threads : 1),
        parts_(parts_for(threads_, tiling.slices)) {}
  Tiling const& tiling() const { return tiling_; }
  int parts() const { return parts_; }
  int first_slice(int part) const { return static_cast<int>(piece(part, parts_, tiling_.slices)); }
  /// A worker for each part, made by make(first slice, slice past the last); worker.add(slice,
  /// first_block_row, panel) for all of its panels, in order.
  template <class Make>
  auto work(Make const& make) const {
    std::vector<decltype(make(0, 0))> workers;
    for (int part = 0; part < parts_; ++part)
      workers.push_back(make(first_slice(part), first_slice(part + 1)));
    share_out(threads_, parts_, [&](int part) {
      auto& worker = workers[static_cast<std::size_t>(part)];
      for_each_panel(rows_, tiling_, first_slice(part), first_slice(part + 1),
                     [&](int slice, std::int64_t first_block_row, LocalPanel const& panel) {
                       worker.add(slice, first_block_row, panel);
                     });
    });
    return workers;
  }
  /// All of these numbers are zero then. Memory is laid down where the first one writes it: that takes the
  /// time.
  void clear(Array<double>& numbers) const {
    auto const size = static_cast<std::int64_t>(numbers.size());
    share_out(threads_, parts_, [&](int part) {
      std::fill(numbers.begin() + piece(part, parts_, size), numbers.begin() + piece(part + 1, parts_, size),
                0.0);
    });
  }

 private:
  LocalRows const& rows_;
  Tiling const& tiling_;
  int threads_, parts_;
};

}  // namespace hostless
