#include "solve/gpu/run_persistent.hpp"

#include <algorithm>
#include <mutex>

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
                    Ranks ranks, FusedUpdate fused_update) {
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
                             std::max(arguments.layout.partials, arguments.most_partials), arguments.ranks)),
                     arguments.lending),
      lending_(arguments.lending),
      epoch_(1) {
  Layout& layout = arguments.layout;
  RowsView const& rows = arguments.rows;
  OnChip const on_chip = find_on_chip({rows.format, rows.diagonals, rows.farthest, rows.csr.threads_per_row},
                                      layout, instance, device, ranks_of(arguments), arguments.fused_update);
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
  flagged_words_.clear();
  epoch_.clear();
  arguments.flagged_words = reinterpret_cast<FlaggedWord*>(flagged_words_.data());
  arguments.epoch = epoch_.data();
  arguments.control.travel_cycles = is_alone_ ? travel_cycles : travel_cycles_to_others;
  arguments.control.orders = orders_.device();
  arguments.control.progress = progress_.device();
}

void Persistent::run(Arguments const& arguments, Watch const& watch, Cost& cost) {
  State state;
  HOSTLESS_GPU(Stream_t) const stream = stream_.get();
  check(HOSTLESS_GPU(MemcpyAsync)(&state, arguments.state, sizeof state, HOSTLESS_GPU(MemcpyDeviceToHost),
                                  stream),
        "reading the state");
  stream_.wait();
  std::int64_t const wanted_pause = state.pause_at;
  orders_.host().stop = 0;
  progress_.host().iteration = state.iteration;  // not that of the solve before
  for (;;) {
    launch(arguments, watch, cost);
    check(HOSTLESS_GPU(MemcpyAsync)(&state, arguments.state, sizeof state, HOSTLESS_GPU(MemcpyDeviceToHost),
                                    stream),
          "reading the state");
    stream_.wait();
    bool const is_wanted = wanted_pause >= 0 && state.iteration >= wanted_pause;
    bool const own_pause = state.status == Status::paused && !is_wanted && !state.awaits_projection();
    if (own_pause) ++cost.pauses;
    state.pause_at = wanted_pause;
    if (own_pause) state.status = Status::running;
    check(HOSTLESS_GPU(MemcpyAsync)(arguments.state, &state, sizeof state, HOSTLESS_GPU(MemcpyHostToDevice),
                                    stream),
          "writing the state");
    stream_.wait();
    if (!own_pause) break;
  }
  if (is_alone_ && state.status == Status::peer_lost) flagged_words_.clear();  // poisoned
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
    watch.progress(progress_.host().iteration, progress_.host().rr, 0);
  });
  cost.device_s += end_.seconds_since(begin_);
}

std::string Persistent::describe(Arguments const& arguments) const {
  Layout const& l = arguments.layout;
  return std::to_string(l.blocks) + " blocks of " + std::to_string(block_threads) + " threads, " +
         std::to_string(l.shared_values * 8 / 1024) + " KiB of kept fields in each one's shared memory";
}

}  // namespace hostless::gpu
