#pragma once
// What a GPU library (one for CUDA, one for HIP, loaded at run time) offers to the solver. The same compiler
// builds both sides; the version of transport/stream/gpu_files.hpp changes with every change of
// this file.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exchange/message_rounds.hpp"
#include "exchange/peer_copies.hpp"
#include "hostless/operate/gpu_array.hpp"
#include "hostless/operate/tiling.hpp"
#include "hostless/run/run_options.hpp"
#include "hostless/run/state.hpp"
#include "operate/device_rows.hpp"
#include "operate/gpu/mirror_facts.hpp"
#include "run/gpu/communication.hpp"
#include "run/gpu/launch.hpp"
#include "run/gpu/rank_shapes.hpp"
#include "solve/methods/descriptor.hpp"
#include "transport/memory/path_facts.hpp"
#include "transport/stream/stream_setup.hpp"

namespace hostless {
class PatternScan;
}

namespace hostless::gpu {

struct DeviceFacts {
  std::string name;
  std::int64_t memory_bytes = 0, free_bytes = 0, l2_bytes = 0, shared_bytes_a_block = 0;
  int multiprocessors = 0;
};

/// A method of the list. Variant::rounded: the matrix in fp32 is made there from the one in fp64.
struct TextKind {
  Method method = Method::cg;
  Variant variant = Variant::plain;
  bool communicates = false;  ///< barriers and halos alone instead, in the run `persistent`
  bool operator==(TextKind const&) const = default;
};
enum class PreconditionerData : std::uint8_t { none, jacobi, block_jacobi };

/// Bytes that this library's arrays have been copied from and to since it was loaded, by all threads.
struct Copied {
  std::int64_t to_gpu = 0, to_host = 0, between_gpus = 0;
};

struct Problem {
  int device = 0;
  TextKind text;
  RunKind run = RunKind::persistent;
  PreconditionerData preconditioner_data = PreconditionerData::none;  ///< with a polynomial: of that
  bool free_order = false;  ///< of sums: it may depend on the run (`--reduction fast`)
  ChebyshevNumbers polynomial;
  /// With a text that only communicates, whose preconditioner data are the numbers of the rows: the state's
  /// limit are its steps, and it ends with `iteration_limit`, or with `breakdown` where the sum state.rr
  /// should have been State::at(ScalarIndex::measured).
  Communication communication;
  DeviceRows const* rows = nullptr;
  std::int64_t owned = 0;
  /// The caller's row of each own one; empty: they follow each other from first_row on.
  std::vector<std::int64_t> caller_row;
  std::int64_t first_row = 0;
  int rank = 0, ranks = 1;
  int sharers = 1;         ///< ranks that work on this device, which shares itself out evenly
  bool processes = false;  ///< ranks are processes of one machine, not threads of this one
  GpuTransport transport =
      facts_of(GpuTransport::automatic).transport;  ///< as it has come to: anything but automatic
  PeerCopies const* copies = nullptr;  ///< with several ranks: what this one stores into others' memory
  /// The same as messages, for what carries on a stream; and those in bytes.
  std::vector<MessageRound> const* rounds = nullptr;
  std::vector<StreamRound> const* stream_rounds = nullptr;
  HostMessaging const* host = nullptr;  ///< where the host carries
  /// As those of StreamSetup.
  std::vector<std::int32_t> node;
  std::vector<std::uint8_t> speaks;
  std::vector<std::int32_t> border;            ///< slices that read what other ranks send, rising
  std::shared_ptr<SymmetricMemory> symmetric;  ///< where a library puts into it
  /// What an iteration moves, by the method's model: of the matrix, of vectors. For `automatic`.
  std::int64_t matrix_bytes = 0, vector_bytes = 0;
  int check_interval = 1;                         ///< above 1: iterations between two looks of the stream run
  HostWaits host_waits = HostWaits::when_needed;  ///< of the stream run
  double deadline_s = 10;                         ///< of one wait inside a kernel
  double first_s = 60;              ///< of the first wait of a launch: ranks do not start together
  double longest_launch_s = 0.9;    ///< a persistent kernel then pauses by itself
  std::int64_t history_size = 0;    ///< of each column
  int columns = 1;                  ///< right-hand sides that are solved for at once, by one rank
  std::int32_t trace_barriers = 0;  ///< of every block are recorded; above 0 stamps of other runs are, too
};

/// Whether something else than kernels carries between ranks. Persistent kernels also store into symmetric
/// memory.
inline bool is_by_stream(Problem const& p) {
  GpuTransportFacts const& facts = facts_of(p.transport);
  bool const by_kernels = facts.symmetric_memory && p.run == RunKind::persistent;
  return facts.actor != GpuTransportFacts::Actor::kernels && !by_kernels;
}

/// What a stream endpoint of this problem is made from.
inline StreamSetup stream_setup(Problem const& p) {
  StreamSetup setup;
  setup.device = p.device;
  setup.rank = p.rank;
  setup.ranks = p.ranks;
  setup.sharers = p.sharers;
  setup.processes = p.processes;
  setup.purpose = static_cast<int>(p.run);
  setup.first_s = p.first_s;
  setup.deadline_s = p.deadline_s;
  if (p.stream_rounds != nullptr) setup.rounds = *p.stream_rounds;
  setup.host = p.host;
  setup.node = p.node;
  setup.speaks = p.speaks;
  setup.symmetric = p.symmetric;
  return setup;
}

/// What the last run recorded.
struct Trace {
  std::vector<TraceEntry> entries;  ///< of a persistent kernel: [blocks][barriers], not reached: end == 0
  int blocks = 0;
  double hertz = 0;           ///< cycles a second
  std::vector<Stamp> stamps;  ///< of a run phase by phase, in the order in which they were written
};

/// How long the device worked, and what it held.
struct Cost {
  double device_s = 0;
  double clock_s = 0;  ///< of a text that communicates: all its steps, by the kernel's own clock
  std::int64_t launches = 0, pauses = 0;
};

/// A method bound to a matrix on one GPU: everything is allocated once. Fields are numbered as the method's
/// data lists them: the owned ones, then the gathered one; b is apart.
class BoundSolve {
 public:
  virtual ~BoundSolve() = default;
  /// With several ranks, or where something else than peer memory carries, after bind: every rank's shape is
  /// gathered, each makes its run, every rank's memory is gathered, each connects to it. All ranks then meet
  /// before each run.
  virtual PeerShape peer_shape() const = 0;
  virtual void make_run(std::vector<PeerShape> const& all) = 0;
  virtual PeerMemory peer_memory() const = 0;
  /// Where the host carries: what goes out of every round and what comes in, packed as its MessageRound has
  /// it; the host's messages are bound to them before `connect`. Else empty.
  virtual std::vector<StreamBuffers> message_buffers() const = 0;
  /// Errors  environment  a GPU cannot reach the memory of another; the library that carries fails
  virtual void connect(std::vector<PeerMemory> const& all) = 0;
  /// After a rank was lost, on all ranks, which wait before and after it; where something else than peer
  /// memory carries, every rank's memory is then gathered and connected to again. last_epoch: the same on all
  /// ranks, below 2^31; the next barrier has the epoch after it (tests begin near their end).
  virtual void forget_barriers(std::uint32_t last_epoch) = 0;
  virtual void put_rows(DeviceRows const& rows) = 0;
  /// Whose b, fields and history are put and taken from here on; at first 0.
  virtual void use_column(int column) = 0;
  /// [ghosts below | owned | ghosts above], as many values a row as the preconditioner data have.
  virtual void put_preconditioner_data(std::vector<double> const& preconditioner_data) = 0;
  virtual void put_rhs(double const* b) = 0;
  virtual void put_field(int index, double const* values) = 0;
  virtual void get_field(int index, double* values) const = 0;
  /// The same between the arrays of a caller on any GPU of this process and this one's memory, without the
  /// host: entry k of an array is the caller's row k. They return when the array may be changed or read.
  /// Errors  environment  GPUs that cannot copy to each other
  virtual void take_rhs(GpuArray const& b) = 0;
  virtual void take_field(int index, GpuArray const& values) = 0;
  virtual void give_field(int index, GpuArray const& to) const = 0;
  virtual void clear_field(int index) = 0;
  /// The largest |b| of own rows, infinity where one is NaN.
  virtual double largest_rhs() const = 0;
  virtual double largest_field(int index) const = 0;  ///< the same of a field
  virtual void put_history(StepRecord const* steps, std::int64_t count) = 0;
  virtual void get_history(StepRecord* steps, std::int64_t count) const = 0;
  /// Executes the text until it has ended or paused (state.status). `stop` is asked all the time: true ends
  /// the solve with its true residual; `progress` sees an iteration and its rr a few times a second. state:
  /// the first of Problem::columns that follow each other; progress is that of the first that goes on.
  virtual void run(State& state, std::function<bool()> const& stop,
                   std::function<void(std::int64_t iteration, double rr, int column)> const& progress) = 0;
  /// y = A x, [owned], between runs: fields are overwritten. x: at the first owned entry of [ghosts below |
  /// owned | ghosts above].
  virtual void multiply(double const* x, double* y) = 0;
  /// The diagonal blocks of the rows that were put last, [block_rows * block * block], row-major.
  virtual void diagonal_blocks(double* to) = 0;
  virtual Cost cost() const = 0;
  virtual std::int64_t device_bytes() const = 0;
  /// Free memory of the device before this was bound, less the least seen since.
  virtual std::int64_t peak_bytes() const = 0;
  /// What Problem::run has come to, and why that.
  virtual RunKind run_kind() const = 0;
  virtual std::string why_run() const = 0;
  /// Executes the text that way from now on, between runs; cost() counts on.
  /// Errors  usage        that run does not fit; the one before stays
  ///         environment  not enough memory for it; the one before stays
  virtual void use_run(RunKind kind, std::string const& why) = 0;
  /// One line: blocks, threads, what lives in shared memory, how many launches.
  virtual std::string describe() const = 0;
  /// With Problem::free_order: what became of it.
  virtual std::string describe_sums() const = 0;
  virtual Trace trace() const = 0;
  /// Whether runs from now on record it; at first they do.
  virtual void record(bool wanted) = 0;
  /// What carries between ranks, in a few words.
  virtual std::string describe_transport() const = 0;
  /// For tests: `block` of a persistent kernel stays silent from that barrier on; where kernels of phases
  /// wait, the rank does; with a transport other than peer the host of this rank does, from its look at the
  /// state of that number on.
  virtual void silence(Silence silence) = 0;
};

class Library {
 public:
  virtual ~Library() = default;
  virtual std::string describe() const = 0;
  virtual int devices() const = 0;
  virtual DeviceFacts facts(int device) const = 0;
  /// Between every two different GPUs, both ways; none with fewer than two. Takes about a tenth of a second
  /// each, a silent one some seconds, and 64 MiB of every GPU.
  virtual std::vector<PathFacts> prove_paths() const = 0;
  /// From one process. Errors  environment  not enough memory
  virtual PingPongFacts ping_pong(PingPongRequest const& request) const = 0;
  /// Those that are libraries of their own.
  virtual std::vector<TransportFacts> transports() const = 0;
  /// With symmetric memory, before bind: every rank's offer is gathered, then all take the memory together.
  /// Errors  environment  the library is absent, or was given up
  virtual SymmetricOffer symmetric_offer(Problem const& problem) const = 0;
  /// Blocks at most Problem::first_s for each of two calls of the library.
  /// Errors  usage        the library has met other ranks in this process
  ///         environment  with the library's words; not in time; no memory
  virtual std::shared_ptr<SymmetricMemory> symmetric_memory(Problem const& problem,
                                                            std::vector<SymmetricOffer> const& all) const = 0;
  virtual std::unique_ptr<BoundSolve> bind(Problem const& problem) const = 0;
  /// The GPU in whose memory an address lies; -1: in none.
  virtual int device_of(void const* address) const = 0;
  /// What has been queued on a stream of that GPU up to now, as seen by the calling thread (a stream of the
  /// vendor's, 0 and 1 its default one, 2 that of this thread).
  virtual std::shared_ptr<GpuMoment const> moment(int device, std::uintptr_t stream) const = 0;
  /// Free memory of a GPU. The calling thread's GPU stays in use.
  virtual std::int64_t free_bytes(int device) const = 0;
  /// Bytes of the host in the memory of a GPU, for as long as somebody holds them; brought by up to `threads`
  /// threads.
  /// Errors  environment  not enough memory there, or for pinned memory here
  virtual std::shared_ptr<void> copy_of_host(void const* from, std::size_t bytes, int device,
                                             int threads) const = 0;
  /// All arrays on one GPU. Takes one pass over the entries there, and a search in a row for each.
  virtual MirrorFacts compare_with_mirror(GpuRows const& rows) const = 0;
  /// Set-up of such matrices.
  virtual PatternScan const& pattern_scan() const = 0;
  virtual Copied copied() const = 0;
};

using Open = Library*();
constexpr char const* open_name = "hostless_gpu_open";

}  // namespace hostless::gpu
