#pragma once

#include <metis.h>

#include <cstdint>
#include <vector>

namespace hostless {

/// Symmetric, without loops; first has a number more than there are vertices.
struct MetisGraph {
  std::vector<idx_t> first, neighbour;
};

/// The part of every vertex, as METIS_PartGraphKway has it.
///
/// METIS cannot be interrupted: it runs on a thread of its own with the graph as its own, and where the
/// set-up is asked to end (setup_step) this function leaves it there. It ends by itself; meanwhile another
/// call waits for it, which can be interrupted as well.
///
/// Meanwhile SIGABRT has another handler, which is the program's but on METIS's thread (metis_signals.hpp).
///
/// Errors  environment  METIS has refused, or no thread can be started; aborted  see above
std::vector<std::int32_t> run_metis(MetisGraph graph, int parts, int seed);

}  // namespace hostless
