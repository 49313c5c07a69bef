#pragma once
// Neighbourhood collectives on buffers of GPUs: by everything that carries between them, by every trigger, beside
// NCCL's own grouped sends and receives and the MPI library's own collective.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/neighbor/gpu/calls.hpp"
#include "bench/neighbor/row_products.hpp"

namespace hostless::bench {

/// What carries, of hostless.
struct GpuNeighborWay {
  GpuTransport transport = GpuTransport::peer;
  bool copy_engine = false;  ///< of peer
  std::string name() const { return copy_engine ? "copies" : hostless::name(transport); }
};
/// The rivals' names, in the same place.
constexpr char const *grouped_way = "nccl grouped", *library_way = "library";

struct GpuNeighborWays {
  std::vector<Trigger> triggers;
  std::vector<GpuNeighborWay> ways;
  int gpus = 1;
  bool may_share_gpus = false;
  std::optional<MpiVendor> vendor;  ///< empty: there is no MPI between the ranks
};
struct GpuNeighbors : GpuNeighborWays {
  Neighbors mine;
  std::vector<std::size_t> bytes;  ///< of a block, of alltoallv about the mean; each at least 1
  std::vector<Collective> collectives;
  std::uint64_t seed = 0;  ///< of the lengths of alltoallv's blocks
};
struct GpuRowProduct : GpuNeighborWays {
  RowProduct product;     ///< its `ways` are not looked at
  bool by_blocks = true;  ///< whole blocks of rows of B
  bool by_rows = true;    ///< rows that are needed
};

/// One collective of one size, or one product, by one way and trigger.
struct GpuNeighborCell {
  enum class Status { measured, absent, wrong } status = Status::absent;
  std::string what;       ///< allgather, alltoallv; of products blocks, rows
  std::size_t bytes = 0;  ///< of a block; of products those that all ranks gather
  std::string way;
  Trigger trigger = Trigger::host;
  std::string why;        ///< it was not measured; or what came wrong, where
  std::string described;  ///< what carries, in words
  double set_up_s = 0;    ///< of the slowest rank, for all triggers of a way
  int steps = 0;          ///< of a repeat: fewer than asked for where one takes long
  Timing timing;
  /// The rival's median over this one's: NCCL's by the same trigger (for a kernel by a graph), MPI's own.
  std::optional<double> nccl_over, library_over;
  /// The same of set-up and as many calls as were asked for. NCCL's has its ranks' connection.
  std::optional<double> nccl_over_with_set_up, library_over_with_set_up;
};
char const* name(GpuNeighborCell::Status status);

/// Cells of a size come together, those of the rivals first. Before and behind the timed calls of each all ranks'
/// blocks have new bytes, and every byte that is received is first made another one and then compared.
///
/// tell  is given each cell, on every rank
/// Collective; the same on every rank but for `mine`.
/// Errors  usage        no bytes; a graph without edges; GPUs that are not there, or would be shared unasked
///         environment  no GPU
///         peer_lost    a rank fell silent past its deadline
std::vector<GpuNeighborCell> gpu_neighbors(Transport& transport, GpuNeighbors const& what,
                                           Protocol const& protocol,
                                           std::function<void(GpuNeighborCell const&)> const& tell);

/// A call gathers rows of B, by an allgatherv of whole blocks or an exchange of those that are needed, and multiplies
/// them by a kernel; every value of Y is compared with the product that the processor forms, equal bits. As above.
///
/// Errors  usage  those of row_product too
std::vector<GpuNeighborCell> gpu_row_product(Transport& transport, GpuRowProduct const& what,
                                             Protocol const& protocol,
                                             std::function<void(GpuNeighborCell const&)> const& tell);

}  // namespace hostless::bench
