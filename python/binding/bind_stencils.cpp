// Stencils: what the package's _stencil calls, with addresses that it has looked at.
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <tuple>

#include "binding.hpp"
#include "hostless/stencil/catalogue.hpp"
#include "stencils.hpp"

namespace hostless::python {
namespace {

using ChangeWords = std::tuple<std::int64_t, std::vector<double>, std::vector<double>>;

ChangeWords words_of(StencilChange const& change) { return {change.step, change.norm, change.largest}; }

/// callback  lives longer than what is returned, which is empty for None
std::function<bool(StencilChange const&)> calls(nb::object const& callback) {
  if (callback.is_none()) return {};
  return [&callback](StencilChange const& change) {
    nb::object const answer = callback(words_of(change));
    int const wants_end = PyObject_IsTrue(answer.ptr());
    if (wants_end < 0) throw nb::python_error();
    return wants_end != 0;
  };
}
StencilReport run(StencilWords const& words, StencilTask const& task, nb::object const& callback) {
  return run_stencil(kernel_of(words), task, calls(callback));
}
StencilReport run_among(Ranks& ranks, StencilWords const& words, StencilTask const& task,
                        nb::object const& callback) {
  return run_stencil_among(ranks, kernel_of(words), task, calls(callback));
}
/// (low, high) of the axes of Grid.
auto box(StencilTask const& task, std::array<int, 3> const& radius, int axes, int rank, int ranks) {
  Box const cells = stencil_box(task, radius, axes, rank, ranks);
  return std::tuple{cells.low, cells.high};
}

void bind_stencil_words(nb::module_& module) {
  nb::class_<StencilWords>(module, "StencilWords", "A stencil, in words.")
      .def(nb::init<>())
      .def_rw("name", &StencilWords::name)
      .def_rw("axes", &StencilWords::axes)
      .def_rw("value_bytes", &StencilWords::value_bytes)
      .def_rw("parameters", &StencilWords::parameters)
      .def_rw("update", &StencilWords::update)
      .def_rw("radius", &StencilWords::radius)
      .def_rw("star", &StencilWords::star)
      .def_rw("fields", &StencilWords::fields)
      .def_rw("coefficients", &StencilWords::coefficients);
  nb::class_<StencilTask>(module, "StencilTask", "What a stencil is run on, how far and how.")
      .def(nb::init<>())
      .def_rw("extent", &StencilTask::extent)
      .def_rw("boundary", &StencilTask::boundary)
      .def("add",
           [](StencilTask& self, std::uintptr_t address, std::array<std::int64_t, 3> const& stride) {
             self.arrays.push_back({reinterpret_cast<void*>(address), stride});
           })
      .def_rw("steps", &StencilTask::steps)
      .def_rw("ranks", &StencilTask::ranks)
      .def_rw("ranks_along", &StencilTask::ranks_along)
      .def_rw("depth", &StencilTask::depth)
      .def_rw("block_steps", &StencilTask::block_steps)
      .def_rw("every", &StencilTask::every)
      .def_rw("tolerance", &StencilTask::tolerance)
      .def_rw("time_limit_s", &StencilTask::time_limit_s);
}

nb::dict named(NamedStencil const& stencil) {
  nb::dict words;
  words["name"] = stencil.name;
  words["axes"] = stencil.axes;
  nb::list fields, parameters;
  for (char const* const field : stencil.fields) fields.append(field);
  for (char const* const parameter : stencil.parameters) parameters.append(parameter);
  words["fields"] = fields;
  words["parameters"] = parameters;
  nb::dict defaults;
  for (int const axes : stencil.axes) defaults[nb::int_(axes)] = defaults_of(stencil, axes);
  words["defaults"] = defaults;
  nb::dict radius;
  for (int const axes : stencil.axes)
    radius[nb::int_(axes)] = make_stencil(stencil.name, axes, sizeof(double)).radius;
  words["radius"] = radius;
  words["meaning"] = stencil.meaning;
  return words;
}

}  // namespace

void bind_stencils(nb::module_& module) {
  bind_stencil_words(module);
  nb::class_<StencilReport>(module, "StencilReport", "How a run of a stencil ended.")
      .def_prop_ro("status", [](StencilReport const& r) { return name(r.result.status); })
      .def_prop_ro("steps", [](StencilReport const& r) { return r.result.steps; })
      .def_prop_ro("history",
                   [](StencilReport const& r) {
                     std::vector<ChangeWords> all;
                     for (StencilChange const& one : r.result.history) all.push_back(words_of(one));
                     return all;
                   })
      .def_prop_ro("message", [](StencilReport const& r) { return r.result.message; })
      .def_prop_ro("run_s", [](StencilReport const& r) { return r.result.run_s; })
      .def_prop_ro("exchange_s", [](StencilReport const& r) { return r.result.exchange_s; })
      .def_ro("ranks", &StencilReport::ranks)
      .def_ro("ranks_along", &StencilReport::ranks_along)
      .def_ro("depth", &StencilReport::depth)
      .def_ro("block_steps", &StencilReport::block_steps);
  module.def("run_stencil", run, nb::arg("words"), nb::arg("task"), nb::arg("callback").none(),
             "Steps arrays in place, without the GIL.");
  module.def("run_stencil_among", run_among, nb::arg("ranks"), nb::arg("words"), nb::arg("task"),
             nb::arg("callback").none(), "Steps a rank's box in place, without the GIL. Collective.");
  module.def("stencil_box", box, nb::arg("task"), nb::arg("radius"), nb::arg("axes"), nb::arg("rank"),
             nb::arg("ranks"), "Cells [low, high) of a rank.");
  module.def("named_stencils", [] {
    nb::list all;
    for (NamedStencil const& one : named_stencils()) all.append(named(one));
    return all;
  });
  // What is compiled at run time declares CellBlock anew, and must say the same.
  nb::dict offsets;
  offsets["out"] = offsetof(CellBlock, out);
  offsets["in"] = offsetof(CellBlock, in);
  offsets["in_stride"] = offsetof(CellBlock, in_stride);
  offsets["out_stride"] = offsetof(CellBlock, out_stride);
  offsets["rows"] = offsetof(CellBlock, rows);
  offsets["cells"] = offsetof(CellBlock, cells);
  offsets["parameters"] = offsetof(CellBlock, parameters);
  module.attr("CELL_BLOCK_OFFSETS") = offsets;
}

}  // namespace hostless::python
