// Owns the device memory and streams of a bound solve, and hands its text to a run.
#include "solve/gpu/bound_solve.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "device/clock.hpp"
#include "exchange/gpu/solver_exchange.hpp"
#include "operate/gpu/caller_arrays.hpp"
#include "operate/gpu/device_rows_copy.hpp"
#include "operate/gpu/matrix_work.hpp"
#include "operate/gpu/numbers.gpu.hpp"
#include "run/gpu/peer_window.hpp"
#include "run/gpu/products.hpp"
#include "solve/gpu/device_history.hpp"
#include "solve/gpu/instance.hpp"
#include "solve/gpu/lay_out.hpp"
#include "solve/gpu/padded.hpp"
#include "solve/gpu/recorder.hpp"
#include "solve/gpu/run_persistent.hpp"
#include "solve/gpu/runner.hpp"
#include "transport/stream/signals.hpp"
#include "transport/stream/stream_transports.hpp"

namespace hostless::gpu {
namespace {

constexpr double s_between_looks = 2e-4;

Instance const& instance_for(Problem const& problem) {
  int const block = problem.rows->tiling.block;
  if (problem.text.communicates) return communication_instance(block, problem.communication.sums > 1);
  return find_instance(problem.text, block);
}

class Solve final : public BoundSolve {
 public:
  explicit Solve(Problem const& p)
      : problem_(p),
        instance_(instance_for(p)),
        rows_(p.text.variant == Variant::rounded, p.device),
        vectors_(p.device, p.owned, p.first_row, p.caller_row) {
    use();
    memory_.look();
    if (instance_.run_phases == nullptr && p.run != RunKind::persistent)
      throw Error(ErrorCode::usage,
                  "communication alone in a run of phases (it is one kernel). Use the run persistent.");
    HOSTLESS_DEVICE_PROPERTIES properties{};
    check(HOSTLESS_GPU(GetDeviceProperties)(&properties, p.device), "asking a GPU what it is");
    arguments_.layout =
        lay_out(p.rows->tiling, properties.multiProcessorCount / p.sharers, instance_.batch, p.free_order);
    arguments_.layout.ghosts_below = static_cast<std::int32_t>(p.rows->ghosts_below);
    arguments_.layout.ghosts_above = static_cast<std::int32_t>(p.rows->ghosts_above);
    arguments_.shares_device = p.sharers > 1;
    take_transport();
    std::size_t const before = arguments_.rows_before = Padded(p).before;
    std::size_t const padded = arguments_.padded_rows = Padded(p).rows;
    auto const columns = static_cast<std::size_t>(p.columns);
    arguments_.columns = p.columns;
    arguments_.column_stride = p.columns == 1 ? 0 : static_cast<std::int64_t>(padded);
    for (int k = 0; k < instance_.fields; ++k) {
      bool const is_sent = k == 1 || k == instance_.fields - 1;
      fields_.emplace_back(padded * columns, is_sent ? arguments_.lending : Lending{});
      fields_.back().clear();
      arguments_.field[k] = fields_.back().data() + before;
    }
    rhs_ = Array<double>(static_cast<std::size_t>(p.owned) + column_offset(p.columns - 1));
    arguments_.rhs = rhs_.data();
    history_ = DeviceHistory(p.history_size, p.columns);
    state_ = Array<State>(columns);
    arguments_.state = state_.data();
    arguments_.preconditioner_data_kind = p.preconditioner_data;
    arguments_.polynomial = p.polynomial;
    if (p.preconditioner_data != PreconditionerData::none) {
      int const width = p.preconditioner_data == PreconditionerData::block_jacobi ? p.rows->tiling.block : 1;
      preconditioner_before_ = before * static_cast<std::size_t>(width);
      preconditioner_data_ = Array<double>(padded * static_cast<std::size_t>(width));
      preconditioner_data_.clear();  // padded as fields are: neighbours are formed with it
      arguments_.preconditioner_data = preconditioner_data_.data() + preconditioner_before_;
      preconditioner_below_ = static_cast<std::size_t>(p.rows->ghosts_below * width);
    }
    double const hertz = hertz_ = clock_hertz(p.device);
    arguments_.control.deadline_cycles = cycles_of(p.deadline_s, hertz);
    arguments_.control.first_cycles =
        p.ranks == 1 ? arguments_.control.deadline_cycles : cycles_of(p.first_s, hertz);
    arguments_.control.pause_cycles = static_cast<std::uint64_t>(p.longest_launch_s * hertz);
    arguments_.control.look_cycles = static_cast<std::uint64_t>(s_between_looks * hertz);
    recorder_.prepare(p, arguments_, hertz);
    if (p.text.communicates) {
      clock_ = Array<std::uint64_t>(1);
      clock_.clear();
      arguments_.communication = p.communication;
      arguments_.clock = clock_.data();
    }
    put_rows(*p.rows);
    if (is_collective()) return;  // the others' shapes come first
    make_chosen_run();
  }

  PeerShape peer_shape() const override {
    use();
    Layout const& layout = arguments_.layout;
    PeerShape shape{layout.partials, layout.blocks, layout.tiles};
    if (is_by_stream()) {
      shape.can_record = endpoint_->is_recorded();
      return shape;
    }
    shape.fits = persistent_problem(problem_, layout, instance_).empty();
    RowsView const& rows = arguments_.rows;
    auto const can = [&](FusedUpdate fused_update) {
      return shape.fits &&
             find_on_chip({rows.format, rows.diagonals, rows.farthest, rows.csr.threads_per_row}, layout,
                          instance_, problem_.device, problem_.columns, ranks_of(arguments_), fused_update)
                     .fused_update == fused_update;
    };
    shape.by_memory = can(FusedUpdate::by_memory);
    shape.by_flagged_words = can(FusedUpdate::by_flagged_words);
    return shape;
  }
  void make_run(std::vector<PeerShape> const& all) override {
    use();
    if (is_by_stream())
      return make_stream_run(
          std::all_of(all.begin(), all.end(), [](auto const& rank) { return rank.can_record; }));
    bool fit = true, by_memory = true, by_flagged_words = true;
    for (PeerShape const& shape : all) {
      fit = fit && shape.fits;
      by_memory = by_memory && shape.by_memory;
      by_flagged_words = by_flagged_words && shape.by_flagged_words;
      arguments_.most_partials = std::max(arguments_.most_partials, shape.partials);
    }
    fit = fit && fits_a_barrier(arguments_.most_partials, problem_.ranks);
    arguments_.fused_update = by_flagged_words ? FusedUpdate::by_flagged_words
                              : by_memory      ? FusedUpdate::by_memory
                                               : FusedUpdate::no;
    window_->know(all);
    choice_ = {problem_.run, "asked for"};
    if (problem_.run == RunKind::automatic && problem_.check_interval > 1) {
      choice_ = {RunKind::stream, "only its host looks at the state, for which a check interval was asked"};
    } else if (problem_.run == RunKind::automatic) {
      choice_ = fit ? RunChoice{RunKind::persistent, "ranks meet inside its kernel without a launch"}
                    : RunChoice{RunKind::graph, "the persistent kernel does not fit on every rank"};
    } else if (problem_.run == RunKind::persistent && !fit) {
      std::string const own = persistent_problem(problem_, arguments_.layout, instance_);
      throw Error(ErrorCode::usage,
                  (own.empty() ? "the persistent kernel does not fit on every rank (too many slices for its "
                                 "meetings, or rows of another rank)"
                               : own) +
                      ". Use --run stream or graph, or fewer slices.");
    }
    check_request();
    runner_ = make_runner(choice_.kind, arguments_, instance_, problem_);
    memory_.look();
  }
  PeerMemory peer_memory() const override {
    int const gathered = instance_.fields - 1;
    PeerMemory memory;
    memory.device = problem_.device;
    if (is_by_stream()) memory.contact = endpoint_->contact_on(problem_.device);
    if (is_by_stream()) return memory;
    auto const field = [&](int index) {
      return lend(fields_[static_cast<std::size_t>(index)], arguments_.field[index], arguments_.lending);
    };
    memory.sent[0] = field(gathered);
    memory.sent[PeerView::halo_source] = field(1);  // r of the texts that show a field
    window_->lend(memory);
    runner_->lend(memory, arguments_);
    return memory;
  }
  std::vector<StreamBuffers> message_buffers() const override {
    return endpoint_ ? endpoint_->buffers() : std::vector<StreamBuffers>{};
  }
  void connect(std::vector<PeerMemory> const& all) override {
    use();
    if (is_by_stream()) {
      endpoint_->know(contacts_of(all));
      endpoint_->connect(all[0].contact.unique_id,
                         reinterpret_cast<std::byte*>(arguments_.field[instance_.fields - 1]));
    } else {
      window_->connect(all);
    }
    runner_->prepare(arguments_);
    memory_.look();
  }
  void forget_barriers(std::uint32_t last_epoch) override {
    use();
    if (endpoint_) endpoint_->forget();
    if (window_) window_->forget();
    runner_->forget_barriers(last_epoch);
  }

  void put_rows(DeviceRows const& rows) override {
    Range const range("hostless: matrix");
    use();
    rows_.put(rows);
    arguments_.rows = rows_.view();
    if (problem_.free_order && rows.format == DeviceFormat::csr && rows.tiling.threads_per_row == 1)
      arguments_.rows.csr.threads_per_row = free_threads_per_row(rows_.entries(), rows.tiling.rows());
    make_product();
    if (runner_) runner_->prepare(arguments_);  // graphs hold its pointers
  }
  void use_column(int column) override { column_ = column; }
  void put_preconditioner_data(std::vector<double> const& preconditioner_data) override {
    use();
    preconditioner_data_.put(preconditioner_data.data(), preconditioner_data.size(),
                             preconditioner_before_ - preconditioner_below_);
  }
  void put_rhs(double const* b) override {
    use();
    rhs_.put(b, static_cast<std::size_t>(problem_.owned), column_offset(column_));
  }
  void put_field(int index, double const* values) override {
    use();
    fields_[static_cast<std::size_t>(index)].put(values, static_cast<std::size_t>(problem_.owned),
                                                 arguments_.rows_before + column_offset(column_));
  }
  void get_field(int index, double* values) const override {
    use();
    fields_[static_cast<std::size_t>(index)].get(values, static_cast<std::size_t>(problem_.owned),
                                                 arguments_.rows_before + column_offset(column_));
  }
  void take_rhs(GpuArray const& b) override {
    use();
    vectors_.take(b, rhs_.data());
  }
  void take_field(int index, GpuArray const& values) override {
    use();
    vectors_.take(values, arguments_.field[index]);
  }
  void give_field(int index, GpuArray const& to) const override {
    use();
    vectors_.give(arguments_.field[index], to);
  }
  void clear_field(int index) override {
    use();
    fields_[static_cast<std::size_t>(index)].clear();
  }
  double largest_rhs() const override {
    use();
    return largest(rhs_.data(), problem_.owned);
  }
  double largest_field(int index) const override {
    use();
    return largest(arguments_.field[index], problem_.owned);
  }
  void put_history(StepRecord const* steps, std::int64_t count) override {
    use();
    history_.put(column_, steps, count);
  }
  void get_history(StepRecord* steps, std::int64_t count) const override {
    use();
    history_.get(column_, steps, count);
  }

  void run(State& state, std::function<bool()> const& stop,
           std::function<void(std::int64_t, double, int)> const& progress) override {
    Range const range("hostless: solve");
    use();
    std::span<State> const states(&state, state_.size());
    auto const before = history_.lend(states);
    state_.put(&state, states.size());
    std::int64_t seen = state.iteration;  // each iteration is told once, and only those of this solve
    runner_->run(arguments_,
                 {stop,
                  [&](std::int64_t iteration, double rr, int column) {
                    if (progress && iteration > seen) progress(iteration, rr, column);
                    seen = std::max(seen, iteration);
                  }},
                 cost_);
    state_.get(&state, states.size());
    DeviceHistory::take_back(states, before);
    check_guards();
    memory_.look();
  }

  void multiply(double const* x, double* y) override {
    use();
    int const gathered = instance_.fields - 1;
    auto const below = static_cast<std::size_t>(problem_.rows->ghosts_below);
    auto const all = below + static_cast<std::size_t>(problem_.owned + problem_.rows->ghosts_above);
    fields_.back().put(x - below, all, arguments_.rows_before - below);
    multiply_rows(arguments_.rows, arguments_.field[gathered], arguments_.field[0]);
    get_field(0, y);
  }
  void diagonal_blocks(double* to) override {
    use();
    rows_.diagonal_blocks(to, memory_);
  }
  std::int64_t peak_bytes() const override { return memory_.taken(); }
  Cost cost() const override {
    Cost cost = cost_;
    if (clock_.size() == 0) return cost;
    use();
    std::uint64_t cycles = 0;
    clock_.get(&cycles, 1);
    cost.clock_s = static_cast<double>(cycles) / hertz_;
    return cost;
  }
  std::int64_t device_bytes() const override {
    std::int64_t bytes = rows_.bytes() + static_cast<std::int64_t>(rhs_.bytes() + history_.bytes() +
                                                                   preconditioner_data_.bytes());
    for (auto const& field : fields_) bytes += static_cast<std::int64_t>(field.bytes());
    return bytes + (product_ ? product_->bytes() : 0) + (window_ ? window_->bytes() : 0) +
           (endpoint_ ? endpoint_->bytes() + exchange_->bytes() : 0) + vectors_.bytes();
  }
  std::string describe() const override {
    std::string const text = runner_->describe(arguments_);
    if (!problem_.text.communicates) return text;
    return text + "; " + gpu::describe(ghost_way(problem_.communication, arguments_.layout));
  }
  std::string describe_transport() const override {
    if (endpoint_) return endpoint_->describe();
    std::string const transport = name(problem_.transport);
    return arena_ ? transport + " (" + library_of(problem_.transport) + ", kernels store into its memory)"
                  : transport;
  }
  std::string describe_sums() const override {
    if (!problem_.free_order) return {};
    RowsView const& rows = arguments_.rows;
    int const turns = arguments_.layout.turns;
    std::string text = choice_.kind != RunKind::persistent ? "blocks add as they arrive"
                       : turns > 1
                           ? "accumulators add over the " + std::to_string(turns) + " tiles of their block"
                           : "";
    if (rows.format == DeviceFormat::csr && rows.csr.threads_per_row != rows.tiling.threads_per_row)
      text += (text.empty() ? "" : ", ") + std::to_string(rows.csr.threads_per_row) + " threads share a row";
    return text.empty() ? "each block has one tile: nothing is left to be freed" : text;
  }
  RunKind run_kind() const override { return choice_.kind; }
  std::string why_run() const override { return choice_.why; }
  void use_run(RunKind kind, std::string const& why) override {
    use();
    if (kind != choice_.kind) change_run(kind);
    choice_ = {kind, why};
  }
  Trace trace() const override {
    use();
    return recorder_.trace(choice_.kind);
  }
  void record(bool wanted) override { recorder_.record(arguments_, wanted); }
  void silence(Silence silence) override { arguments_.control.silence = silence; }

 private:
  bool is_by_stream() const { return gpu::is_by_stream(problem_); }
  std::size_t column_offset(int column) const {
    return static_cast<std::size_t>(arguments_.column_stride * column);
  }
  // Who carries between ranks, and with one rank: which run.
  void take_transport() {
    if (is_by_stream()) {
      endpoint_ = make_stream_endpoint(problem_.transport, stream_setup(problem_));
      exchange_ = std::make_unique<SolverExchange>(*endpoint_, *problem_.rounds, problem_.copies->staging);
      arguments_.endpoint = endpoint_.get();
      arguments_.exchange = exchange_.get();
      arguments_.ranks = problem_.ranks;
      part_sweeps();
    } else if (problem_.ranks > 1) {
      if (problem_.symmetric)
        arena_ = std::make_unique<Arena>(problem_.symmetric->here(), problem_.symmetric->bytes());
      arguments_.lending = {problem_.processes && !arena_, arena_.get(), true};
      window_ = std::make_unique<PeerWindow>(
          PeerRank{problem_.rank, problem_.ranks, problem_.processes, problem_.symmetric}, *problem_.copies,
          arguments_.layout, arguments_.lending);
      arguments_.peers = window_->view();
      arguments_.ranks = problem_.ranks;
      arguments_.rounds = window_->rounds();
    } else {
      choice_ = choose_run(problem_, arguments_.layout, instance_);
      check_request();
    }
  }
  void part_sweeps() {
    PartedTiles const parted = choose_parts(problem_, arguments_.layout.tiles);
    if (parted.tile.empty()) return;
    tiles_ = Array<std::int32_t>(parted.tile.size());
    tiles_.put(parted.tile.data(), parted.tile.size());
    arguments_.tile_order = {tiles_.data(), parted.interior};
  }
  bool is_collective() const { return problem_.ranks > 1 || is_by_stream(); }
  // All ranks the same: graphs and streams queue iterations by rules of their own.
  void make_stream_run(bool can_record) {
    choice_ = {problem_.run, "asked for"};
    if (problem_.run == RunKind::automatic) {
      choice_ = problem_.check_interval > 1 ? RunChoice{RunKind::stream,
                                                        "only its host looks at the state, for "
                                                        "which a check interval was asked"}
                : can_record                ? RunChoice{RunKind::graph, "replaying costs the host less"}
                             : RunChoice{RunKind::stream, "a graph cannot wait for the host on every rank"};
    }
    check_request();
    if (choice_.kind == RunKind::graph && !can_record)
      throw Error(
          ErrorCode::environment,
          "a graph that waits for the host, where one cannot (on some rank launches return only when "
          "their kernel has ended: CUDA_LAUNCH_BLOCKING, a debugger; or HOSTLESS_GPU_HOST_WAITS is 1). Use "
          "--run stream.");
    runner_ = make_runner(choice_.kind, arguments_, instance_, problem_);
    memory_.look();
  }
  // What `automatic` has chosen for several right-hand sides needs a second set of vectors, which there may be no
  // room for where one set fits; runs of phases need none.
  void make_chosen_run() {
    Arguments const before = arguments_;
    try {
      runner_ = make_runner(choice_.kind, arguments_, instance_, problem_);
    } catch (Error const& error) {
      bool const has_other = problem_.run == RunKind::automatic && problem_.columns > 1 &&
                             choice_.kind == RunKind::persistent && error.code() == ErrorCode::environment;
      if (!has_other) throw;
      arguments_ = before;
      choice_ = choose_phases(problem_, arguments_.layout, instance_, error.what());
      runner_ = make_runner(choice_.kind, arguments_, instance_, problem_);
    }
    runner_->prepare(arguments_);
    memory_.look();
  }
  void change_run(RunKind kind) {
    Problem asked = problem_;
    asked.run = kind;
    static_cast<void>(choose_run(asked, arguments_.layout, instance_));  // refuses what does not fit
    Arguments const before = arguments_;
    try {
      auto runner = make_runner(kind, arguments_, instance_, asked);
      runner->prepare(arguments_);
      runner_ = std::move(runner);
    } catch (Error const&) {
      arguments_ = before;
      throw;
    }
    memory_.look();
  }
  // The gathered field serves as a vector to try a product on.
  void make_product() {
    arguments_.product = nullptr;
    product_.reset();  // what it holds of the matrix goes first
    if (arguments_.rows.format == DeviceFormat::merge)
      product_ = make_merge_product(arguments_.rows, rows_.entries());
    if (arguments_.rows.format == DeviceFormat::vendor)
      product_ =
          make_vendor_product(arguments_.rows, rows_.entries(), arguments_.field[instance_.fields - 1]);
    arguments_.product = product_.get();
  }
  void check_request() const {
    if (problem_.check_interval > 1 && choice_.kind != RunKind::stream) {
      throw Error(ErrorCode::usage, "a check interval of " + std::to_string(problem_.check_interval) +
                                        " (on a GPU only the stream run looks at its gates from the host). "
                                        "Use --run stream.");
    }
  }
  void use() const { check(HOSTLESS_GPU(SetDevice)(problem_.device), "choosing a GPU"); }
  void check_guards() const {
    bool hold = rhs_.guards_hold() && history_.guards_hold() && preconditioner_data_.guards_hold() &&
                rows_.guards_hold() && state_.guards_hold() && tiles_.guards_hold() &&
                recorder_.guards_hold() && clock_.guards_hold() && runner_->guards_hold() &&
                (!product_ || product_->guards_hold()) && (!window_ || window_->guards_hold()) &&
                (!endpoint_ || (endpoint_->guards_hold() && exchange_->guards_hold()));
    for (auto const& field : fields_) hold = hold && field.guards_hold();
    if (!hold)
      throw Error(ErrorCode::environment,
                  "a kernel wrote outside its arrays (guard bytes changed). Report it.");
  }

  Problem problem_;
  MemoryMark memory_;
  Instance const& instance_;
  Arguments arguments_;
  DeviceRowsCopy rows_;
  CallerVectors vectors_;
  std::unique_ptr<Product> product_;
  std::unique_ptr<Arena> arena_;  // of symmetric memory: what other ranks store to is cut from it
  std::vector<Array<double>> fields_;
  Array<double> rhs_, preconditioner_data_;
  DeviceHistory history_;
  std::size_t preconditioner_before_ = 0,
              preconditioner_below_ = 0;  // values before that of the first row; of them, ghosts'
  Array<State> state_;
  Array<std::int32_t> tiles_;  // interior ones first
  Recorder recorder_;
  Array<std::uint64_t> clock_;  // of text communication
  double hertz_ = 0;
  int column_ = 0;
  RunChoice choice_;
  std::unique_ptr<PeerWindow> window_;  // of several ranks
  // Where they do not use each other's memory; graphs of the run go first.
  std::unique_ptr<StreamEndpoint> endpoint_;
  std::unique_ptr<SolverExchange> exchange_;
  std::unique_ptr<Runner> runner_;
  Cost cost_;
};

}  // namespace

std::unique_ptr<BoundSolve> make_bound_solve(Problem const& problem) {
  return std::make_unique<Solve>(problem);
}

}  // namespace hostless::gpu
