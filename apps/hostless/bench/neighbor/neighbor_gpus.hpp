#pragma once
// `hostless bench neighbor --gpus`: neighbourhood collectives on buffers of GPUs.

#include <algorithm>
#include <vector>

#include "../messages.hpp"
#include "bench/neighbor/gpu/gpu_neighbors.hpp"

namespace hostless {

/// Empty: all.
struct NeighborGpuOptions {
  std::vector<bench::GpuNeighborWay> ways;
  std::vector<bench::Collective> collectives;
  std::vector<bench::Trigger> triggers;
  bool has(bench::Collective one) const {
    return collectives.empty() || std::find(collectives.begin(), collectives.end(), one) != collectives.end();
  }
};

/// Who sends to whom, and what else follows from a seed.
struct NeighborGraph {
  bench::Neighbors mine;
  std::uint64_t seed = 0;
};

void add_neighbor_gpu_options(CLI::App& command, MessageOptions& common, NeighborGpuOptions& o);
/// Errors  usage  options of GPUs without --gpus, or of processors with it
void check_neighbor_gpu_options(MessageOptions const& common, CLI::App const& command);
/// As many ranks as GPUs where nobody has said how many, and steps of a GPU.
/// Errors  usage  more ranks than GPUs, unasked, or fewer
void take_neighbor_gpu_defaults(MessageOptions& common, CLI::App const& command);

/// The exit code: 1 where a byte came wrong.
/// Errors  environment  nothing was measured; those of gpu_neighbors
int time_neighbors_on_gpus(MessageOptions const& common, NeighborGpuOptions const& o,
                           NeighborGraph const& graph, Transport& transport, Json& report);
/// gather: blocks, rows, both. Errors  environment  nothing was measured; those of gpu_row_product
int time_product_on_gpus(MessageOptions const& common, NeighborGpuOptions const& o, bench::RowProduct product,
                         std::string const& gather, Transport& transport, Json& report);

}  // namespace hostless
