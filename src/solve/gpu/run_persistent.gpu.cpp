#include "solve/gpu/run_persistent.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "run/gpu/grid_barrier.gpu.hpp"
#include "solve/gpu/bound_solve.hpp"
#include "solve/gpu/padded.hpp"
#include "transport/memory/opened_memory.hpp"

namespace hostless::gpu {
namespace {

// Of a text with many fields, so many beside matrix and window: the others are read as a block's own rows.
constexpr int least_on_chip = 3;
// Measured with one sum on one H200 and on four of them: fewer and more are both slower.
constexpr std::uint32_t travel_cycles = 600, travel_cycles_to_others = 1200;

// What is best given to fields on chip, of `shared` bytes that a block may have beside what its kernel needs
// itself.
std::int64_t on_chip_bytes(std::int64_t shared, int device) {
  int most = 0;
  check(HOSTLESS_GPU(DeviceGetAttribute)(&most, HOSTLESS_MOST_SHARED_MEMORY, device),
        "asking for shared memory");
  constexpr std::int64_t reserved = 1024;  // by the driver, of every block
  return std::max<std::int64_t>(0, std::int64_t{HOSTLESS_ON_CHIP_KIB} * 1024 - reserved - (most - shared));
}

}  // namespace

OnChip find_on_chip(OnChipRows const& rows, Layout const& layout, Instance const& instance, int device,
                    int columns, Ranks ranks, FusedUpdate fused_update) {
  if (columns > 1) {
    std::int64_t const shared = instance.shared_bytes_of_columns(device, columns);
    return plan_columns_on_chip(layout, instance.fields - 1, room_for(columns),
                                on_chip_bytes(shared, device));
  }
  std::int64_t const shared = instance.shared_bytes(device, ranks);
  std::int64_t const most = on_chip_bytes(shared, device);
  auto const plan = [&](FusedUpdate allowed) {
    return plan_on_chip(rows, layout,
                        {instance.fields - 1, instance.begins ? least_on_chip : instance.fields - 1},
                        ranks != Ranks::one, shared, most, allowed);
  };
  if (instance.begins && fused_update == FusedUpdate::by_flagged_words) {
    if (OnChip const on_chip = plan(fused_update); on_chip.all)
      return on_chip;  // such a text has no way between
  }
  return plan(instance.fuses ? fused_update : FusedUpdate::no);
}

bool fits_a_barrier(int most_partials, int ranks) { return levels_of(most_partials, ranks) <= most_groups; }

std::size_t most_bytes_of_barriers() {
  return std::size_t{2} * group_flagged_words * (1 + widest_sum * most_groups) * sizeof(FlaggedWord);
}

std::int64_t window_bytes(Problem const& p) {
  std::size_t const rows = Padded(p).rows;
  constexpr std::size_t arrays = 7, around = 2 * guard_bytes + 512;
  constexpr std::size_t of_staged = sizeof(double) + 2 * sizeof(FlaggedWord);
  return static_cast<std::int64_t>(rows * (2 * sizeof(double) + 2 * sizeof(FlaggedWord)) +
                                   most_bytes_of_barriers() +
                                   static_cast<std::size_t>(p.copies->staging) * of_staged + arrays * around);
}

Persistent::Persistent(Arguments& arguments, Instance const& instance, int device)
    : instance_(instance),
      is_alone_(arguments.ranks == 1),
      flagged_words_(2 * sizeof(FlaggedWord) *
                         static_cast<std::size_t>(flagged_words_of_parity(
                             std::max(arguments.layout.partials, arguments.most_partials), arguments.ranks,
                             arguments.columns == 1 ? 1 : wide_columns)),
                     arguments.lending),
      lending_(arguments.lending),
      epoch_(1) {
  Layout& layout = arguments.layout;
  RowsView const& rows = arguments.rows;
  OnChip const on_chip =
      find_on_chip({rows.format, rows.diagonals, rows.farthest, rows.csr.threads_per_row}, layout, instance,
                   device, arguments.columns, ranks_of(arguments), arguments.fused_update);
  layout.reach = static_cast<int>(on_chip.reach);
  layout.window_values = static_cast<int>(on_chip.window);
  layout.matrix_values = static_cast<int>(on_chip.matrix);
  layout.shared_values = static_cast<int>(on_chip.values());
  layout.farthest = static_cast<std::int32_t>(rows.farthest);
  layout.fuses = on_chip.fuses();
  layout.halo_source = arguments.field[1];  // r of the texts that show a field
  layout.halo_source_flagged_words[0] = layout.halo_source_flagged_words[1] = nullptr;
  if (on_chip.fused_update == FusedUpdate::by_flagged_words || (on_chip.fuses() && !is_alone_)) {
    halo_source_flagged_words_ =
        Array<unsigned char>(2 * arguments.padded_rows * sizeof(FlaggedWord), lending_);
    halo_source_flagged_words_.clear();
    for (std::size_t parity = 0; parity < 2; ++parity)
      layout.halo_source_flagged_words[parity] =
          reinterpret_cast<FlaggedWord*>(halo_source_flagged_words_.data()) + parity * arguments.padded_rows +
          arguments.rows_before;
  }
  if (arguments.columns > 1) lay_sides_together(arguments);
  flagged_words_.clear();
  epoch_.clear();
  arguments.flagged_words = reinterpret_cast<FlaggedWord*>(flagged_words_.data());
  arguments.epoch = epoch_.data();
  arguments.control.travel_cycles = is_alone_ ? travel_cycles : travel_cycles_to_others;
  arguments.control.orders = orders_.device();
  arguments.control.progress = progress_.device();
}

// Where the kernel of several right-hand sides has their entries beside each other, padded as fields are.
void Persistent::lay_sides_together(Arguments& arguments) {
  auto const width = static_cast<std::size_t>(room_for(arguments.columns));
  std::size_t const values = width * arguments.padded_rows;
  FieldsOfSides& fields = arguments.fields_of_sides;
  fields.stride = arguments.column_stride;
  int const arrays = instance_.fields + (instance_.fuses ? 1 : 0);  // of p two
  together_ = Array<double>(values * static_cast<std::size_t>(arrays));
  together_.clear();
  auto const array_of = [&](int k) {
    return together_.data() + values * static_cast<std::size_t>(k) + width * arguments.rows_before;
  };
  for (int k = 0; k < instance_.fields; ++k) {
    fields.apart[k] = arguments.field[k];
    fields.together[k] = array_of(k);
  }
  fields.turned = instance_.fuses ? array_of(instance_.fields) : nullptr;
}

void Persistent::run(Arguments const& arguments, Watch const& watch, Cost& cost) {
  std::vector<State> states(static_cast<std::size_t>(arguments.columns));
  std::vector<std::int64_t> wanted_pauses;
  copy_states(states.data(), arguments.state, states.size());
  for (State const& state : states) wanted_pauses.push_back(state.pause_at);
  orders_.host().stop = 0;
  progress_.host().iteration = states[0].iteration;  // not that of the solve before
  for (bool goes_on = true; goes_on;) {
    launch(arguments, watch, cost);
    copy_states(states.data(), arguments.state, states.size());
    goes_on = false;
    for (std::size_t c = 0; c < states.size(); ++c) {
      State& state = states[c];
      bool const is_wanted = wanted_pauses[c] >= 0 && state.iteration >= wanted_pauses[c];
      bool const own_pause = state.status == Status::paused && !is_wanted && !state.awaits_projection();
      state.pause_at = wanted_pauses[c];
      if (own_pause) state.status = Status::running;
      goes_on = goes_on || own_pause;
    }
    if (goes_on) ++cost.pauses;
    copy_states(arguments.state, states.data(), states.size());
  }
  bool const is_lost = std::any_of(states.begin(), states.end(),
                                   [](State const& state) { return state.status == Status::peer_lost; });
  if (is_alone_ && is_lost) flagged_words_.clear();  // poisoned
}

// Between host and device.
void Persistent::copy_states(State* to, State const* from, std::size_t count) {
  HOSTLESS_GPU(Stream_t) const stream = stream_.get();
  check(HOSTLESS_GPU(MemcpyAsync)(to, from, count * sizeof(State), HOSTLESS_GPU(MemcpyDefault), stream),
        "copying states");
  stream_.wait();
}

void Persistent::lend(PeerMemory& memory, Arguments const& arguments) const {
  memory.flagged_words = gpu::lend(flagged_words_, flagged_words_.data(), lending_);
  for (int parity = 0; parity < 2; ++parity)
    memory.halo_source_flagged_words[parity] =
        gpu::lend(halo_source_flagged_words_, arguments.layout.halo_source_flagged_words[parity], lending_);
}

void Persistent::forget_barriers(std::uint32_t last_epoch) {
  flagged_words_.clear();
  halo_source_flagged_words_.clear();
  epoch_.put(&last_epoch, 1);
}

void Persistent::launch(Arguments const& arguments, Watch const& watch, Cost& cost) {
  begin_.record(stream_);
  {
    // How much shared memory a launch may ask for belongs to the kernel: ranks that are threads of one
    // process would change it between each other's question and launch.
    static std::mutex launching;
    std::lock_guard const alone(launching);
    instance_.launch_persistent(arguments, stream_.get());
  }
  end_.record(stream_);
  ++cost.launches;
  watch_stream(stream_, [&] {
    if (watch.stop && watch.stop()) orders_.host().stop = 1;
    Progress const volatile& told = progress_.host();
    watch.progress(told.iteration, told.rr, told.column);
  });
  cost.device_s += end_.seconds_since(begin_);
}

std::string Persistent::describe(Arguments const& arguments) const {
  Layout const& l = arguments.layout;
  return std::to_string(l.blocks) + " blocks of " + std::to_string(block_threads) + " threads, " +
         std::to_string(l.shared_values * 8 / 1024) + " KiB of kept fields in each one's shared memory";
}

}  // namespace hostless::gpu
