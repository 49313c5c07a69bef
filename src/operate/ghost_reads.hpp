#pragma once
// Which ghosts each slice reads: what a sweep needs to know of a matrix (make_sweep).

#include <cstdint>
#include <vector>

#include "hostless/operate/local_matrix.hpp"

namespace hostless {

/// Of slices [begin, end), whose panels come in order.
class GhostReader {
 public:
  GhostReader(LocalRows const& rows, Tiling const& tiling, int begin, int end);
  void add(int slice, std::int64_t first_block_row, LocalPanel const& panel);
  GhostReads take();

 private:
  void end_slice();
  int begin_, end_, block_;
  std::int64_t owned_, below_;
  GhostReads reads_;
  std::vector<int> seen_;  // ghost block row: the last slice that was found to read it
};

/// Of all slices. Cost  one pass over the rows, by up to `threads` threads where they can be read so
GhostReads ghost_reads(LocalRows const& rows, Tiling const& tiling, int threads);

}  // namespace hostless
