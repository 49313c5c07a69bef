// The checkpoints of a solve: what is saved, when, and what comes of one that cannot be written.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/whole_file.hpp"
#include "solve/methods/bodies.impl.hpp"
#include "solve/methods/method_vectors.hpp"
#include "solve/setup/manufactured.hpp"
#include "solve/solver_parts.hpp"

namespace hostless {

// With what a preconditioner has left that is applied apart from the rows: a method may go on by reading it.
std::vector<std::span<double>> Solver::Parts::checkpointed() {
  auto all = saved();
  if (!apart.empty()) all.emplace_back(apart);
  return all;
}

// What a checkpoint of this solve belongs to; costs one product with A, and one with M where that is a function.
void Solver::Parts::identify() {
  identity.plan = fingerprint(matrix.plan(), matrix.sweep());
  identity.rows = matrix.global_rows();
  identity.ranks = group().size();
  identity.method = static_cast<std::int32_t>(options.method);
  identity.preconditioner = static_cast<std::int32_t>(options.preconditioner);
  identity.precision = static_cast<std::int32_t>(options.matrix_precision);
  identity.reduction = static_cast<std::int32_t>(options.reduction);
  identity.null_space = options.null_space_constant ? 1 : 0;
  if (is_chebyshev()) {
    identity.degree = options.chebyshev.degree;
    identity.inner = static_cast<std::int32_t>(options.chebyshev.inner);
    identity.ratio = options.chebyshev.ratio;
    identity.upper = options.chebyshev.upper;
  }
  identity.rhs = checksum(group(), rhs);
  std::vector<double> u(rhs.size()), product(rhs.size());
  for (std::size_t i = 0; i < u.size(); ++i)
    u[i] = random_entry(14, matrix.global_row(static_cast<std::int64_t>(i)));
  multiply(u.data(), product.data());
  identity.matrix = checksum(group(), product);
  if (!options.preconditioner_function) return;
  options.preconditioner_function(u.data(), product.data());
  double square = 0, part = 0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    square += product[i] * product[i];
    part += product[i] * random_entry(15, matrix.global_row(static_cast<std::int64_t>(i)));
  }
  identity.function_norm = std::sqrt(group().sum(square));
  identity.function_part = group().sum(part);
}

void Solver::Parts::resume() {
  state = read_checkpoint(group(), options.resume_file, identity, state, history, checkpointed());
  if (state.iteration >= state.limit) ask_for_true_residual(state);
}

// Before the first iteration whoever names a folder that is not there can still correct it.
void Solver::Parts::check_checkpoint_file() const {
  if (options.checkpoint_file.empty()) return;
  group().together([&] {
    if (group().rank() == 0) TemporaryFile const probe(options.checkpoint_file);
  });
}

// A file that cannot be written later costs nobody the answer, and the next one may fit.
void Solver::Parts::save(Result& result) {
  if (group().any(options.run.function_failed && options.run.function_failed())) return;
  auto const now = checkpointed();
  auto const kept = std::min<std::size_t>(history.size(), static_cast<std::size_t>(state.iteration) + 1);
  try {
    write_checkpoint(group(), options.checkpoint_file, identity, state, {history.data(), kept},
                     {now.begin(), now.end()});
    ++result.checkpoints;
    saved_at = state.iteration;
    result.checkpoint_problem.clear();
  } catch (Error const& e) {
    if (e.code() == ErrorCode::peer_lost) throw;
    result.checkpoint_problem = e.what();
  }
}

// Where a solve that others are to go on with has iterations that no checkpoint has.
std::string Solver::Parts::word_of_checkpoint(Result const& result) const {
  bool const goes_on = state.status == Status::iteration_limit || state.status == Status::aborted;
  bool const is_behind = saved_at < state.iteration && result.resumed_at < state.iteration;
  if (options.checkpoint_file.empty() || !goes_on || !is_behind || !result.checkpoint_problem.empty())
    return {};
  return fmt::format(" {}: {}.",
                     saved_at < 0 ? "No checkpoint was written"
                                  : fmt::format("The last checkpoint is of iteration {}", saved_at),
                     gpu ? fmt::format("on a GPU only multiples of {} have one", options.checkpoint_every)
                         : "the solve ended at a true residual, where there can be none");
}

}  // namespace hostless
