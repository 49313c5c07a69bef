#pragma once
// What an iteration costs in each run, predicted from bytes and phases. The constants are fitted to half of
// what was measured on one H200; tests/unit/solve/run_model_test.cpp has both halves, and holds the model
// against the other one. They scale with the bandwidth of the memory and with the number of multiprocessors;
// measuring is better wherever it is possible.

#include <algorithm>
#include <cstdint>
#include <string>

#include "hostless/run/run_options.hpp"
#include "solve/gpu_solver/gpu_library.hpp"
#include "solve/methods/methods.hpp"

namespace hostless::gpu {

struct ModelMachine {
  double bytes_a_s = 0;  ///< the memory's highest; 0: unknown
  double l2_bytes = 0;
  int multiprocessors = 0;
};

/// Kernels of an iteration where each phase is one, and barriers of the persistent kernel.
struct Phases {
  int kernels = 0, barriers = 0;
};

/// An iteration of one bound solve.
struct ModelWork {
  Phases phases;
  double matrix_bytes = 0, vector_bytes = 0;  ///< moved where nothing is kept
  double matrix_store = 0;                    ///< bytes of the matrix in memory
  double vector_store = 0;                    ///< of one vector
  int fields = 0;                             ///< owned ones
  double on_chip_share = 0;                   ///< of the owned fields, in shared memory
  bool matrix_on_chip = false;                ///< and the window: everything is on chip
  int blocks = 0;                             ///< of the persistent kernel
  bool replayed = false;                      ///< graphs have no WHILE nodes here
};

/// Microseconds an iteration.
struct Prediction {
  double persistent_us = 0, graph_us = 0, stream_us = 0;
};

/// degree: of the polynomial. fuses: neighbours' values are formed where they are read, or come with the sum.
inline Phases phases_of(TextKind text, int degree, bool fuses) {
  Phases phases;
  with_descriptor(text.method, Methods{}, [&]<class Descriptor>() {
    IterationTraffic const traffic = Descriptor::traffic(text.variant, {degree, 0});
    phases = {traffic.kernels, fuses ? traffic.fused_barriers : traffic.barriers};
  });
  return phases;
}

inline Prediction predict(ModelMachine const& machine, ModelWork const& work) {
  constexpr double reference_bytes_a_s = 4.9e12;  // of the H200, which the numbers below are of
  constexpr int reference_multiprocessors = 132;
  constexpr double kernel_us = 2.63, launch_us = 0.93;  // between two nodes of a graph; more where launched
  constexpr double replay_us = 10.0 / 8;                // a launch and its share of a look, for 8 iterations
  constexpr double least_barrier_us = 1.0,
                   barrier_us = 1.5;  // of one block; more where all multiprocessors meet
  constexpr double matrix_rate = 4.21e6, vector_rate = 2.6e6;  // bytes a microsecond: phase by phase
  constexpr double together_rate = 3.73e6;                     // persistent, from memory
  constexpr double l2_rate = 6e6, shared_rate = 5e6;
  double const units = static_cast<double>(machine.multiprocessors) / reference_multiprocessors;
  double const memory = machine.bytes_a_s > 0 ? machine.bytes_a_s / reference_bytes_a_s : units;

  Prediction p;
  p.graph_us = kernel_us * work.phases.kernels + work.matrix_bytes / (matrix_rate * memory) +
               work.vector_bytes / (vector_rate * memory) + (work.replayed ? replay_us : 0);
  p.stream_us = p.graph_us + launch_us * work.phases.kernels - (work.replayed ? replay_us : 0);

  double const fields = work.fields;
  double const on_chip = work.matrix_on_chip ? work.matrix_bytes + work.on_chip_share * work.vector_bytes
                                             : work.on_chip_share * work.vector_bytes * fields /
                                                   (fields + 1);  // one is gathered
  double const far = work.matrix_bytes + work.vector_bytes - on_chip;
  double const stored = work.matrix_store + work.vector_store * (1 + fields * (1 - work.on_chip_share));
  double const cached = machine.l2_bytes > 0 ? std::clamp(2 - stored / machine.l2_bytes, 0.0, 1.0) : 0.0;
  double const crowd = std::min(1.0, static_cast<double>(work.blocks) / reference_multiprocessors);
  p.persistent_us = work.phases.barriers * (least_barrier_us + barrier_us * crowd) +
                    on_chip / (shared_rate * units) +
                    far * ((1 - cached) / (together_rate * memory) + cached / (l2_rate * units));
  return p;
}

/// Whether a sweep of so many bytes of the matrix is parted, so that the exchange goes on beside its interior
/// tiles. The others are a kernel more, which lasts as long as one of its tiles: with a tile for
/// each multiprocessor that is half of what the whole sweep took, because fewer of them share the memory.
inline bool parting_pays(ModelMachine const& machine, double bytes, int interior, int border) {
  constexpr double reference_bytes_a_s = 4.9e12, matrix_rate = 4.2e6, kernel_us = 2.75;
  constexpr double exchange_us = 8;  // what a library takes at least
  double const memory = machine.bytes_a_s > 0 ? machine.bytes_a_s / reference_bytes_a_s : 1.0;
  double const sweep_us = bytes / (matrix_rate * memory);
  double const side_by_side = std::max(1, machine.multiprocessors);
  double const waves = std::max(1.0, (interior + border) / side_by_side);
  double const interior_us = sweep_us * interior / std::max(1, interior + border);
  double const border_us = border == 0 ? 0 : sweep_us / waves / 2 + kernel_us;
  return std::min(exchange_us, interior_us) > border_us;
}

struct ModelChoice {
  RunKind kind = RunKind::persistent;
  std::string why;  ///< with the prediction of each candidate
};

/// "37.4".
inline std::string tenths(double us) {
  auto const all = static_cast<long long>(us * 10 + 0.5);
  return std::to_string(all / 10) + "." + std::to_string(all % 10);
}

/// problem: why the persistent kernel cannot run; empty when it can.
inline ModelChoice choose_by_model(Prediction const& p, std::string const& problem) {
  ModelChoice choice;
  bool const fits = problem.empty();
  bool const graph = p.graph_us <= p.stream_us;
  double const launched_us = std::min(p.graph_us, p.stream_us);
  choice.kind = fits && p.persistent_us <= launched_us ? RunKind::persistent
                : graph                                ? RunKind::graph
                                                       : RunKind::stream;
  choice.why = "model: " + (fits ? "persistent " + tenths(p.persistent_us) + " us, " : std::string()) +
               "graph " + tenths(p.graph_us) + " us, stream " + tenths(p.stream_us) + " us an iteration";
  if (!fits) choice.why += "; not persistent: " + problem;
  return choice;
}

}  // namespace hostless::gpu
