#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hostless {

/// Where the two ends of a message are, as the tables of node-aware models call it.
enum class MessageSpan : std::uint8_t { on_socket, on_node, off_node };
/// Whose memory a message leaves and reaches.
enum class MemoryKind : std::uint8_t { host, gpu };
/// How an MPI hands a message over: inside the envelope, into a buffer that is there, or after a handshake.
enum class Protocol : std::uint8_t { short_message, eager, rendezvous };
/// What successive messages of a rank share. inlined: the card has the bytes with the order, only the
/// processors' overheads add up. buffered: copied at both ends, and the two halves of successive messages
/// overlap. direct: from memory to memory; only the flight of one overlaps with the next.
enum class Transfer : std::uint8_t { inlined, buffered, direct };

inline constexpr std::array all_spans = {MessageSpan::on_socket, MessageSpan::on_node, MessageSpan::off_node};
inline constexpr std::array all_memory_kinds = {MemoryKind::host, MemoryKind::gpu};
char const* name(MessageSpan span);
char const* name(MemoryKind memory);
char const* name(Protocol protocol);
char const* name(Transfer transfer);

/// Seconds of n bytes: alpha + beta n.
struct Line {
  double alpha = 0.0;  ///< seconds
  double beta = 0.0;   ///< seconds a byte
  double at(double bytes) const { return alpha + beta * bytes; }
};

/// A line and the sizes that it holds for: those up to `up_to`, from where the piece before ends.
struct MessagePiece {
  Protocol protocol = Protocol::eager;
  Transfer transfer = Transfer::buffered;
  double up_to = 0.0;  ///< bytes; infinite in the last piece
  Line line;
};

/// What each message costs that follows another one of the same rank, where that was measured.
struct FollowingPiece {
  double up_to = 0.0;
  Line line;
};

/// Messages of one span and memory.
struct MessageCosts {
  MessageSpan span = MessageSpan::off_node;
  MemoryKind memory = MemoryKind::host;
  std::vector<MessagePiece> pieces;       ///< rising; empty: no data
  std::vector<FollowingPiece> following;  ///< rising; empty: follows from the pieces (price.hpp)
  double queue_search = 0.0;              ///< seconds for each message that another one is matched behind
  std::string source;

  MessagePiece const& piece(double bytes) const;
};

/// What a node can inject, for messages up to a size.
struct InjectionLimit {
  double up_to = 0.0;       ///< bytes of a message; infinite in the last
  bool per_socket = false;  ///< the limit holds for the ranks of each socket, else for those of the node
  double seconds_per_byte = 0.0;  ///< 1 / R_N
};

/// What the network cards of a node take from one kind of memory.
struct InjectionCosts {
  MemoryKind memory = MemoryKind::host;
  std::vector<InjectionLimit> limits;
  /// Exponent p that joins the time T of the ranks and the time I of the card: (T^p + I^p)^(1/p). Infinite:
  /// the max-rate model's maximum.
  double sharpness = 0.0;
  std::string source;
};

/// Between host and GPU.
enum class CopyDirection : std::uint8_t { host_to_device, device_to_host };
char const* name(CopyDirection direction);

/// A copy between a GPU and the host, of `bytes` by each of `processes` at once.
struct CopyCosts {
  CopyDirection direction = CopyDirection::host_to_device;
  int processes = 1;
  Line line;
  std::string source;
};

/// Seconds that it takes to begin something; what is absent is not known.
struct TriggerCosts {
  std::optional<double> kernel_launch;  ///< back to back
  std::optional<double> graph_node;     ///< of a replayed graph
  std::optional<double> grid_barrier;   ///< of a resident kernel
  std::optional<double> flagged_word;   ///< one way to a peer on the node
  std::optional<double> stream_flag;    ///< a stream's write and another's wait for it
  std::optional<double> all_reduce;     ///< of 8 bytes, in a kernel, on the node
  std::string source;
};

/// Bytes a second, and between which the rates of the source lie.
struct SweepRate {
  double bytes_per_s = 0.0;
  double least = 0.0, most = 0.0;
};

/// What sweeps attain: of one GPU, or (host) of all cores of a node together.
struct MemoryRate {
  MemoryKind memory = MemoryKind::gpu;
  SweepRate vectors;                  ///< of long arrays
  std::optional<SweepRate> products;  ///< of a sparse matrix; absent: as of arrays
  std::string source;
  std::optional<double> bytes{};  ///< that there are; absent: no data
};

/// An all-reduce of 8 bytes of all ranks: so much for each doubling of ranks.
struct SumCosts {
  MemoryKind memory = MemoryKind::gpu;  ///< where the numbers lie
  std::optional<double> on_node;        ///< seconds for each doubling of the ranks of a node
  std::optional<double> between_nodes;  ///< seconds for each doubling of the nodes
  std::string source;
};

/// A path between two things of a node ("gpu0", "socket1"), with what it can carry each way.
struct NodeLink {
  std::string from, to, kind;
  std::optional<int> links;  ///< parallel ones
  int hops = 1;
  std::optional<double> bytes_per_s;  ///< of all of them, one way
  std::string source;
};

/// What a node is made of.
struct NodeShape {
  int sockets = 1;
  int cores_per_socket = 1;
  int gpus_per_socket = 0;  ///< that a program sees: dies, where a GPU has several
  int dies_per_gpu = 1;
  int network_cards = 1;
  std::string source;

  int cores() const { return sockets * cores_per_socket; }
  int gpus() const { return sockets * gpus_per_socket; }
};

/// The values that can be measured; a machine has one set, and may have another that was published.
struct CostTables {
  std::vector<MessageCosts> messages;
  std::vector<InjectionCosts> injection;
  std::vector<CopyCosts> copies;

  /// nullptr: no data.
  MessageCosts const* find(MessageSpan span, MemoryKind memory) const;
  InjectionCosts const* find(MemoryKind memory) const;
  CopyCosts const* find(CopyDirection direction, int processes) const;
};

/// A machine as the model knows it. Plain data; what a file says of it, and no more.
///
/// Units: bytes, seconds, seconds a byte; rates of links in bytes a second. Every entry names its source.
/// The page of machine files describes the format.
struct MachineModel {
  static constexpr int current_version = 1;
  std::string name;
  std::string description;
  std::map<std::string, std::string> sources;  ///< what the short names stand for
  std::optional<int> nodes;                    ///< of the machine; absent: not known
  NodeShape node;
  std::vector<NodeLink> links;
  CostTables costs;                     ///< what prices follow from
  std::optional<CostTables> published;  ///< as printed in a paper: what its closed forms follow from
  std::optional<TriggerCosts> triggers;
  std::vector<MemoryRate> memory;  ///< one for each kind of memory at most; empty: no data
  std::vector<SumCosts> sums;      ///< the same

  /// The published tables where there are any, else the costs.
  CostTables const& for_closed_forms() const { return published ? *published : costs; }
};

/// Reads a machine's text; every value is looked at. `file` is what messages call it.
///
/// Errors  bad_input  `file:line: ...`: not JSON, a key that is unknown, missing or there twice, a value of
/// another
///                    kind or outside of what its unit allows (a rate where its inverse must be)
MachineModel parse_machine(std::string_view text, std::string const& file);

/// Of a file, or of a machine that the library brings along: a name has no slash and no dot.
///
/// Errors  usage      no machine of that name
///         bad_input  as parse_machine; the file cannot be read
MachineModel load_machine(std::string const& name_or_file);

/// Names of the machines that the library brings along, sorted.
std::vector<std::string> shipped_machines();

/// The text of a shipped machine's file, or empty.
std::string_view shipped_machine(std::string_view name);

/// The text of a file that parse_machine reads back as the same values.
std::string to_json(MachineModel const& machine);

}  // namespace hostless
