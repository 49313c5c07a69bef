#pragma once
// Records the phases of a text as a graph once and launches it. Where the runtime has WHILE nodes the whole
// solve is one launch; else some iterations are, and the host looks at the state between two replays.

#include <optional>

#include "device/graph.hpp"
#include "solve/gpu/run_stream.hpp"

namespace hostless::gpu {

/// Whether a graph may have WHILE nodes, as far as that is known before one is made.
bool while_nodes_expected();

class GraphRunner final : public Runner {
 public:
  GraphRunner(Arguments& arguments, Instance const& instance, bool free_order);
  ~GraphRunner() override;
  void prepare(Arguments const& arguments) override;
  void run(Arguments const& arguments, Watch const& watch, Cost& cost) override;
  std::string describe(Arguments const& arguments) const override;
  void lend(PeerMemory& memory, Arguments const&) const override { mailbox_.lend(memory); }
  void forget_barriers(std::uint32_t last_epoch) override { mailbox_.forget_barriers(last_epoch); }
  bool guards_hold() const override { return mailbox_.guards_hold(); }

 private:
  class LoopQueue;
  class ReplayQueue;
  std::string record_loops(Arguments const& arguments);
  void run_loops(Arguments const& arguments, Watch const& watch, Cost& cost);

  Instance const& instance_;
  Stream stream_, side_;  // orders and looks pass the running graph on the second
  Mailbox mailbox_;
  std::optional<Graph> whole_;
  std::string why_replay_, why_stream_;
  std::unique_ptr<ReplayQueue> replay_;
};

}  // namespace hostless::gpu
