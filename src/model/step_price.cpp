#include "hostless/model/step_price.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "hostless/base/error.hpp"
#include "model/price_parts.hpp"

namespace hostless {
namespace {

// Cells of the box, `more` cells larger to each side where it has a neighbour.
double grown_cells(BoxPartition const& boxes, Rank rank, std::array<std::int64_t, 3> more) {
  Box const box = boxes.box(rank);
  double cells = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    Direction low{}, high{};
    low[axis] = -1;
    high[axis] = 1;
    int const sides = (boxes.neighbour(rank, low) >= 0) + (boxes.neighbour(rank, high) >= 0);
    cells *= static_cast<double>(
        std::max<std::int64_t>(0, box.extent(static_cast<int>(axis)) + sides * more[axis]));
  }
  return cells;
}

void check(StepShare const& share, int ranks_per_node) {
  if (!(share.cells > 0) || !(share.cell_bytes > 0) || share.steps < 1 || !(share.repeated >= 0) ||
      !(share.border >= 0) || share.border > share.cells || ranks_per_node < 1)
    throw Error(ErrorCode::usage,
                fmt::format("{} cells of {} bytes, {} at the border, {} steps, {} ranks a node "
                            "(there is nothing to step). Give at least one of each.",
                            share.cells, share.cell_bytes, share.border, share.steps, ranks_per_node));
}

}  // namespace

StepShare step_share(BoxPartition const& boxes, std::array<int, 3> radius, int steps, double cell_bytes) {
  StepShare share;
  share.steps = steps;
  share.cell_bytes = cell_bytes;
  for (Rank rank = 0; rank < boxes.ranks(); ++rank) {
    double const own = static_cast<double>(boxes.box(rank).cells());
    double repeated = 0;
    for (int left = 1; left < steps; ++left)  // steps that follow this one before the next exchange
      repeated += grown_cells(boxes, rank, {left * radius[0], left * radius[1], left * radius[2]}) - own;
    double const inner = grown_cells(boxes, rank, {-radius[0], -radius[1], -radius[2]});
    share.cells = std::max(share.cells, own);
    share.repeated = std::max(share.repeated, repeated);
    share.border = std::max(share.border, own - inner);
  }
  return share;
}

StepPrice price_step(MachineModel const& machine, StepShare const& share, MemoryKind memory,
                     int ranks_per_node, ExchangePrice const* exchange) {
  check(share, ranks_per_node);
  MemoryRate const& rate = memory_rate(machine, memory);
  double const parts = memory == MemoryKind::host ? ranks_per_node : 1;
  double const steps = share.steps, bytes = share.cell_bytes * parts;
  StepPrice price;
  price.sources = in_words(machine, {rate.source});
  double launches = 0;
  if (memory == MemoryKind::gpu && machine.triggers && machine.triggers->kernel_launch) {
    launches = (1 + (exchange != nullptr ? 3 / steps : 0)) * *machine.triggers->kernel_launch;
    price.sources.push_back(in_words(machine, {machine.triggers->source}).front());
  } else if (memory == MemoryKind::gpu) {
    price.notes.push_back("no data of kernel launches: not counted");
  }
  if (exchange != nullptr) {
    price.exchange = exchange->seconds;
    price.sources.insert(price.sources.end(), exchange->sources.begin(), exchange->sources.end());
    price.notes.insert(price.notes.end(), exchange->notes.begin(), exchange->notes.end());
  }
  auto const at = [&](double bytes_per_s, double off) {
    price.cells = share.cells * bytes / bytes_per_s;
    price.repeated = share.repeated * bytes / bytes_per_s / steps;
    double const hides = std::max(0.0, share.cells - share.border) * bytes / bytes_per_s;
    price.halo = std::max(0.0, off * price.exchange - hides) / steps;
    price.launches = std::max(0.0, launches - price.cells - price.repeated);
    return price.cells + price.repeated + price.halo + price.launches;
  };
  price.least = at(rate.vectors.most, 1 - messages_off);
  price.most = at(rate.vectors.least, 1 + messages_off);
  price.seconds = at(rate.vectors.bytes_per_s, 1);
  return price;
}

}  // namespace hostless
