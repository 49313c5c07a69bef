// A library in the place of libhostless_cuda.so: GPUs whose memory is pages that this process cannot read
// but inside the library's calls, and streams whose work is done when somebody waits for it. So a test sees
// that nothing of the package reads an array where it lies, or before it is filled. Solves run the text of cg
// on the processor, in the layout and by the products that a GPU would use.
#include <sys/mman.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>

#include "host_pattern_scan.hpp"
#include "hostless/base/error.hpp"
#include "hostless/plan/routes.hpp"
#include "hostless/transport/transport.hpp"
#include "operate/gpu/diagonal.impl.hpp"
#include "operate/gpu/rows.impl.hpp"
#include "run/engine.hpp"
#include "solve/gpu_solver/gpu_library.hpp"
#include "solve/methods/method_facts.hpp"
#include "transport/stream/gpu_files.hpp"

namespace hostless::gpu {
namespace {

/// All of it, locked away between calls.
class Memory {
 public:
  void* take(std::size_t bytes) {
    std::lock_guard const lock(mutex_);
    std::size_t const whole = (bytes + 4095) / 4096 * 4096 + 4096;
    void* const at = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::runtime_error("no memory");
    blocks_[static_cast<std::byte*>(at)] = whole;
    return at;
  }
  void give_back(void* at) {
    std::lock_guard const lock(mutex_);
    auto const found = blocks_.find(static_cast<std::byte*>(at));
    munmap(at, found->second);
    blocks_.erase(found);
  }
  bool holds(void const* address) {
    std::lock_guard const lock(mutex_);
    for (auto const& [at, bytes] : blocks_)
      if (address >= at && address < at + bytes) return true;
    return false;
  }
  template <class Use>
  void open(Use const& use) {
    std::lock_guard const lock(mutex_);
    protect(PROT_READ | PROT_WRITE);
    use();
    protect(PROT_NONE);
  }

 private:
  void protect(int how) {
    for (auto const& [at, bytes] : blocks_) mprotect(at, bytes, how);
  }
  std::mutex mutex_;
  std::map<std::byte*, std::size_t> blocks_;
};
Memory memory;
Copied copied_bytes;
std::int64_t room = 0;  ///< for copies of what the host has: at first there is none
std::map<std::uintptr_t, std::deque<std::function<void()>>> streams;  // what is queued there

/// The work that had been queued on a stream by then.
class Moment final : public GpuMoment {
 public:
  explicit Moment(std::uintptr_t stream) : stream_(stream), count_(streams[stream].size()) {}
  void wait() const {
    auto& queue = streams[stream_];
    for (; count_ > 0 && !queue.empty(); --count_) {
      queue.front()();
      queue.pop_front();
    }
  }

 private:
  std::uintptr_t stream_;
  mutable std::size_t count_;
};
void wait_for(GpuArray const& array) {
  if (array.after) static_cast<Moment const&>(*array.after).wait();
}

std::atomic<std::int64_t> looks{-1};  ///< for as many there is memory to work with; below 0: for all

class FakePatternScan final : public test::HostPatternScan {
  void look(GpuRows const& rows, std::function<void()> const& use) const override {
    if (looks >= 0 && looks-- == 0) {
      looks = 0;
      throw Error(ErrorCode::environment, "the GPU of the tests has no memory to work with.");
    }
    memory.open([&] {
      for (GpuArray const* array : {&rows.offsets, &rows.columns, &rows.values}) wait_for(*array);
      use();
    });
  }
};
FakePatternScan const pattern_scan;

template <int B>
void multiply_rows(RowsView const& rows, double const* x, double* y) {
  Tiling const& t = rows.tiling;
  for (int slice = 0; slice < t.slices; ++slice) {
    for (std::int32_t accumulator = 0; accumulator < Tiling::accumulators; ++accumulator) {
      Batch<1> batch{slice, 0, accumulator, static_cast<std::int32_t>(t.first(slice)),
                     static_cast<std::int32_t>(t.first(slice + 1))};
      for (; batch.first + batch.slot * Tiling::accumulators < batch.last; ++batch.slot) {
        double sum[1][B];
        multiply<B, 1>(rows, batch, x, sum);
        if (batch.valid(0)) std::copy_n(sum[0], B, y + static_cast<std::int64_t>(batch.block_row(0)) * B);
      }
    }
  }
}

class Solve final : public BoundSolve {
 public:
  explicit Solve(Problem const& problem)
      : problem_(problem), column_(static_cast<std::size_t>(problem.columns)) {
    if (problem.text != TextKind{})
      throw Error(ErrorCode::environment, "the GPU of the tests solves with cg.");
    if (problem.copies != nullptr) copies_ = *problem.copies;
    staging_.resize(static_cast<std::size_t>(copies_.staging));
    members_ = {this};
    auto const owned = static_cast<std::size_t>(problem.owned);
    for (Column& one : column_) {
      for (auto& field : one.field) field.resize(owned);
      one.rhs.resize(owned);
      one.history.resize(static_cast<std::size_t>(problem.history_size));
    }
    preconditioner_data_.resize(owned * 6);  // zeros until one is brought
    put_rows(*problem.rows);
  }
  PeerShape peer_shape() const override { return {}; }
  void make_run(std::vector<PeerShape> const&) override {}
  PeerMemory peer_memory() const override {
    PeerMemory lent;
    lent.sent[0].address = const_cast<Solve*>(this);
    return lent;
  }
  std::vector<StreamBuffers> message_buffers() const override { return {}; }
  void connect(std::vector<PeerMemory> const& all) override {
    members_.clear();
    for (PeerMemory const& one : all) members_.push_back(static_cast<Solve*>(one.sent[0].address));
  }
  void forget_barriers(std::uint32_t) override {}
  void put_rows(DeviceRows const& rows) override {
    rows_ = rows;
    if (rows.share) pattern_scan.lay_out(rows_);
    if (rows.value_indices) {
      memory.open([&] {
        wait_for(rows.from);
        for (double& value_index : rows_.value) value_index = value_of(value_index, numbers_of(rows.from));
      });
    }
    before_ = static_cast<std::size_t>(rows_.rows_before());
    for (Column& one : column_)
      one.gathered.assign(before_ + static_cast<std::size_t>(problem_.owned + rows_.rows_after()), 0.0);
  }
  void use_column(int column) override { used_ = static_cast<std::size_t>(column); }
  void put_preconditioner_data(std::vector<double> const& preconditioner_data) override {
    preconditioner_data_ = preconditioner_data;
  }
  void put_rhs(double const* b) override { copy_in(b, now().rhs.data()); }
  void put_field(int index, double const* values) override { copy_in(values, at(index)); }
  void get_field(int index, double* values) const override {
    copied_bytes.to_host += problem_.owned * 8;
    std::copy_n(const_cast<Solve*>(this)->at(index), problem_.owned, values);
  }
  void take_rhs(GpuArray const& b) override { take(b, now().rhs.data()); }
  void take_field(int index, GpuArray const& values) override { take(values, at(index)); }
  void give_field(int index, GpuArray const& to) const override {
    double const* const from = const_cast<Solve*>(this)->at(index);
    memory.open([&] {
      wait_for(to);
      for (std::int64_t k = 0; k < problem_.owned; ++k) numbers_of(to).put(caller_row(k), from[k]);
    });
  }
  void clear_field(int index) override { std::fill_n(at(index), problem_.owned, 0.0); }
  double largest_rhs() const override { return largest(column_[used_].rhs.data()); }
  double largest_field(int index) const override { return largest(const_cast<Solve*>(this)->at(index)); }
  void put_history(StepRecord const* steps, std::int64_t count) override {
    std::copy_n(steps, count, now().history.data());
  }
  void get_history(StepRecord* steps, std::int64_t count) const override {
    std::copy_n(column_[used_].history.data(), count, steps);
  }
  // One column after the other.
  void run(State& state, std::function<bool()> const& stop,
           std::function<void(std::int64_t, double, int)> const&) override {
    for (std::size_t c = 0; c < column_.size(); ++c) {
      used_ = c;
      if (column_.size() == 1 || (&state)[c].status == Status::running) run_column((&state)[c], stop);
    }
    used_ = 0;
  }
  void multiply(double const* x, double* y) override {
    std::copy(x - rows_.ghosts_below, x + problem_.owned + rows_.ghosts_above,
              at(gathered_field) - rows_.ghosts_below);
    product(at(gathered_field), at(0));
    std::copy_n(at(0), problem_.owned, y);
  }
  void diagonal_blocks(double* to) override {
    RowsView const view = rows_.view();
    int const b = rows_.tiling.block;
    with_block(b, [&](auto size) {
      for (std::int64_t block_row = 0; block_row < rows_.tiling.block_rows; ++block_row)
        read_diagonal_block<size()>(view, block_row, to + block_row * b * b);
    });
  }
  Cost cost() const override { return {}; }
  std::int64_t device_bytes() const override { return 0; }
  std::int64_t peak_bytes() const override { return 0; }
  RunKind run_kind() const override { return RunKind::stream; }
  std::string why_run() const override { return "the GPU of the tests"; }
  void use_run(RunKind, std::string const&) override {}
  std::string describe() const override { return "the GPU of the tests"; }
  std::string describe_sums() const override { return {}; }
  Trace trace() const override { return {}; }
  void record(bool) override {}
  std::string describe_transport() const override { return {}; }
  void silence(Silence) override {}

 private:
  static constexpr int gathered_field = 3;
  struct Column {
    std::vector<double> field[gathered_field], gathered, rhs;
    std::vector<StepRecord> history;
  };
  double largest(double const* values) const {
    double most = 0;
    for (std::int64_t k = 0; k < problem_.owned; ++k)
      most = values[k] == values[k] ? std::max(most, std::abs(values[k]))
                                    : std::numeric_limits<double>::infinity();
    return most;
  }
  Column& now() { return column_[used_]; }
  double* at(int index) {
    return index == gathered_field ? now().gathered.data() + before_ : now().field[index].data();
  }
  // The last rank to come runs all of them, as ranks of a transport of their own.
  void run_column(State& state, std::function<bool()> const& stop) {
    StepRecord* const history = state.history;
    state.history = now().history.data();
    state_ = &state;
    stop_ = &stop;
    Solve& first = *members_[0];
    std::unique_lock lock(first.mutex_);
    std::int64_t const turn = first.turn_;
    if (++first.arrived_ < problem_.ranks) {
      first.done_.wait(lock, [&] { return first.turn_ != turn; });
    } else {
      run_with_threads_transport(problem_.ranks, [&](Transport& transport) {
        members_[static_cast<std::size_t>(transport.group().rank())]->run_here(transport);
      });
      first.arrived_ = 0;
      ++first.turn_;
      first.done_.notify_all();
    }
    state.history = history;
  }
  void copy_in(double const* from, double* to) const {
    copied_bytes.to_gpu += problem_.owned * 8;
    std::copy_n(from, problem_.owned, to);
  }
  void take(GpuArray const& from, double* to) const {
    memory.open([&] {
      wait_for(from);
      for (std::int64_t k = 0; k < problem_.owned; ++k) to[k] = numbers_of(from).at(caller_row(k));
    });
  }
  std::int64_t caller_row(std::int64_t k) const {
    return problem_.caller_row.empty() ? problem_.first_row + k
                                       : problem_.caller_row[static_cast<std::size_t>(k)];
  }
  void run_here(Transport& transport) {
    ExchangePlan const plan = plan_of_sums(transport.group());
    Exchange exchange(transport, plan, at(gathered_field), Reduction::ordered, {});
    RunOptions options;
    options.kind = RunKind::host;
    options.stop_requested = *stop_;
    SweepPlan const sweep = make_sweep(plan, rows_.tiling);
    host::Engine engine(*state_, sweep, {nullptr, nullptr}, exchange, options, {});
    engine.function = [&](double const* x, double* y) {
      fill_ghosts(transport.group());
      product(x, y);
    };
    engine.product.resize(now().rhs.size());
    engine.multiplier.ready = engine.product.data();
    using Kind = AnyPreconditioner::Kind;
    bool const block = problem_.preconditioner_data == PreconditionerData::block_jacobi;
    AnyPreconditioner m;
    if (problem_.preconditioner_data != PreconditionerData::none)
      m = {block ? Kind::block_jacobi : Kind::jacobi, block ? rows_.tiling.block : 1,
           preconditioner_data_.data() + rows_.ghosts_below * (block ? rows_.tiling.block : 1)};
    double* const field[] = {at(0), at(1), at(2), at(gathered_field)};
    run_method(engine, RunKind::host, Method::cg, Variant::plain, {m, now().rhs.data(), field, {}, 4});
  }
  // As kernels do it: stores into the others' memory.
  void fill_ghosts(Group& group) {
    group.barrier();  // all have read those of the last product
    for (auto const& round : copies_.rounds) {
      for (PeerCopy const& copy : round) {
        Solve& to = *members_[static_cast<std::size_t>(copy.target)];
        double const value =
            copy.from_staging ? staging_[static_cast<std::size_t>(copy.from)] : at(gathered_field)[copy.from];
        (copy.to_staging ? to.staging_[static_cast<std::size_t>(copy.to)] : to.at(gathered_field)[copy.to]) =
            value;
      }
      group.barrier();
    }
  }
  // Sums alone: ghosts come otherwise.
  ExchangePlan plan_of_sums(Group& group) const {
    std::vector<Pattern> patterns;
    NodeMap nodes;
    for (std::int64_t owned : group.all_gather(problem_.owned)) {
      patterns.emplace_back();
      patterns.back().owned = owned;
      patterns.back().first = {0};
      nodes.node.push_back(0);
      nodes.socket.push_back(0);
      nodes.device.push_back(-1);
    }
    return make_plan(Route::direct, patterns, nodes, group.rank());
  }
  void product(double const* x, double* y) const {
    RowsView const view = rows_.view();
    with_block(rows_.tiling.block, [&](auto size) { multiply_rows<size()>(view, x, y); });
  }

  Problem problem_;
  PeerCopies copies_;
  std::vector<Solve*> members_;  // of all ranks
  std::vector<double> staging_;
  State* state_ = nullptr;
  std::function<bool()> const* stop_ = nullptr;
  std::mutex mutex_;  // and what follows: of the first rank
  std::condition_variable done_;
  int arrived_ = 0;
  std::int64_t turn_ = 0;
  DeviceRows rows_;
  std::size_t before_ = 0;
  std::vector<double> preconditioner_data_;
  std::vector<Column> column_;
  std::size_t used_ = 0;
};

class FakeLibrary final : public Library {
 public:
  std::string describe() const override { return "the GPU of the tests"; }
  int devices() const override { return 3; }
  DeviceFacts facts(int) const override {
    DeviceFacts facts;
    facts.name = "fake";
    return facts;
  }
  std::vector<PathFacts> prove_paths() const override { return {}; }
  PingPongFacts ping_pong(PingPongRequest const&) const override { return {}; }
  std::vector<TransportFacts> transports() const override { return {}; }
  SymmetricOffer symmetric_offer(Problem const&) const override { return {}; }
  std::shared_ptr<SymmetricMemory> symmetric_memory(Problem const&,
                                                    std::vector<SymmetricOffer> const&) const override {
    return nullptr;
  }
  std::unique_ptr<BoundSolve> bind(Problem const& problem) const override {
    return std::make_unique<Solve>(problem);
  }
  int device_of(void const* address) const override { return memory.holds(address) ? 0 : -1; }
  std::shared_ptr<GpuMoment const> moment(int, std::uintptr_t stream) const override {
    return std::make_shared<Moment>(stream);
  }
  PatternScan const& pattern_scan() const override { return gpu::pattern_scan; }
  std::int64_t free_bytes(int) const override { return room; }
  std::shared_ptr<void> copy_of_host(void const* from, std::size_t bytes, int device, int) const override {
    auto const size = static_cast<std::int64_t>(bytes);
    if (device != 0 || size > room)
      throw Error(ErrorCode::environment, "the GPU of the tests has no memory left.");
    room -= size;
    std::shared_ptr<void> const held(memory.take(bytes), [size](void* at) {
      memory.give_back(at);
      room += size;
    });
    memory.open([&] { std::memcpy(held.get(), from, bytes); });
    copied_bytes.to_gpu += static_cast<std::int64_t>(bytes);
    return held;
  }
  MirrorFacts compare_with_mirror(GpuRows const& rows) const override {
    MirrorFacts facts;
    memory.open([&] {
      for (GpuArray const* array : {&rows.offsets, &rows.columns, &rows.values}) wait_for(*array);
      RowsOfCaller const a = numbers_of(rows);
      for (std::int64_t row = 0; row < a.rows; ++row) {
        for (std::int64_t k = a.offset.whole(row); k < a.offset.whole(row + 1); ++k) {
          bool differs = false;
          double const difference = mirror_difference(a, row, k, differs);
          facts.same_bits = facts.same_bits && !differs;
          if (difference <= facts.difference) continue;
          std::int64_t const column = a.column.whole(k);
          facts = {false, difference, row, column, a.value.at(k), entry_at(a, column, row)};
        }
      }
    });
    return facts;
  }
  Copied copied() const override { return copied_bytes; }
};

}  // namespace
}  // namespace hostless::gpu

#define HOSTLESS_ENTRY extern "C" __attribute__((visibility("default")))

HOSTLESS_ENTRY int hostless_gpu_interface_version() { return hostless::gpu::interface_version; }
HOSTLESS_ENTRY hostless::gpu::Library* hostless_gpu_open() {
  static hostless::gpu::FakeLibrary library;
  return &library;
}
HOSTLESS_ENTRY std::int64_t fake_gpu_room() { return hostless::gpu::room; }
HOSTLESS_ENTRY void fake_gpu_make_room(std::int64_t bytes) { hostless::gpu::room = bytes; }
HOSTLESS_ENTRY void fake_gpu_let_look(std::int64_t times) { hostless::gpu::looks = times; }
HOSTLESS_ENTRY void* fake_gpu_take(std::size_t bytes) { return hostless::gpu::memory.take(bytes); }
HOSTLESS_ENTRY void fake_gpu_give_back(void* at) { hostless::gpu::memory.give_back(at); }
// What the exchanges of this library ask (tests/unit/exchange/fake_gpu).
HOSTLESS_ENTRY int fake_gpu_of(void const* address) { return hostless::gpu::memory.holds(address) ? 0 : -1; }
HOSTLESS_ENTRY void fake_gpu_open(void (*use)(void*), void* user) {
  hostless::gpu::memory.open([&] { use(user); });
}
HOSTLESS_ENTRY void fake_gpu_finish(void* stream) {
  hostless::gpu::memory.open([&] { hostless::gpu::Moment(reinterpret_cast<std::uintptr_t>(stream)).wait(); });
}
HOSTLESS_ENTRY void fake_gpu_put(void* to, void const* from, std::size_t bytes) {
  hostless::gpu::memory.open([&] { std::memcpy(to, from, bytes); });
}
HOSTLESS_ENTRY void fake_gpu_get(void* to, void const* from, std::size_t bytes) {
  hostless::gpu::memory.open([&] { std::memcpy(to, from, bytes); });
}
/// Queued: done when a moment of the stream after it is waited for.
HOSTLESS_ENTRY void fake_gpu_put_later(std::uintptr_t stream, void* to, void const* from, std::size_t bytes) {
  auto const* const first = static_cast<std::byte const*>(from);
  std::vector<std::byte> const held(first, first + bytes);
  hostless::gpu::streams[stream].push_back([to, held] { std::memcpy(to, held.data(), held.size()); });
}
