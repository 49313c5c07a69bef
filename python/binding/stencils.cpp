#include "stencils.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include "away.hpp"
#include "base/processors.hpp"
#include "hostless/base/deadline.hpp"
#include "hostless/base/error.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/stencil/catalogue.hpp"
#include "stencil/agreement.hpp"
#include "stencil/plan_steps.hpp"
#include "thread_team.hpp"
#include "transport/agreement.hpp"

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

BoxPartition partition_of(StencilTask const& task, StencilKernel const& kernel, int ranks) {
  StencilOptions options;
  options.ranks_along = task.ranks_along;
  return partition_for(ranks, grid_of(task), kernel, options);
}

int ranks_for(StencilTask const& task, Grid const& grid, StencilKernel const& kernel) {
  auto const& along = task.ranks_along;
  if (along != std::array<int, 3>{0, 0, 0} && task.ranks == 0) return along[0] * along[1] * along[2];
  if (task.ranks > 0) return task.ranks;
  int const most = processors_of_rank(1, true);
  return ranks_worth(grid, kernel, task.depth, task.steps, most,
                     kernel.axes == 3 && most > 1 ? measure_handshake() : 0);
}

/// A rank's own array as one of all cells, of which it is asked for those of its box alone.
CellArray of_all_cells(CellArray const& mine, Box const& box) {
  auto address = reinterpret_cast<std::uintptr_t>(mine.data);
  for (std::size_t a = 0; a < 3; ++a) address -= static_cast<std::uintptr_t>(box.low[a] * mine.stride[a]);
  return {reinterpret_cast<void*>(address), mine.stride};
}

/// One rank's part of a run.
class Steps {
 public:
  /// are_boxes  the arrays are each rank's own
  Steps(Transport& transport, Grid const& grid, StencilKernel const& kernel, StencilTask const& task,
        bool are_boxes)
      : task_(task),
        group_(transport.group()),
        fields_(kernel.fields),
        arrays_(task.arrays),
        run_(transport, grid, kernel, options(task)) {
    for (int k = 0; k < kernel.arrays(); ++k) {
      CellArray& array = arrays_[static_cast<std::size_t>(k)];
      if (are_boxes) array = of_all_cells(array, run_.box());
      run_.give(k, array);
    }
  }

  /// wants_end  polled, as StencilStop::stop_requested
  /// looks      after each look, or empty; true ends the run
  StencilReport run(std::function<bool()> const& wants_end,
                    std::function<bool(StencilChange const&)> const& looks) {
    bool ended_by_callback = false;
    auto const begin = Clock::now();
    auto const is_late = [&] {
      return task_.time_limit_s > 0 &&
             std::chrono::duration<double>(Clock::now() - begin).count() >= task_.time_limit_s;
    };
    StencilStop stop;
    stop.every = task_.every;
    stop.tolerance = task_.tolerance;
    stop.stop_requested = [&] { return wants_end() || is_late(); };
    if (looks)
      stop.observer = [&](StencilChange const& change) {
        ended_by_callback = looks(change);
        return ended_by_callback;
      };
    StencilResult result = run_.run(task_.steps, stop);
    if (result.status == StencilStatus::aborted) {
      int const why = group_.max(ended_by_callback ? 2 : is_late() ? 1 : 0);
      if (why == 2) {
        result.message = fmt::format("the callback asked to stop after step {}", result.steps);
      } else if (why == 1) {
        std::string const whose =
            task_.time_limit_s > 0 ? fmt::format("{:g} s", task_.time_limit_s) : "another rank";
        result.message = fmt::format("the time limit of {} was reached after step {}", whose, result.steps);
      }
    }
    if (result.status != StencilStatus::peer_lost) take();
    return {std::move(result), group_.size(), run_.depth(), run_.block_steps(), run_.partition().ranks_along};
  }

  /// Into the caller's arrays.
  void take() const {
    for (int f = 0; f < fields_; ++f) run_.take(f, arrays_[static_cast<std::size_t>(f)]);
  }

 private:
  static StencilOptions options(StencilTask const& task) {
    StencilOptions options;
    options.depth = task.depth;
    options.block_steps = task.block_steps;
    options.ranks_along = task.ranks_along;
    return options;
  }

  StencilTask const& task_;
  Group& group_;
  int fields_;
  std::vector<CellArray> arrays_;
  StencilRun run_;
};

/// The answer of the callback to the look of a step, for ranks that are threads: the first one calls it when all
/// have put their cells into the arrays.
class SharedCallback {
 public:
  SharedCallback(ThreadTeam& team, std::function<bool(StencilChange const&)> const& callback)
      : team_(team), callback_(callback) {}

  bool ends(Group& group, StencilChange const& change) {
    group.barrier();
    if (group.rank() == 0) {
      bool wants_end = false;
      bool const called = team_.ask([&] { wants_end = callback_(change); });
      ends_.store(!called || wants_end);
      step_.store(change.step);
    }
    // bounded: rank 0 answers, after as long as the user's function takes
    for (Backoff backoff; step_.load() < change.step;) backoff.pause();
    return ends_.load();
  }

 private:
  ThreadTeam& team_;
  std::function<bool(StencilChange const&)> const& callback_;
  std::atomic<std::int64_t> step_{-1};
  std::atomic<bool> ends_{false};
};

void check_task(StencilKernel const& kernel, StencilTask const& task) {
  check_kernel(kernel);
  if (task.arrays.size() != static_cast<std::size_t>(kernel.arrays()))
    throw Error(ErrorCode::usage,
                fmt::format("{} arrays for stencil '{}' (it has {} fields and {} coefficients). Pass "
                            "one for each.",
                            task.arrays.size(), kernel.name, kernel.fields, kernel.coefficients));
}

/// An exception of Python's, in words.
std::string text_of(std::exception_ptr const& raised) {
  try {
    std::rethrow_exception(raised);
  } catch (std::exception const& problem) {
    return problem.what();
  } catch (...) {
    return "something that is no exception";
  }
}

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
  check_task(kernel, task);
  Grid const grid = grid_of(task);
  StencilReport report;
  ThreadTeam team(ranks_for(task, grid, kernel), nullptr);
  SharedCallback shared(team, callback);
  team.run([&](Transport& transport) {
    Steps steps(transport, grid, kernel, task, false);
    std::function<bool(StencilChange const&)> looks;
    if (callback)
      looks = [&](StencilChange const& change) {
        steps.take();
        return shared.ends(transport.group(), change);
      };
    StencilReport mine = steps.run([&] { return team.stop(); }, looks);
    if (transport.group().rank() == 0) report = std::move(mine);
  });
  return report;
}

StencilReport run_stencil_among(Ranks& ranks, StencilKernel const& kernel, StencilTask const& task,
                                std::function<bool(StencilChange const&)> const& callback) {
  check_task(kernel, task);
  Ranks::Use const use(ranks);
  // Of threads, too: boxes are those that the arrays are of.
  StencilTask boxes = task;
  boxes.ranks_along = partition_of(task, kernel, ranks.size()).ranks_along;
  Group& group = ranks.transport().group();
  std::exception_ptr raised;  // on this rank
  auto const try_or_end = [&](auto const& call) {
    if (raised) return true;
    try {
      return call();
    } catch (...) {
      raised = std::current_exception();
      return true;
    }
  };
  Steps steps(ranks.transport(), grid_of(boxes), kernel, boxes, true);
  std::function<bool(StencilChange const&)> looks;
  if (callback)
    looks = [&](StencilChange const& change) {
      steps.take();
      return try_or_end([&] {
        Back const back;
        return callback(change);
      });
    };
  StencilReport report = steps.run(
      [&] {
        return try_or_end([&] {
          ranks.look();
          return false;
        });
      },
      looks);
  bool const is_lost = report.result.status == StencilStatus::peer_lost;
  if (raised || !is_lost) {
    std::optional<Error> problem;
    if (raised)
      problem.emplace(ErrorCode::aborted, fmt::format("rank {}: {}", group.rank(), text_of(raised)));
    try {
      if (!is_lost) static_cast<void>(agree(group, problem, "", false));
    } catch (...) {
      if (!raised) throw;  // this one's own says more
    }
  }
  if (raised) std::rethrow_exception(raised);
  return report;
}

Box stencil_box(StencilTask const& task, std::array<int, 3> radius, int axes, int rank, int ranks) {
  StencilKernel looks;
  looks.axes = axes, looks.radius = radius;
  return partition_of(task, looks, ranks).box(rank);
}

}  // namespace hostless::python
