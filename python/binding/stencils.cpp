#include "stencils.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/processors.hpp"
#include "hostless/base/deadline.hpp"
#include "hostless/base/error.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/stencil/catalogue.hpp"
#include "stencil/plan_steps.hpp"
#include "thread_team.hpp"

namespace hostless::python {
namespace {

template <class T>
std::vector<std::byte> bytes_of(std::vector<double> const& values) {
  std::vector<T> rounded;
  for (double const value : values) rounded.push_back(static_cast<T>(value));
  std::vector<std::byte> bytes(rounded.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), rounded.data(), bytes.size());
  return bytes;
}

Grid grid_of(StencilTask const& task) {
  Grid grid;
  grid.extent = task.extent;
  for (std::size_t a = 0; a < 3; ++a) grid.boundary[a] = grid_boundary_from(task.boundary[a].c_str());
  return grid;
}

int ranks_for(StencilTask const& task, Grid const& grid, StencilKernel const& kernel) {
  auto const& along = task.ranks_along;
  if (along != std::array<int, 3>{0, 0, 0} && task.ranks == 0) return along[0] * along[1] * along[2];
  if (task.ranks > 0) return task.ranks;
  return ranks_worth(grid, kernel, task.depth, task.steps, processors_of_rank(1, true));
}

/// What ranks share during a run: the answer of the callback to the look of a step.
struct Answer {
  std::atomic<std::int64_t> step{-1};
  std::atomic<bool> ends{false};
};

/// One rank's part of a run.
class Steps {
 public:
  Steps(Transport& transport, Grid const& grid, StencilKernel const& kernel, StencilTask const& task)
      : task_(task),
        group_(transport.group()),
        fields_(kernel.fields),
        run_(transport, grid, kernel, options(task)) {
    for (int k = 0; k < kernel.arrays(); ++k) run_.give(k, task.arrays[static_cast<std::size_t>(k)]);
  }

  StencilReport run(ThreadTeam& team, std::function<bool(StencilChange const&)> const& callback,
                    Answer& answer) {
    bool ended_by_callback = false;
    auto const begin = Clock::now();
    auto const is_late = [&] {
      return task_.time_limit_s > 0 &&
             std::chrono::duration<double>(Clock::now() - begin).count() >= task_.time_limit_s;
    };
    StencilStop stop;
    stop.every = task_.every;
    stop.tolerance = task_.tolerance;
    stop.stop_requested = [&] { return team.stop() || is_late(); };
    if (callback)
      stop.observer = [&](StencilChange const& change) {
        ended_by_callback = ends(team, callback, change, answer);
        return ended_by_callback;
      };
    StencilResult result = run_.run(task_.steps, stop);
    if (result.status == StencilStatus::aborted) {
      bool const late = group_.max(is_late() ? 1 : 0) != 0;
      if (ended_by_callback) {
        result.message = fmt::format("the callback asked to stop after step {}", result.steps);
      } else if (late) {
        result.message = fmt::format("the time limit of {:g} s was reached after step {}", task_.time_limit_s,
                                     result.steps);
      }
    }
    if (result.status != StencilStatus::peer_lost) take();
    return {std::move(result), group_.size(), run_.depth(), run_.block_steps(), run_.partition().ranks_along};
  }

 private:
  static StencilOptions options(StencilTask const& task) {
    StencilOptions options;
    options.depth = task.depth;
    options.block_steps = task.block_steps;
    options.ranks_along = task.ranks_along;
    return options;
  }

  /// Whether the callback, or what it raised, ends the run.
  bool ends(ThreadTeam& team, std::function<bool(StencilChange const&)> const& callback,
            StencilChange const& change, Answer& answer) {
    take();
    group_.barrier();
    if (group_.rank() == 0) {
      bool wants_end = false;
      bool const called = team.ask([&] { wants_end = callback(change); });
      answer.ends.store(!called || wants_end);
      answer.step.store(change.step);
    }
    // bounded: rank 0 answers, after as long as the user's function takes
    for (Backoff backoff; answer.step.load() < change.step;) backoff.pause();
    return answer.ends.load();
  }

  void take() const {
    for (int f = 0; f < fields_; ++f) run_.take(f, task_.arrays[static_cast<std::size_t>(f)]);
  }

  StencilTask const& task_;
  Group& group_;
  int fields_;
  StencilRun run_;
};

}  // namespace

StencilKernel kernel_of(StencilWords const& words) {
  if (words.update == 0) return make_stencil(words.name, words.axes, words.value_bytes, words.parameters);
  StencilKernel kernel;
  kernel.name = words.name;
  kernel.axes = words.axes;
  kernel.radius = words.radius;
  kernel.star = words.star;
  kernel.fields = words.fields;
  kernel.coefficients = words.coefficients;
  kernel.value_bytes = words.value_bytes;
  kernel.update = reinterpret_cast<CellFunction>(words.update);
  kernel.parameters = words.value_bytes == sizeof(float) ? bytes_of<float>(words.parameters)
                                                         : bytes_of<double>(words.parameters);
  return kernel;
}

StencilReport run_stencil(StencilKernel const& kernel, StencilTask const& task,
                          std::function<bool(StencilChange const&)> const& callback) {
  check_kernel(kernel);
  if (task.arrays.size() != static_cast<std::size_t>(kernel.arrays()))
    throw Error(ErrorCode::usage,
                fmt::format("{} arrays for stencil '{}' (it has {} fields and {} coefficients). Pass "
                            "one for each.",
                            task.arrays.size(), kernel.name, kernel.fields, kernel.coefficients));
  Grid const grid = grid_of(task);
  StencilReport report;
  Answer answer;
  ThreadTeam team(ranks_for(task, grid, kernel), nullptr);
  team.run([&](Transport& transport) {
    StencilReport mine = Steps(transport, grid, kernel, task).run(team, callback, answer);
    if (transport.group().rank() == 0) report = std::move(mine);
  });
  return report;
}

}  // namespace hostless::python
