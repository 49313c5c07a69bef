#include "solve/gpu_ranks.hpp"

#include <fmt/format.h>

#include "hostless/base/error.hpp"
#include "operate/device_rows.hpp"

namespace hostless {
namespace {

// Nodes may have been declared: threads are on one, whatever was said.
int ranks_of_this_node(Matrix const& matrix) {
  Group& group = matrix.transport().group();
  if (matrix.transport().capabilities().threads_as_ranks) return group.size();
  NodeMap const& nodes = matrix.plan().nodes;
  return static_cast<int>(nodes.ranks_of(nodes.node[static_cast<std::size_t>(group.rank())]).size());
}

}  // namespace

void check_gpu_ranks(Matrix const& matrix, RunOptions const& run) {
  check_gpus(run, ranks_of_this_node(matrix));
  DeviceRows const* const rows = matrix.device_rows();
  int const ranks = matrix.transport().group().size();
  if (ranks > 1 && rows != nullptr && rows->format == DeviceFormat::vendor)
    throw Error(ErrorCode::usage,
                fmt::format("format vendor on {} ranks (the vendor's library multiplies whole matrices). Use "
                            "another format, or one rank.",
                            ranks));
}

}  // namespace hostless
