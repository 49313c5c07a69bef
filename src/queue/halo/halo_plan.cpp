#include "queue/halo/halo_plan.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/counted.hpp"
#include "queue/communicator_state.hpp"

namespace hostless::queue {
namespace {

constexpr std::size_t message_line = 256;
constexpr int halo_axes = 3;

// Two axes are the last two.
int first_axis(HaloGrid const& grid) { return halo_axes - static_cast<int>(grid.ranks.size()); }

std::string problem_of_grid(HaloGrid const& grid, int ranks) {
  std::size_t const axes = grid.ranks.size();
  if ((axes != 2 && axes != 3) || grid.periodic.size() != axes || grid.size.size() != axes)
    return counted(axes, "axis", "axes") + " of ranks, " + std::to_string(grid.periodic.size()) +
           " that are periodic or not, and " + std::to_string(grid.size.size()) +
           " sizes (a grid has 2 or 3). Give as many of each.";
  std::int64_t product = 1;
  for (int const along : grid.ranks) product = along < 1 || product > ranks ? ranks + 1 : product * along;
  if (product != ranks)
    return "ranks along the axes that are not those of the communicator (" + std::to_string(ranks) +
           "; each has a box). Give numbers whose product it is.";
  if (grid.width < 1 || grid.width > most_halo_width)
    return "a halo of " + counted(grid.width, "cell") + " (it has 1 to " + std::to_string(most_halo_width) +
           "). Use another width.";
  if (grid.reach != HaloReach::star && grid.reach != HaloReach::box)
    return "reach number " + std::to_string(static_cast<int>(grid.reach)) +
           " (there is none). Use one of HaloReach.";
  for (std::int64_t const size : grid.size)
    if (size < grid.width || size > std::numeric_limits<std::int32_t>::max())
      return "a box of " + counted(size, "cell") + " along an axis with a halo of " +
             std::to_string(grid.width) +
             " (a neighbour's halo is this rank's alone). Use fewer ranks or a larger grid.";
  return {};
}

std::string problem_of_field(HaloField const& field, std::size_t axes) {
  if (field.cells == nullptr) return "a field without cells (nullptr). Give its array.";
  if (field.item_bytes < 1 || field.item_bytes > most_halo_item)
    return "cells of " + counted(field.item_bytes, "byte") + " (they have 1 to " +
           std::to_string(most_halo_item) + "). Give wider ones as several fields.";
  if (field.element > Datatype::byte || field.item_bytes % bytes_of(field.element) != 0)
    return "cells of " + counted(field.item_bytes, "byte") + " with elements of datatype number " +
           std::to_string(static_cast<int>(field.element)) + " (a cell has whole ones). Correct one of both.";
  if (!field.strides.empty() && field.strides.size() != axes)
    return counted(field.strides.size(), "stride") + " of a field of " + std::to_string(axes) +
           " axes (each has one). Give all, or none.";
  return {};
}

// Bytes of so many cells, `beyond_memory` where no memory has as many.
constexpr std::int64_t beyond_memory = std::numeric_limits<std::int64_t>::max();
std::int64_t bytes_along(HaloHead const& head, HaloArray const& array, int axis) {
  std::int64_t bytes;
  return __builtin_mul_overflow(array.stride[axis], std::int64_t{head.size[axis]} + 2 * head.width[axis],
                                &bytes)
             ? beyond_memory
             : bytes;
}

HaloArray array_of(HaloField const& field, HaloHead const& head, int first) {
  HaloArray array;
  array.cells = static_cast<std::byte*>(field.cells);
  array.item_bytes = static_cast<std::uint32_t>(field.item_bytes);
  array.element = field.element;
  std::int64_t close = array.item_bytes;
  for (int a = halo_axes - 1; a >= 0; --a) {
    bool const is_said = a >= first && !field.strides.empty();
    array.stride[a] = is_said ? field.strides[static_cast<std::size_t>(a - first)] : close;
    close = bytes_along(head, array, a);
  }
  array.unit = unit_of(array);
  return array;
}

std::string problem_of_strides(HaloHead const& head, HaloArray const& array, int first) {
  std::int64_t least = array.item_bytes;
  for (int a = halo_axes - 1; a >= first; --a) {
    if (array.stride[a] < least)
      return "a stride of " + std::to_string(array.stride[a]) + " bytes where " + std::to_string(least) +
             " is what lies inside it (cells may not overlap). Give strides from the first axis to the last.";
    least = bytes_along(head, array, a);
    if (least == beyond_memory)
      return "a stride of " + std::to_string(array.stride[a]) + " bytes along an axis of " +
             std::to_string(head.size[a]) + " cells (no memory has as many bytes). Correct one of both.";
  }
  return {};
}

// Where its neighbours are, and what goes to them.
class Planner {
 public:
  Planner(CommunicatorState const& ranks, HaloGrid const& grid) : grid_(grid), first_(first_axis(grid)) {
    int rest = ranks.rank();
    for (int a = halo_axes - 1; a >= first_; --a) {
      int const along = along_of(a);
      at_[a] = rest % along;
      rest /= along;
      head().size[a] = grid.size[static_cast<std::size_t>(a - first_)];
      head().width[a] = grid.width;
    }
  }
  HaloProblem add(CommunicatorState const& ranks, std::vector<HaloField> const& fields) {
    for (HaloField const& field : fields) {
      std::string const problem = problem_of_field(field, grid_.ranks.size());
      if (!problem.empty()) return {problem};
      HaloArray const array = array_of(field, head(), first_);
      std::string const overlap = problem_of_strides(head(), array, first_);
      if (!overlap.empty()) return {overlap};
      HaloProblem const elsewhere = problem_of_array(ranks, plan_.pass, array);
      if (!elsewhere.text.empty()) return elsewhere;
      plan_.pass.field[head().fields++] = array;
    }
    return {};
  }
  std::string add_messages() {
    for (int d = 0; d < halo_directions; ++d) {
      int const peer = neighbour(d);
      if (peer < 0) continue;
      HaloRegion const region = halo_region(head(), d, true);
      std::size_t cells = 1, bytes = 0;
      for (std::uint32_t const count : region.count) cells *= count;
      for (int f = 0; f < head().fields; ++f) {
        constexpr std::size_t most = std::numeric_limits<std::int32_t>::max();
        HaloArray const& array = plan_.pass.field[f];
        if (cells > most / array.item_bytes)
          return std::to_string(cells) + " cells of " + std::to_string(array.item_bytes) +
                 " bytes for one neighbour (a field's part of a message is below 2 GiB). Use more ranks.";
        bytes += halo_bytes(array, region.cells());
      }
      auto const n = static_cast<std::size_t>(head().neighbours++);
      head().direction[n] = static_cast<std::uint8_t>(d);
      head().line[n] = static_cast<std::uint32_t>(plan_.set_bytes / halo_line);
      plan_.peers.push_back(peer);
      plan_.bytes.push_back(bytes);
      plan_.set_bytes += (bytes + message_line - 1) / message_line * message_line;
    }
    if (plan_.set_bytes / halo_line <= std::numeric_limits<std::uint32_t>::max() / 4) return {};
    return "messages of " + std::to_string(plan_.set_bytes) +
           " bytes in all (16 GiB at most). Use more ranks.";
  }
  HaloPlan take() { return std::move(plan_); }

 private:
  HaloHead& head() { return plan_.pass.head; }
  int along_of(int axis) const {
    return axis < first_ ? 1 : grid_.ranks[static_cast<std::size_t>(axis - first_)];
  }
  // -1: there is none.
  int neighbour(int direction) const {
    int rank = 0, ways = 0;
    for (int a = 0; a < halo_axes; ++a) {
      int const way = halo_way(direction, a), along = along_of(a);
      if (way != 0 && a < first_) return -1;
      int to = at_[a] + way;
      if (to < 0 || to >= along) {
        if (!grid_.periodic[static_cast<std::size_t>(a - first_)]) return -1;
        to = (to + along) % along;
      }
      ways += way != 0 ? 1 : 0;
      rank = rank * along + to;
    }
    return ways == 0 || (ways > 1 && grid_.reach == HaloReach::star) ? -1 : rank;
  }
  HaloGrid const& grid_;
  int first_;
  int at_[halo_axes] = {0, 0, 0};
  HaloPlan plan_;
};

}  // namespace

std::uint32_t unit_of(HaloArray const& array) {
  std::uint64_t all = reinterpret_cast<std::uintptr_t>(array.cells) | array.item_bytes | halo_line;
  for (std::int64_t const stride : array.stride) all |= static_cast<std::uint64_t>(stride);
  return static_cast<std::uint32_t>(all & (~all + 1));
}

HaloProblem problem_of_array(CommunicatorState const& ranks, HaloPass const& pass, HaloArray const& array) {
  std::uint64_t all = reinterpret_cast<std::uintptr_t>(array.cells);
  std::int64_t last = array.item_bytes - 1;
  for (int a = 0; a < halo_axes; ++a) {
    all |= static_cast<std::uint64_t>(array.stride[a]);
    last += array.stride[a] * (pass.head.size[a] + 2 * pass.head.width[a] - 1);
  }
  if (all % bytes_of(array.element) != 0)
    return {"an array whose elements of " + std::to_string(bytes_of(array.element)) +
            " bytes do not lie at multiples of them (they are added as numbers). Align it and its strides."};
  if (ranks.gpu() < 0) return {};
  for (std::byte const* const byte : {array.cells, array.cells + last}) {
    std::string const why = gpu::message_library().why_unreached(byte, ranks.gpu());
    if (!why.empty())
      return {
          "an array in " + why + ", of a halo of GPU " + std::to_string(ranks.gpu()) +
              " (its kernels load and store there). Give memory of that GPU, or pinned memory of the host.",
          true};
  }
  return {};
}

HaloProblem plan_own_halo(CommunicatorState const& ranks, HaloGrid const& grid,
                          std::vector<HaloField> const& fields, HaloOptions const& options, HaloPlan& plan) {
  std::string problem = problem_of_grid(grid, ranks.size());
  if (!problem.empty()) return {problem};
  if (fields.empty() || fields.size() > most_halo_fields)
    return {std::to_string(fields.size()) + " fields (a halo has 1 to " + std::to_string(most_halo_fields) +
            "). Make several halos."};
  if (options.tag < 0 || options.tag > std::numeric_limits<int>::max() - halo_tags)
    return {"first tag " + std::to_string(options.tag) + " (a halo has " + std::to_string(halo_tags) +
            ", from 0 on). Use another."};
  Planner planner(ranks, grid);
  HaloProblem const of_fields = planner.add(ranks, fields);
  if (!of_fields.text.empty()) return of_fields;
  problem = planner.add_messages();
  plan = planner.take();
  return {problem};
}

}  // namespace hostless::queue
