#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "hostless/model/machine_model.hpp"
#include "hostless/model/plan_price.hpp"

namespace hostless {

/// Methods whose work an iteration is counted as Trotter et al. count it.
enum class PricedMethod : std::uint8_t { cg, pipelined_cg, bicgstab };
inline constexpr std::array all_priced_methods = {PricedMethod::cg, PricedMethod::pipelined_cg,
                                                  PricedMethod::bicgstab};

/// What an iteration without a preconditioner does.
struct IterationCounts {
  char const* name;       ///< of the method
  int products;           ///< with A, each behind an exchange
  int sums;               ///< all-reduces
  int updates, dots;      ///< of vectors, on a GPU each a kernel; norms are dots
  double dot_bytes;       ///< that the dots read, a row
  double host_row_bytes;  ///< of vectors a row on a processor, those that products read and write too
  int kept_vectors;       ///< at the very least
};
IterationCounts const& counts_of(PricedMethod method);
inline char const* name(PricedMethod method) { return counts_of(method).name; }

/// What a rank does; of several, the most of any in each number.
struct SolveShare {
  double rows = 0.0, entries = 0.0;
  double border_rows = 0.0;  ///< rows whose products wait for ghosts
  /// Of the matrix, as a processor keeps it and reads it in a product; not asked of GPUs.
  double stored_bytes = 0.0;
};

/// Where an iteration runs.
struct SolveSetting {
  int nodes = 1, ranks_per_node = 1;
  MemoryKind memory = MemoryKind::gpu;   ///< where matrix and vectors lie
  MemoryKind sums_in = MemoryKind::gpu;  ///< where the numbers lie that all-reduces add
};

/// Seconds of an iteration; `seconds` = product + vectors + halo + sums + launches.
struct IterationPrice {
  double seconds = 0.0;
  double product = 0.0, vectors = 0.0;  ///< by the bandwidth of memory
  double halo = 0.0;                    ///< what the product of inner rows does not hide
  double exchange = 0.0;                ///< the whole of all exchanges
  double sums_on_node = 0.0, sums_between = 0.0, sum_copies = 0.0;
  double launches = 0.0;             ///< what launches take longer than the work that they start
  double bytes = 0.0;                ///< that the rank moves for product and vectors
  double least = 0.0, most = 0.0;    ///< the model's own error: `seconds` lies between
  std::vector<std::string> sources;  ///< of the values that were used, in words
  std::vector<std::string> notes;    ///< what the data do not say
  double sums() const { return sums_on_node + sums_between + sum_copies; }
};

/// Bytes that a rank moves in an iteration: in each product, and for vectors besides. On a GPU: for a product 12 an entry
/// (value, column) and 20 a row (its end, and a value read and one written), 24 rows for each of three (pipelined and
/// bicgstab: six) vector updates, 24 rows for a dot product and a norm (bicgstab: 64 for three and two). Trotter et al.
/// count 20 (entries + rows) for the product, as if each entry read a value anew.
/// On a processor as Result::bytes_per_iteration counts: the matrix as it is stored (both triangles once, short
/// columns), and 88 rows of vectors (pipelined: 128, bicgstab: 200), of which 16 are each product's.
double product_bytes(SolveShare const& share, MemoryKind memory);
double vector_bytes(PricedMethod method, SolveShare const& share, MemoryKind memory);

/// Bytes that a solve keeps at the very least: the matrix, on a GPU 12 an entry and 4 a row (its end), and 8 a row for
/// each of the vectors x, b, r, p and A p, pipelined three more, bicgstab two (the shadow residual, and A s).
double kept_bytes(PricedMethod method, SolveShare const& share, MemoryKind memory);
/// Why the share does not fit into the machine's memory; empty: it may, or there is no data of it.
std::string why_it_does_not_fit(MachineModel const& machine, PricedMethod method, SolveShare const& share,
                                SolveSetting const& setting);

/// How often 1 must be doubled to be n or more: rounds of a sum of n ranks.
int doublings(int n);

/// What a measured all-reduce of 8 bytes says of the sums of a machine, whose messages have prices already. Of ranks
/// on several nodes the part on a node is what as many messages take; nothing where that is as much as the whole:
/// what it costs between nodes is then not known.
std::optional<SumCosts> sums_of_measured(double seconds, int nodes, int ranks_per_node,
                                         MachineModel const& machine);

/// An all-reduce of all ranks.
struct SumPrice {
  double on_node = 0.0, between = 0.0;  ///< seconds
  std::vector<std::string> sources, notes;
};

/// A doubling of ranks on a node, and of nodes, costs what the machine's sums say (8 bytes), or else a message.
/// Errors  usage      no nodes or ranks, negative bytes
///         bad_input  the machine has no data of sums, nor of the messages
SumPrice price_sum(MachineModel const& machine, int nodes, int ranks_per_node, MemoryKind memory,
                   double bytes);

/// A machine whose spans without data have those between nodes, which take no less: `notes` says so.
MachineModel with_all_spans(MachineModel machine, std::vector<std::string>& notes);

/// Prices an iteration of a solve by the most that any rank does.
///
/// product, vectors  bytes over the machine's rates: of a GPU, or a rank's part of a node's
/// halo      exchange less the product of rows that wait for no ghost, or nothing; bicgstab has two of all
/// sums      two all-reduces (pipelined: one, hidden by nothing; bicgstab: three): a doubling of ranks on a node, and of nodes,
///           costs what the machine's sums say, or else a message of 8 bytes; numbers of a GPU that the host
///           adds are copied there and back
/// launches  of a GPU's kernels: what they take beyond product and vectors; not counted without data
/// least, most  rates of memory as the machine has them, sums and exchange 26 % off: the 90th percentile of
///           what prices of messages were off where they were compared
///
/// exchange  price of one product's halo, or nullptr where nothing is exchanged
/// Local, deterministic. Source: Trotter et al., section 4.1.4 (bytes of vectors).
/// Errors  usage      no rows, nodes or ranks; more border rows than rows; on processors no stored bytes
///         bad_input  the machine has no data of memory, sums and messages, or copies: says which
IterationPrice price_iteration(MachineModel const& machine, PricedMethod method, SolveShare const& share,
                               SolveSetting const& setting, ExchangePrice const* exchange);

}  // namespace hostless
