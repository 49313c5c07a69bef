#pragma once
// Launches a persistent kernel until its text has ended, and speaks with it while it runs.

#include "solve/gpu/on_chip.hpp"
#include "solve/gpu/runner.hpp"

namespace hostless::gpu {

/// What the persistent kernel of an instance that fits keeps on this device. columns: right-hand sides;
/// fused_update: what ranks can; texts that form nothing have none.
OnChip find_on_chip(OnChipRows const& rows, Layout const& layout, Instance const& instance, int device,
                    int columns, Ranks ranks = Ranks::one,
                    FusedUpdate fused_update = FusedUpdate::by_flagged_words);

/// Whether the sums of so many ranks, each of so many partials at most, fit into a barrier.
bool fits_a_barrier(int most_partials, int ranks);
/// Of the flagged words of barriers that ranks store to, whatever shapes they have that fit.
std::size_t most_bytes_of_barriers();

class Persistent final : public Runner {
 public:
  /// Of a text whose kernel fits (choose_run).
  Persistent(Arguments& arguments, Instance const& instance, int device);
  void prepare(Arguments const&) override {}  // asking for its shared memory has loaded the kernel
  /// Launches again after every pause of its own.
  void run(Arguments const& arguments, Watch const& watch, Cost& cost) override;
  std::string describe(Arguments const& arguments) const override;
  void lend(PeerMemory& memory, Arguments const& arguments) const override;
  void forget_barriers(std::uint32_t last_epoch) override;
  bool guards_hold() const override {
    return flagged_words_.guards_hold() && halo_source_flagged_words_.guards_hold() && epoch_.guards_hold() &&
           together_.guards_hold();
  }

 private:
  void launch(Arguments const& arguments, Watch const& watch, Cost& cost);
  void lay_sides_together(Arguments& arguments);
  void copy_states(State* to, State const* from, std::size_t count);

  Instance const& instance_;
  bool is_alone_;
  Stream stream_;
  TimedEvent begin_, end_;
  Array<unsigned char> flagged_words_, halo_source_flagged_words_;
  Lending lending_;
  Array<std::uint32_t> epoch_;
  Array<double> together_;
  Mapped<Orders> orders_;
  Mapped<Progress> progress_;
};

}  // namespace hostless::gpu
