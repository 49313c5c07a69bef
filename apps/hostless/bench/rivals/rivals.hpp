#pragma once
// Programs of others that `hostless bench stencil` times beside its own steps: what is started, and how their time is
// found.

#include <cstdint>
#include <string>
#include <vector>

#include "../bench.hpp"
#include "child_command.hpp"
#include "rival_time.hpp"

namespace CLI {
class App;
}

namespace hostless {

/// What the user writes of them.
struct RivalWords {
  std::vector<std::string> commands;  ///< COMMAND or NAME=COMMAND
  std::vector<std::string> times;     ///< PATTERN or NAME=PATTERN, `wall`
  double longest_s = 600;             ///< of one start

  void add(CLI::App& command);
};

/// What all step.
struct RivalTask {
  std::string problem, type;
  std::vector<std::int64_t> size;
  std::int64_t steps = 0;
  int ranks = 1;  ///< threads of the processor, or parts on GPUs
};

/// Starts each as often as ours is repeated.
class Rivals {
 public:
  /// Errors  usage  a command that names nothing executable, or a placeholder that is none; two of one name; a time of
  ///                a rival that is none, or no such expression; a command without placeholders that no program of NVIDIA's
  ///                could step
  Rivals(RivalWords const& words, RivalTask const& task);
  bool empty() const { return all_.empty(); }
  /// Once each, not timed: whoever fails is known before anything is timed, and is not started again.
  void try_out();
  /// Once each.
  void run();
  /// Name, command and times of each, or `problem`; times over `ours_s` where that is above 0.
  nlohmann::ordered_json rows(double ours_s) const;

 private:
  struct Rival {
    std::string name;
    std::vector<std::string> words;
    RivalTime time;
    std::string problem;  ///< empty: none so far
    bench::Timing timing;
  };
  double started(Rival& one) const;

  RivalTask task_;
  double longest_s_ = 0;
  std::vector<Rival> all_;
};

}  // namespace hostless
