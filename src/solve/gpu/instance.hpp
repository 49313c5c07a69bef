#pragma once
// One instance of a text for one block size, behind plain functions: the kernels are compiled apart from the
// code that owns memory and streams.

#include "device/memory.hpp"
#include "run/gpu/launch.hpp"
#include "run/gpu/queue.hpp"
#include "solve/gpu/on_chip.hpp"
#include "solve/gpu_solver/gpu_library.hpp"

namespace hostless::gpu {

struct FlaggedWord;
class SolverExchange;
class Stamps;
class StreamEndpoint;

/// Pointers of a bound solve, device memory.
struct Arguments {
  double* field[9] = {};                         ///< the owned ones, then the gathered one
  std::size_t rows_before = 0, padded_rows = 0;  ///< of each field: before its first row, and in all
  int columns = 1;                 ///< right-hand sides; of each a state, and of each field and b
  std::int64_t column_stride = 0;  ///< one so many doubles behind the last one's
  FieldsOfSides fields_of_sides;   ///< of the persistent kernel of several
  double const* rhs = nullptr;
  double const* preconditioner_data = nullptr;
  PreconditionerData preconditioner_data_kind = PreconditionerData::none;
  ChebyshevNumbers polynomial;
  RowsView rows;
  Layout layout;
  Control control;
  PeerView const* peers = nullptr;  ///< of several ranks; in device memory
  int ranks = 1, rounds = 1;
  int most_partials = 0;                                     ///< of any rank
  FusedUpdate fused_update = FusedUpdate::by_flagged_words;  ///< what all ranks can
  bool shares_device = false;                                ///< with other ranks
  Lending lending;                                           ///< of memory that other ranks store to
  FlaggedWord* flagged_words = nullptr;
  std::uint32_t* epoch = nullptr;
  State* state = nullptr;
  PhaseMemory phases;                  ///< of the runs that go phase by phase
  Product const* product = nullptr;    ///< of formats that are multiplied apart
  StreamEndpoint* endpoint = nullptr;  ///< where ranks do not wait inside kernels; and what goes by it
  SolverExchange* exchange = nullptr;
  TileOrder tile_order;            ///< with a stream endpoint
  Stamps const* stamps = nullptr;  ///< of runs that go phase by phase, where they are traced
  Communication communication;     ///< of the text that is nothing else
  std::uint64_t* clock = nullptr;  ///< its steps' cycles; device memory
};

inline Ranks ranks_of(Arguments const& a) { return ranks_of(a.ranks, static_cast<std::size_t>(a.rounds)); }

/// What a persistent kernel leaves of this device's shared memory to a block, in bytes.
inline std::int64_t shared_bytes_beside(void const* kernel, int device) {
  HOSTLESS_GPU(FuncAttributes) attributes{};
  check(HOSTLESS_GPU(FuncGetAttributes)(&attributes, kernel), "loading a kernel");
  int most = 0;
  check(HOSTLESS_GPU(DeviceGetAttribute)(&most, HOSTLESS_MOST_SHARED_MEMORY, device),
        "asking for shared memory");
  return most - static_cast<std::int64_t>(attributes.sharedSizeBytes);
}
/// All blocks of a persistent kernel at once, with what its layout keeps in their shared memory.
inline void launch_blocks(void const* kernel, Arguments const& a, void** parameters,
                          HOSTLESS_GPU(Stream_t) stream) {
  std::size_t const shared = static_cast<std::size_t>(a.layout.shared_values) * sizeof(double);
  check(HOSTLESS_GPU(FuncSetAttribute)(kernel, HOSTLESS_GPU(FuncAttributeMaxDynamicSharedMemorySize),
                                       static_cast<int>(shared)),
        "asking for shared memory");
  dim3 const blocks(static_cast<unsigned>(a.layout.blocks)), threads(block_threads);
  // Ranks that share a GPU have a share of its multiprocessors each: the vendor checks one kernel at a time.
  check(a.shares_device ? HOSTLESS_GPU(LaunchKernel)(kernel, blocks, threads, parameters, shared, stream)
                        : HOSTLESS_GPU(LaunchCooperativeKernel)(kernel, blocks, threads, parameters,
                                                                static_cast<unsigned>(shared), stream),
        "launching a persistent kernel");
}

struct Instance {
  int fields;          ///< with the gathered one
  int batch;           ///< block rows of an accumulator in flight
  bool spans_ranks;    ///< it has a persistent kernel for several ranks
  bool takes_columns;  ///< it has one for several right-hand sides, up to wide_columns
  bool fuses;          ///< its text has values formed where they are read
  bool begins;         ///< its text multiplies what a sum's phase has begun
  /// Bytes of shared memory that a block may use for fields on chip, 0 when the kernel does not fit at all.
  std::int64_t (*shared_bytes)(int device, Ranks ranks);
  std::int64_t (*shared_bytes_of_columns)(int device,
                                          int columns);  ///< the same of that for several right-hand sides
  void (*launch_persistent)(Arguments const& arguments, HOSTLESS_GPU(Stream_t) stream);
  /// Executes the text once, phase by phase; null: it is a persistent kernel and nothing else.
  void (*run_phases)(Arguments const& arguments, Queue& queue);
};

/// Of a text of the list.
Instance const& find_instance(TextKind text, int block);
/// Of the text that only communicates, for every block size; fuses: as cg does, else as pipelined-cg.
Instance const& communication_instance(int block, bool fuses);

/// Of one descriptor, variant and block size (1, 2, 3, 4, 6): an object file a block size and a variant or
/// two, so that they compile side by side.
template <class Descriptor, Variant variant, int B>
Instance const& instance_of();

}  // namespace hostless::gpu
