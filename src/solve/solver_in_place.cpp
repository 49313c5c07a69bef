// Solves whose b and x stay in the memory of a GPU: what the host otherwise asks of them is asked there.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "operate/pattern_scan.hpp"
#include "solve/methods/method_vectors.hpp"
#include "solve/solver_parts.hpp"

namespace hostless {

void Solver::Parts::check_in_place() const {
  auto refuse = [](char const* text) { throw Error(ErrorCode::usage, text); };
  if (columns() > 1)
    refuse("vectors that stay on a GPU with several right-hand sides at once. Solve for them one by one.");
  if (!gpu) refuse("vectors in the memory of a GPU, and a solve on the processor. Use RunOptions::gpus.");
  if (!options.checkpoint_file.empty() || !options.resume_file.empty())
    refuse(
        "a checkpoint of vectors that stay on a GPU (the host writes it). Pass them in the host's memory.");
  if (options.null_space_constant)
    refuse(
        "a null space with vectors that stay on a GPU (the host projects them). Pass them in the host's "
        "memory.");
}

// |b - A x|^2 of the vectors that are there, in the plan's order: the text without an iteration. x stays as
// it is.
double Solver::Parts::true_residual_in_place() {
  State const before = state;
  state = first_state(options, bound.upper);
  state.limit = 0;
  gpu->run(
      state, {}, [] { return false; }, [](std::int64_t, double, int) { return false; });
  double const rr = state.true_rr;
  Status const status = state.status;
  state = before;
  if (status == Status::peer_lost) state.status = status;
  return rr;
}

void Solver::Parts::prepare_in_place() {
  state = State{};
  null_space_removed = underflowed_norm = 0;
  if (bad_row) {  // there are no preconditioner data to bring, and the first sum needs none
    gpu->refresh_values();
  } else {
    gpu->refresh(preconditioner_data, preconditioner_version);
  }
  group().together([&] {
    gpu->take_rhs(there->b);
    gpu->clear_solution();
  });
  b_square = true_residual_in_place();  // of x = 0
  group().together([&] {
    if (there->guess) gpu->take_solution(*there->guess);
  });
  // Only where the square does not say it.
  amplitude = std::sqrt(b_square);
  if (!std::isfinite(b_square) || b_square < std::numeric_limits<double>::min())
    amplitude = group().max(gpu->largest_rhs());
  guess_is_finite = std::isfinite(group().max(there->guess ? gpu->largest_solution() : 0.0));
  double const most = amplitude * amplitude * static_cast<double>(matrix.global_rows());
  if (!std::isfinite(b_square) && std::isfinite(most))
    b_square = most;  // A 0 is not finite: the solve will say so
}

void Solver::Parts::give_answer() {
  if (there != nullptr) group().together([&] { gpu->give_solution(there->x); });
}

void Solver::Parts::describe_storage(Result& result) const {
  DeviceRows const& rows = *matrix.device_rows();
  auto& c = result.choices;
  if (rows.recipe) c.emplace_back("generated", "on the GPU: the host has none of the entries");
  if (rows.share)
    c.emplace_back("values", fmt::format("laid out on GPU {} from arrays in its memory",
                                         rows.share->rows.offsets.device));
  if (rows.value_indices)
    c.emplace_back("values", fmt::format("gathered on GPU {} from an array in its memory", rows.from.device));
  if (there != nullptr) c.emplace_back("vectors", fmt::format("b and x stay on GPU {}", there->b.device));
}

Result Solver::solve(GpuVectors const& vectors) {
  Parts& p = *parts_;
  p.group().together([&] { p.check_in_place(); });
  p.there = &vectors;
  struct Forget {
    Parts& parts;
    ~Forget() { parts.there = nullptr; }
  } const forget{p};
  return p.solve_or_lose();
}

}  // namespace hostless
