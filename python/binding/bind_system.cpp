// Matrices and their solves.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <tuple>

#include "binding.hpp"
#include "hostless/base/error.hpp"
#include "hostless/transport/mpi.hpp"
#include "solve/gpu_solver/gpu_loader.hpp"
#include "system.hpp"
#include "watched.hpp"

namespace hostless::python {
namespace {

using OwnedDoubles = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

[[noreturn]] void refuse(std::string const& text) { throw Error(ErrorCode::usage, text); }

bool is_wide(Indices const& indices) {
  if (indices.dtype() == nb::dtype<std::int64_t>()) return true;
  if (indices.dtype() == nb::dtype<std::int32_t>()) return false;
  refuse("offsets or columns that are neither int32 nor int64 (rows are counted with them). Convert them.");
}

// A new array that Python owns.
OwnedDoubles owned(double const* values, std::size_t count) {
  auto copy = std::make_unique<double[]>(count);
  std::copy_n(values, count, copy.get());
  double* const raw = copy.release();
  nb::capsule const owner(raw, [](void* p) noexcept { delete[] static_cast<double*>(p); });
  return OwnedDoubles(raw, {count}, owner);
}

// Calls a Python function y = f(x); the package has seen to it that it returns float64 without gaps.
std::function<void(double const*, double*)> function_of(nb::callable const& function, std::size_t count) {
  return [function, count](double const* from, double* to) {
    nb::object const given = function(owned(from, count));
    auto const values = nb::cast<Doubles>(given);
    if (values.shape(0) != count) refuse("a function gave a vector of another length. Correct the operator.");
    std::copy_n(values.data(), count, to);
  };
}

void check_length(System const& system, Doubles const& b, WritableDoubles const& x, int columns = 1) {
  auto const rows = static_cast<std::size_t>(system.rows() * columns);
  if (b.shape(0) != rows || x.shape(0) != rows)
    refuse("vectors of another length than the matrix has rows. Pass one entry a row.");
}

// The arrays of this process, once those of all processes have been looked at. rows: how many there must be,
// if that is known.
Arrays agreed_arrays(System& system, Indices const& offsets, Indices const& columns, Doubles const& values,
                     std::int64_t size, std::int64_t first_row, std::optional<std::int64_t> rows = {}) {
  Arrays arrays;
  std::optional<Error> problem;
  try {
    arrays = arrays_of(offsets, columns, values, size, first_row);
    if (rows && arrays.rows != *rows) refuse("another number of rows. Make a new hostless.Matrix.");
  } catch (Error const& e) {
    problem = e;
  }
  system.agree(problem);
  return arrays;
}

SolveReport report_of(System const& system, std::string const& input, Result result) {
  SolveReport report;
  report.input = input;
  report.result = std::move(result);
  report.result.message = as_python_spells(report.result.message);
  for (auto& column : report.result.columns) column.message = as_python_spells(column.message);
  report.rows = system.global_rows();
  report.entries = system.entries();
  report.time_input_s = system.time_input_s();
  report.peak_rank_bytes = peak_process_bytes();
  report.communication = system.communication();
  report.layout = system.layout();
  report.provenance = find_provenance();
  // Other words are the program's own, and may be nobody's business.
  report.provenance.command.resize(std::min<std::size_t>(report.provenance.command.size(), 1));
  for (auto& [what, text] : report.result.choices) {
    if (what == "values" && system.copied_bytes() > 0)
      text += fmt::format(", a copy of the host's ({:.1f} MB)",
                          1e-6 * static_cast<double>(system.copied_bytes()));
  }
  return report;
}

// One of each right-hand side.
std::vector<SolveReport> solve(System& system, std::string const& input, Choices const& choices,
                               Doubles const& b, WritableDoubles const& x, nb::object const& callback,
                               nb::object const& preconditioner, bool single) {
  check_length(system, b, x, choices.solve.rhs_columns);
  auto const count = static_cast<std::size_t>(system.rows());
  Hooks hooks;
  if (!callback.is_none()) {
    // Each call gets an array of its own: people keep them.
    hooks.callback = [&callback, count](double const* now) { callback(owned(now, count)); };
  }
  if (!preconditioner.is_none())
    hooks.preconditioner = function_of(nb::borrow<nb::callable>(preconditioner), count);
  SolveReport const whole =
      report_of(system, input, system.solve(choices, hooks, b.data(), x.data(), single));
  if (whole.result.columns.empty()) return {whole};
  std::vector<SolveReport> all;
  for (std::size_t c = 0; c < whole.result.columns.size(); ++c) all.push_back(report_of_column(whole, c));
  return all;
}

void bind_report(nb::module_& module) {
  auto of = [](auto member) { return [member](SolveReport const& r) { return r.result.*member; }; };
  nb::class_<SolveReport>(module, "Report", "A solve that has ended.")
      .def_prop_ro("status", [](SolveReport const& r) { return name(r.result.status); })
      .def_prop_ro("message", of(&Result::message))
      .def_prop_ro("lost_by_rounding", of(&Result::lost_by_rounding))
      .def_prop_ro("unwritten", [](SolveReport const& r) { return r.result.unwritten(); })
      .def_prop_ro("iterations", of(&Result::iterations))
      .def_prop_ro("rows", [](SolveReport const& r) { return r.rows; })
      .def_prop_ro("residual_history",
                   [](SolveReport const& r) {
                     return owned(r.result.residual_history.data(), r.result.residual_history.size());
                   })
      .def_prop_ro("choices", of(&Result::choices))
      .def(
          "to_json", [](SolveReport const& r) { return to_json(r); }, "What `hostless solve --json` writes.")
      .def(
          "summary", [](SolveReport const& r) { return summary(r); }, "What `hostless solve` prints.");
}

std::optional<std::tuple<double, std::int64_t, std::int64_t, double, double>> mirror(Indices const& offsets,
                                                                                     Indices const& columns,
                                                                                     Doubles const& values) {
  Arrays const arrays =
      arrays_of(offsets, columns, values, static_cast<std::int64_t>(offsets.shape(0)) - 1, 0);
  std::optional<Mirror> found;
  run_watched([&] { found = compare_with_mirror(arrays); });
  if (!found) return {};
  return std::tuple{found->difference, found->row, found->column, found->value, found->other};
}

// A function of the user may lead back to its matrix: the garbage collector looks here.
int visit_system(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<System>(self)->callable().ptr());
  return 0;
}
int clear_system(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<System>(self)->drop_callable();
  return 0;
}
PyType_Slot system_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_system)},
                              {Py_tp_clear, reinterpret_cast<void*>(clear_system)},
                              {0, nullptr}};

int visible_gpus() {
  int most = 0;
  for (gpu::Found const& found : gpu::libraries()) {
    if (found.library != nullptr) most = std::max(most, found.library->devices());
  }
  return most;
}

}  // namespace

Arrays unchecked_arrays_of(Indices const& offsets, Indices const& columns, Doubles const& values,
                           std::int64_t columns_of_matrix, std::int64_t first_row) {
  Arrays a;
  a.columns = columns_of_matrix;
  a.first_row = first_row;
  a.rows = static_cast<std::int64_t>(offsets.shape(0)) - 1;
  a.wide = is_wide(offsets);
  if (a.wide != is_wide(columns)) refuse("offsets and columns of two types. Convert one of them.");
  a.offset = offsets.data();
  a.column = columns.data();
  a.value = values.data();
  if (a.rows < 0) refuse("no offsets (a matrix of n rows has n + 1). Pass them.");
  std::int64_t const entries = a.offset_at(a.rows);
  if (entries < 0 || columns.shape(0) < static_cast<std::size_t>(entries) ||
      values.shape(0) < static_cast<std::size_t>(entries))
    refuse("fewer columns or values than the offsets count. Pass whole arrays.");
  return a;
}

Arrays arrays_of(Indices const& offsets, Indices const& columns, Doubles const& values,
                 std::int64_t columns_of_matrix, std::int64_t first_row) {
  Arrays const a = unchecked_arrays_of(offsets, columns, values, columns_of_matrix, first_row);
  Away const away;
  check_arrays(a);
  return a;
}

namespace {

// How one comes about, and gets other values.
void bind_making(nb::class_<System>& type) {
  type.def("__init__",
           [](System* self, Indices const& offsets, Indices const& columns, Doubles const& values,
              std::int64_t size, Choices const& choices,
              int ranks) { new (self) System(arrays_of(offsets, columns, values, size, 0), choices, ranks); })
      .def("__init__", [](System* self, std::string const& vendor, int communicator,
                          bool by_reach) { new (self) System(vendor, communicator, by_reach); })
      .def("__init__", [](System* self, GpuRows const& rows, bool same_bits, Choices const& choices,
                          int ranks) { new (self) System(rows, same_bits, choices, ranks); })
      .def("__init__",
           [](System* self, std::int64_t rows, nb::callable const& product) {
             auto const size = static_cast<std::size_t>(rows);
             nb::handle const held = product;
             new (self) System(
                 rows,
                 [held, size](double const* from, double* to) {
                   function_of(nb::borrow<nb::callable>(held), size)(from, to);
                 },
                 product);
           })
      .def(
          "agree",
          [](System& self, std::optional<std::pair<std::string, std::string>> const& problem,
             std::string const& same, bool flag) {
            std::optional<Error> mine;
            if (problem) mine.emplace(code_of(problem->first), problem->second);
            return self.agree(mine, same, flag);
          },
          nb::arg("problem").none(), nb::arg("same"), nb::arg("flag"))
      .def("lay_out",
           [](System& self, Indices const& offsets, Indices const& columns, Doubles const& values,
              std::int64_t size, std::int64_t first_row, Choices const& choices) {
             self.lay_out(agreed_arrays(self, offsets, columns, values, size, first_row), choices);
           })
      .def("update_values",
           [](System& self, Indices const& offsets, Indices const& columns, Doubles const& values,
              std::int64_t size, std::int64_t first_row) {
             self.update_values(agreed_arrays(self, offsets, columns, values, size, first_row, self.rows()));
           })
      .def("update_values",
           [](System& self, GpuRows const& rows, bool same_bits) { self.update_values(rows, same_bits); });
}

void bind_solving(nb::class_<System>& type) {
  type.def("solve", solve, nb::arg("input"), nb::arg("choices"), nb::arg("b"), nb::arg("x"),
           nb::arg("callback").none(), nb::arg("preconditioner").none(), nb::arg("single"))
      .def(
          "solve_in_place",
          [](System& self, std::string const& input, Choices const& choices, GpuArray const& b,
             std::optional<GpuArray> const& guess, GpuArray const& x) {
            return report_of(self, input, self.solve(choices, {b, guess, x}));
          },
          nb::arg("input"), nb::arg("choices"), nb::arg("b"), nb::arg("guess").none(), nb::arg("x"))
      .def("multiply", [](System& self, Choices const& choices, Doubles const& x, WritableDoubles const& y) {
        check_length(self, x, y);
        self.multiply(choices, x.data(), y.data());
      });
}

}  // namespace

void bind_system(nb::module_& module) {
  bind_report(module);
  module.def("mirror", mirror, nb::arg("offsets"), nb::arg("columns"), nb::arg("values"),
             "The entry furthest from its mirror: (difference, row, column, value, mirror), or None.");
  module.def(
      "end_all", end_all, nb::arg("seconds"),
      "At the interpreter's end: all that runs stops, and is waited for. Only this thread begins anything.");
  module.def("visible_gpus", visible_gpus, "GPUs that the GPU libraries see; 0 without one.");
  module.def("mpi_vendor", []() -> std::optional<std::string> {
    auto const vendor = mpi_vendor_of_this_process();
    if (!vendor) return {};
    return name(*vendor);
  });
  nb::class_<System> type(module, "System", nb::type_slots(system_slots), "A matrix on its ranks.");
  bind_making(type);
  bind_solving(type);
  type.def("say_copied", &System::say_copied, nb::arg("bytes"), nb::arg("seconds") = 0.0)
      .def("close", &System::close, nb::arg("leaving") = false)
      .def_prop_ro("closed", &System::closed)
      .def_prop_ro("rows", &System::rows)
      .def_prop_ro("first_row", &System::first_row)
      .def_prop_ro("global_rows", &System::global_rows)
      .def_prop_ro("entries", &System::entries)
      .def_prop_ro("lost_blocks", &System::lost_blocks)
      .def_prop_ro("ranks", &System::ranks)
      .def_prop_ro("gpus", &System::gpus)
      .def_prop_ro("time_input_s", &System::time_input_s)
      .def_prop_rw("time_spent_s", &System::time_spent_s, &System::set_time_spent)
      .def_prop_ro("solvers_made", &System::solvers_made);
}

}  // namespace hostless::python
