#pragma once
// Which stencil on which grid, and how it is dealt out: what `hostless stencil` and `hostless bench stencil`
// both take.

#include <cstdint>
#include <string>
#include <vector>

#include "hostless/stencil/catalogue.hpp"
#include "hostless/stencil/checkpoint.hpp"
#include "hostless/stencil/stencil.hpp"
#include "hostless/transport/group.hpp"

namespace CLI {
class App;
}

namespace hostless {

/// The words --problem, --size, --type, --boundary and --parameter. Members are empty where nothing was said.
struct GridWords {
  std::string problem;
  std::vector<std::int64_t> size;  ///< in the order of NumPy's axes
  std::string type;
  std::vector<std::string> boundary;  ///< one for all axes, or one for each
  std::vector<std::string> parameters;

  void add(CLI::App& command);
  void add_grid(CLI::App& command);  ///< without --parameter, where no number is computed
  void add_boundary(CLI::App& command);
  /// One word for all axes, or one for each between commas.
  std::string boundary_text() const;
  NamedStencil const& stencil() const { return named_stencil(problem); }
  /// What was not said of size, type, boundary and parameters is that of a checkpoint.
  /// Errors  bad_input  it is of another stencil
  void take(StencilCheckpointGrid const& from, std::string const& file);
  /// What can be known before a file says how many axes there are.
  /// Errors  usage  parameters that the stencil has not, twice, or that are no numbers
  void check() const;
  /// shape, value_bytes  of the grid, as they were settled
  /// Errors  usage  a number of axes that the stencil does not come in, or another number of boundaries
  Grid grid(std::vector<std::int64_t> const& shape) const;
  StencilKernel kernel(int axes, std::size_t value_bytes) const;
  /// As given, else the defaults; in the order of NamedStencil::parameters.
  std::vector<double> values(int axes) const;
};

/// The words --ranks-along, --depth, --block-steps, --route and --ranks-per-node.
struct DealtOptions {
  std::vector<int> ranks_along;  ///< in the order of NumPy's axes; empty: chosen
  int depth = 0, block_steps = 0, ranks_per_node = 0;
  std::string route = "direct";

  void add(CLI::App& command);
  /// Collective. Errors  usage  a number of axes that is not the grid's
  StencilOptions options(Group& group, int axes) const;
};

/// Numbers between `x`, the shape of an array.
std::string shape_text(std::vector<std::int64_t> const& shape);

/// Collective. Errors  environment  two copies of every field do not fit into the memory of a machine
void require_memory_for(Group& group, StencilKernel const& kernel, std::vector<std::int64_t> const& shape);

}  // namespace hostless
