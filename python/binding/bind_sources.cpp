// Generated problems, files and plans.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

#include "base/setup_watch.hpp"
#include "binding.hpp"
#include "hostless/base/error.hpp"
#include "hostless/files/matrix_file.hpp"
#include "hostless/files/matrix_market.hpp"
#include "hostless/files/petsc_binary.hpp"
#include "hostless/files/vector_file.hpp"
#include "hostless/plan/checker.hpp"
#include "hostless/plan/summary.hpp"
#include "hostless/problems/problems.hpp"
#include "hostless/solve/option_table.hpp"
#include "model/route_prices.hpp"
#include "solve/matrix/memory_need.hpp"
#include "watched.hpp"

namespace hostless::python {
namespace {

// A vector that Python owns from here on, without a copy.
template <class T>
nb::object handed_over(std::vector<T>&& values) {
  auto kept = std::make_unique<std::vector<T>>(std::move(values));
  T* const data = kept->data();
  std::size_t const count = kept->size();
  nb::capsule const owner(kept.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {count}, owner));
}

template <class Index>
struct Gathered {
  std::vector<Index> offset, column;
  std::vector<double> value;
};

template <class Index>
Gathered<Index> gather(RowSource const& source) {
  constexpr std::int64_t panel_rows = 4096;
  Gathered<Index> all;
  all.offset.reserve(static_cast<std::size_t>(source.last_row()) + 1);
  all.offset.push_back(0);
  RowPanel panel;
  for (std::int64_t row = 0; row < source.last_row(); row += panel_rows) {
    source.panel(row, std::min(panel_rows, source.last_row() - row), panel);
    setup_step(std::min(panel_rows, source.last_row() - row));
    auto const before = static_cast<std::int64_t>(all.value.size());
    for (std::size_t r = 1; r < panel.offset.size(); ++r)
      all.offset.push_back(static_cast<Index>(before + panel.offset[r]));
    for (std::int64_t const column : panel.column) all.column.push_back(static_cast<Index>(column));
    all.value.insert(all.value.end(), panel.value.begin(), panel.value.end());
  }
  return all;
}

std::int64_t entries_of(RowSource const& source) {
  constexpr std::int64_t panel_rows = 4096;
  std::int64_t entries = 0;
  RowPanel panel;
  for (std::int64_t row = 0; row < source.last_row(); row += panel_rows) {
    source.panel(row, std::min(panel_rows, source.last_row() - row), panel);
    setup_step(std::min(panel_rows, source.last_row() - row));
    entries += panel.offset.back();
  }
  return entries;
}

template <class Index>
nb::tuple arrays_from(RowSource const& source) {
  Gathered<Index> all;
  run_watched([&] {
    SetupStage const stage("making arrays", source.last_row());
    all = gather<Index>(source);
  });
  return nb::make_tuple(handed_over(std::move(all.offset)), handed_over(std::move(all.column)),
                        handed_over(std::move(all.value)));
}

// (offsets, columns, values) as scipy likes them: int32 where it can count.
nb::tuple arrays_from(RowSource const& source) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  bool narrow = source.global_rows() <= most;
  if (narrow)
    run_watched([&] {
      SetupStage const stage("counting entries", source.last_row());
      narrow = entries_of(source) <= most;
    });
  return narrow ? arrays_from<std::int32_t>(source) : arrays_from<std::int64_t>(source);
}

bool is_preset(std::string const& name) {
  auto const presets = preset_names();
  return std::find(presets.begin(), presets.end(), name) != presets.end();
}

struct Problem {
  std::string name;
  std::vector<std::int64_t> size;
  std::optional<double> scale, contrast, long_edges, time_step;
  std::string boundary;
  std::uint64_t seed;

  ProblemOptions options() const {
    auto refuse = [](std::string const& text) { throw Error(ErrorCode::usage, text); };
    if (is_preset(name) && !size.empty())
      refuse("a size for the preset " + name + " (it has its own). Use scale.");
    if (!is_preset(name) && scale) refuse("a scale for " + name + " (it shrinks presets). Use size.");
    ProblemOptions p = is_preset(name) ? preset(name, scale.value_or(1.0)) : problem_of(name, size);
    if (contrast) p.contrast = *contrast;
    if (!boundary.empty()) p.boundary = boundary_from_name(boundary);
    p.long_edges = long_edges;
    if (time_step) p.time_step = time_step;  // a preset may have one
    p.seed = seed;
    return p;
  }
};

// Of offsets, columns and values as arrays_from makes them.
double array_bytes(std::int64_t rows, std::int64_t entries) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  double const index = rows <= most && entries <= most ? 4 : 8;
  return index * (static_cast<double>(rows) + static_cast<double>(entries)) +
         8 * static_cast<double>(entries);
}

nb::tuple generate(std::string const& name, std::vector<std::int64_t> const& size,
                   std::optional<double> scale, std::optional<double> contrast,
                   std::optional<double> long_edges, std::optional<double> time_step,
                   std::string const& boundary, std::uint64_t seed) {
  ProblemOptions const problem =
      Problem{name, size, scale, contrast, long_edges, time_step, boundary, seed}.options();
  auto const source = make_problem(problem, 1, 0);
  auto const group = single_group();
  MemoryNeed need;
  need.matrix = array_bytes(source->global_rows(), least_entries(problem));
  require_memory(*group, need, describe(problem));
  return arrays_from(*source);
}

// Of a file: the bytes that the system knows, which need not be UTF-8.
std::string path_of(nb::bytes const& name) { return {name.c_str(), name.size()}; }

nb::tuple read_rows(nb::bytes const& name) {
  std::string const path = path_of(name);
  auto const group = single_group();
  std::unique_ptr<StoredRows> rows;
  run_watched([&] {
    auto const check_room = [&](MatrixSizes const& sizes) {
      MemoryNeed need;
      need.matrix = array_bytes(sizes.rows, sizes.entries);
      need.setup = 8 * static_cast<double>(sizes.rows) +
                   static_cast<double>(sizes.entry_bytes) * static_cast<double>(sizes.entries);
      require_memory(*group, need, path);
    };
    rows = read_matrix(*group, path, check_room, Symmetry::any);
  });
  return arrays_from(*rows);
}

void write_rows(nb::bytes const& name, Indices const& offsets, Indices const& columns, Doubles const& values,
                bool petsc, bool symmetric) {
  std::string const path = path_of(name);
  Arrays const arrays =
      arrays_of(offsets, columns, values, static_cast<std::int64_t>(offsets.shape(0)) - 1, 0);
  run_watched([&] {
    auto const group = single_group();
    auto const source = rows_of(arrays, 0, arrays.rows);
    petsc ? write_petsc_matrix(*group, path, *source)
          : write_matrix_market(*group, path, *source, symmetric ? Symmetry::required : Symmetry::any);
  });
}

// Column after column.
nb::object read_entries(nb::bytes const& name, std::int64_t n, int columns) {
  std::string const path = path_of(name);
  std::vector<double> entries;
  run_watched([&] {
    SetupStage const stage("reading");
    auto const group = single_group();
    entries = read_columns_share(*group, path, {n, columns}, 0, n);
  });
  return handed_over(std::move(entries));
}

// (n, k); None: the file holds no vectors.
std::optional<std::pair<std::int64_t, int>> vector_shape_of(nb::bytes const& name) {
  std::string const path = path_of(name);
  Away const away;
  auto const shape = vector_shape(*single_group(), path);
  if (!shape) return {};
  return std::pair{shape->rows, shape->columns};
}

void write_entries(nb::bytes const& name, Doubles const& values, int columns) {
  std::string const path = path_of(name);
  std::span<double const> const entries(values.data(), values.shape(0));
  run_watched([&] {
    SetupStage const stage("writing");
    write_columns(*single_group(), path, {static_cast<std::int64_t>(entries.size()) / columns, columns}, 0,
                  entries);
  });
}

// Items that each rank sends to each other, by the plan's messages: [sender * ranks + receiver].
std::vector<std::int64_t> traffic_of(std::vector<ExchangePlan> const& plans) {
  std::size_t const ranks = plans.size();
  std::vector<std::int64_t> items(ranks * ranks);
  for (ExchangePlan const& one : plans) {
    for (Stage const& stage : one.stages) {
      for (Message const& m : stage.out)
        items[static_cast<std::size_t>(m.source) * ranks + static_cast<std::size_t>(m.target)] += m.items;
    }
  }
  return items;
}

// (JSON, table, why_partition, why_block, complaints, traffic). machine: as --machine; empty: nothing is priced
nb::tuple plan(Indices const& offsets, Indices const& columns, Doubles const& values, Choices const& choices,
               int ranks, std::string const& machine, bool in_gpu_memory) {
  constexpr int item_bytes = 8;  // one value in fp64
  Arrays const arrays =
      arrays_of(offsets, columns, values, static_cast<std::int64_t>(offsets.shape(0)) - 1, 0);
  MatrixOptions const options = choices.matrix_options();
  PlannedMatrix planned;
  std::vector<std::string> complaints;
  PlanSummary summary;
  std::optional<MachineModel> where;
  if (!machine.empty()) where = machine_with_costs(machine);
  std::vector<PricedWay> ways;
  run_watched([&] {
    run_on_threads(ranks, [&](Group& group) {
      auto const source = rows_of(arrays, share_first(arrays.rows, ranks, group.rank()),
                                  share_first(arrays.rows, ranks, group.rank() + 1));
      PlannedMatrix mine = plan_matrix(group, *source, options);
      if (group.rank() == 0) planned = std::move(mine);
    });
    PlanSet set{{}, std::move(planned.patterns), std::move(planned.plans)};
    complaints = check(set.plans, set.patterns);
    if (where && complaints.empty()) {  // who counts them takes plans for sound
      ways = price_routes(*where, set, in_gpu_memory ? MemoryKind::gpu : MemoryKind::host, item_bytes);
      if (options.automatic_route) take_cheapest(ways, set);
      complaints = check(set.plans, set.patterns);
    }
    summary = summarise(set.plans);
    planned.plans = std::move(set.plans);
  });
  std::string json = to_json(summary), text = table(summary);
  if (!ways.empty()) {
    json = with_prices(json, *where, ways, item_bytes);
    text += table(*where, ways, item_bytes);
  }
  return nb::make_tuple(json, text, planned.why_partition, planned.why_block, complaints,
                        handed_over(traffic_of(planned.plans)));
}

}  // namespace

void bind_sources(nb::module_& module) {
  module.def("problem_names", problem_names);
  module.def("preset_names", preset_names);
  module.def("generate", generate, nb::arg("name"), nb::arg("size"), nb::arg("scale").none(),
             nb::arg("contrast").none(), nb::arg("long_edges").none(), nb::arg("time_step").none(),
             nb::arg("boundary"), nb::arg("seed"));
  module.def("read_rows", read_rows);
  module.def("write_rows", write_rows);
  module.def("vector_shape", vector_shape_of);
  module.def("read_entries", read_entries);
  module.def("write_entries", write_entries);
  module.def("plan", plan);
}

}  // namespace hostless::python
