// Layouts of matrices whose entries only the GPU ever has: what make_device_rows counts entry by entry
// follows here from where in its lattice a block row lies.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>

#include "hostless/base/error.hpp"
#include "operate/device_layout.hpp"
#include "problems/recipe.hpp"

namespace hostless {
namespace {

using problems::Neighbour;
using problems::Node;
using problems::Recipe;

/// Of one block row; `least` and `most` are column block row - block row, its own among them.
struct BlockRowShape {
  std::int32_t width = 0;
  std::int64_t least = 0, most = 0;
};

/// Calls use(shift) for the columns of a block row but its own.
template <class Use>
void for_each_shift(Recipe const& recipe, Node const& at, Use const& use) {
  for (int k = 0; k < recipe.neighbours; ++k) {
    Neighbour const& to = recipe.neighbour[k];
    if (to.shift != 0 && holds(recipe.lattice, at, to)) use(to.shift);
  }
}

/// The shapes along a line of nodes: they differ at its ends alone.
class LineShapes {
 public:
  explicit LineShapes(Recipe const& recipe) : recipe_(recipe) {}
  BlockRowShape const& of(std::int64_t block_row) {
    std::int64_t const nodes = recipe_.lattice.nodes[0];
    if (block_row < first_ || block_row >= first_ + nodes) enter(block_row);
    std::int64_t const x = block_row - first_;
    return shape_[x == 0 ? 0 : x == nodes - 1 ? 2 : 1];
  }

 private:
  void enter(std::int64_t block_row) {
    Node node = node_of(recipe_.lattice, block_row);
    first_ = block_row - node.x;
    std::int64_t const nodes = recipe_.lattice.nodes[0];
    std::int64_t const sampled[] = {0, 1, nodes - 1};
    for (int k = 0; k < 3; ++k) {
      node.x = std::min(sampled[k], nodes - 1);
      BlockRowShape& shape = shape_[k] = {1, 0, 0};
      for_each_shift(recipe_, node, [&](std::int64_t shift) {
        ++shape.width;
        shape.least = std::min(shape.least, shift);
        shape.most = std::max(shape.most, shift);
      });
    }
  }
  Recipe const& recipe_;
  std::int64_t first_ = INT64_MIN / 2;  // of the line; before all
  BlockRowShape shape_[3];
};

DeviceCount count(Recipe const& recipe, Tiling const& tiling) {
  DeviceCount counted;
  counted.offset.push_back(0);
  for (int k = 0; k < recipe.neighbours; ++k)
    if (Neighbour const& to = recipe.neighbour[k]; recipe.happens(to))
      counted.offset.push_back(static_cast<std::int32_t>(to.shift));
  std::sort(counted.offset.begin(), counted.offset.end());
  counted.offset.erase(std::unique(counted.offset.begin(), counted.offset.end()), counted.offset.end());
  counted.farthest = std::max(-counted.offset.front(), counted.offset.back());
  counted.entries = count_entries(recipe);
  LineShapes shapes(recipe);
  count_groups(tiling, counted, [&](std::int64_t block_row, std::span<std::int32_t> width) {
    std::pair columns{block_row, block_row};
    for (std::int32_t& blocks : width) {
      BlockRowShape const& shape = shapes.of(block_row);
      blocks = shape.width;
      columns = {std::min(columns.first, block_row + shape.least),
                 std::max(columns.second, block_row + shape.most)};
      ++block_row;
    }
    return columns;
  });
  return counted;
}

}  // namespace

std::int64_t count_entries(Recipe const& recipe) {
  auto const& nodes = recipe.lattice.nodes;
  std::int64_t blocks = recipe.lattice.count();
  for (int k = 0; k < recipe.neighbours; ++k) {
    Neighbour const& to = recipe.neighbour[k];
    if (to.shift != 0 && recipe.happens(to))
      blocks += (nodes[0] - std::abs(to.dx)) * (nodes[1] - std::abs(to.dy)) * (nodes[2] - std::abs(to.dz));
  }
  return blocks * recipe.block * recipe.block;
}

DeviceRows make_device_rows(Recipe const& recipe, Tiling const& tiling, DeviceRequest request) {
  if (!request.automatic && is_csr(request.format))
    throw Error(
        ErrorCode::usage,
        fmt::format(
            "format {} of a matrix that is generated on the GPU (its kernels fill diagonals and sell). "
            "Use --format auto, diagonals, diagonals-full or sell, or generate on the host.",
            name(request.format)));
  if (tiling.threads_per_row > 1) {
    throw Error(
        ErrorCode::usage,
        fmt::format("{} row lanes of a matrix that is generated on the GPU (such rows are CSR, its kernels "
                    "fill diagonals and sell). Leave out --row-lanes, or generate on the host.",
                    tiling.threads_per_row));
  }
  DeviceCount const counted = count(recipe, tiling);
  DeviceRows made;
  made.tiling = tiling;
  made.farthest = counted.farthest;
  made.recipe = std::make_shared<Recipe const>(recipe);
  choose_layout(made, counted, request, request.halves);
  DeviceSizes const sizes = lay_out(made, counted, request.halves);
  made.made_there = {sizes.value, sizes.narrow, sizes.wide, 0};
  return made;
}

}  // namespace hostless
