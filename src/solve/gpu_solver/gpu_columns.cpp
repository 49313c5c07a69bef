#include "solve/gpu_solver/gpu_columns.hpp"

#include <fmt/format.h>

#include <string>

#include "base/counted.hpp"
#include "hostless/base/error.hpp"
#include "solve/gpu_solver/gpu_solver.hpp"

namespace hostless::gpu {

void check_columns(Problem const& problem, SolveOptions const& options) {
  int const columns = options.rhs_columns;
  if (columns == 1) return;
  auto const refuse_what = [&](std::string const& what, char const* why) {
    throw Error(ErrorCode::usage,
                fmt::format("{} with {} at once is refused ({}). Solve for them one by one.", what,
                            counted(columns, "right-hand side"), why));
  };
  if (problem.ranks > 1 || is_by_stream(problem))
    refuse_what("several GPUs, or a GPU transport other than peer,", "what goes between GPUs is of one side");
  if (problem.text.variant == Variant::rounded)
    refuse_what("a matrix in fp32 on a GPU", "some columns would have to multiply with the exact one");
  if (multiplied_apart(problem.rows->format))
    refuse_what(fmt::format("format {}", name(problem.rows->format)), "its products are of one vector");
}

void GpuSolver::run_columns(std::span<State> states, std::span<GpuColumn const> columns,
                            std::function<bool()> const& stop,
                            std::function<bool(std::int64_t, double, int)> const& progress) {
  auto const on_each = [&](auto const& use) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      solve_->use_column(static_cast<int>(c));
      use(columns[c], states[c]);
    }
    solve_->use_column(0);
  };
  on_each([&](GpuColumn const& column, State const& state) {
    solve_->put_rhs(column.b.data());
    for (std::size_t k = 0; k < column.fields.size(); ++k)
      solve_->put_field(static_cast<int>(k), column.fields[k].data());
    solve_->put_history(column.history.data(), kept_of(column.history, state));
  });
  bool asked = false;
  solve_->run(
      states[0], [&] { return asked || stop(); },
      [&](std::int64_t iteration, double rr, int column) {
        asked = progress(iteration, rr, column) || asked;
      });
  on_each([&](GpuColumn const& column, State const& state) {
    for (std::size_t k = 0; k < column.fields.size(); ++k)
      solve_->get_field(static_cast<int>(k), column.fields[k].data());
    solve_->get_history(column.history.data(), kept_of(column.history, state));
  });
}

}  // namespace hostless::gpu
