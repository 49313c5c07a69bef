// Options of the one table (option_table.hpp), by the names that Python has for them.
#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "binding.hpp"
#include "hostless/base/error.hpp"
#include "hostless/solve/option_table.hpp"
#include "hostless/solve/symmetry.hpp"

namespace hostless::python {
namespace {

std::string const& name_of(Option const& option) { return option.at(Face::python).name; }

bool is_settable(Option const& option) { return option.write != nullptr && !name_of(option).empty(); }

Option const& option_of(std::string const& name) {
  for (Option const& one : all_options())
    if (is_settable(one) && name_of(one) == name) return one;
  throw Error(ErrorCode::usage,
              fmt::format("'{}' (no option has that name). Use one of docs/options.md.", name));
}

// The package has seen to the types.
void set(Choices& choices, std::string const& name, nb::handle value) {
  Option const& option = option_of(name);
  OptionValue given;
  switch (option.type) {
    case OptionType::whole:
      given = nb::cast<std::int64_t>(value);
      break;
    case OptionType::real:
      given = nb::cast<double>(value);
      break;
    case OptionType::flag:
      given = nb::cast<bool>(value);
      break;
    default:
      if (nb::isinstance<nb::bytes>(value)) {
        nb::bytes const bytes = nb::borrow<nb::bytes>(value);
        given = std::string(bytes.c_str(), bytes.size());
      } else {
        given = nb::cast<std::string>(value);
      }
  }
  set_option(choices, option, given, Face::python);
}

bool is_of(Option const& option, bool of_layout) {
  return is_settable(option) && (of_layout ? option.of_layout : option.of_solve && !option.of_layout);
}

// As calls have them: what all processes must have been given alike.
std::string spelled_all(Choices const& choices, bool of_layout) {
  std::string text;
  for (Option const& one : all_options())
    if (is_of(one, of_layout))
      text += (text.empty() ? "" : ", ") + spelled(Face::python, one, one.read(choices));
  return text;
}

// Those of the matrix alone that are not the default.
std::vector<std::string> layout_changes(Choices const& choices) {
  std::vector<std::string> all;
  for (Option const& one : all_options())
    if (is_settable(one) && one.of_layout && !one.of_solve && one.read(choices) != one.standard_value())
      all.push_back(spelled(Face::python, one, one.read(choices)));
  return all;
}

char const* type_of(OptionType type) {
  switch (type) {
    case OptionType::word:
      return "word";
    case OptionType::file:
      return "file";
    case OptionType::whole:
      return "whole";
    case OptionType::real:
      return "real";
    case OptionType::flag:
      return "flag";
    default:
      return "";
  }
}

// What no solver does for several right-hand sides at once; empty: nothing of it is asked for.
std::string one_by_one(Choices const& c) {
  if (c.solve.null_space_constant) return "a null space";
  if (c.solve.run.gpus == 0) return "";
  if (c.solve.run.gpus > 1) return "several GPUs";
  if (c.run_kind() == RunKind::persistent) return "the persistent run of a GPU";
  if (c.solve.matrix_precision == MatrixPrecision::fp32) return "a matrix in fp32 on a GPU";
  auto const by = c.solve.run.gpu_transport;
  if (by != GpuTransport::automatic && by != GpuTransport::peer) return "a GPU transport other than peer";
  if (c.layout.format == "merge" || c.layout.format == "vendor") return "format " + c.layout.format;
  return "";
}

}  // namespace

std::string as_python_spells(std::string text) { return respelled(Face::python, std::move(text)); }

void bind_options(nb::module_& module) {
  nb::class_<Option>(module, "Option", "One option, as the table of the library has it.")
      .def_prop_ro("name", name_of)
      .def_prop_ro("kind", [](Option const& one) { return type_of(one.type); })
      .def_prop_ro("meaning", [](Option const& one) { return one.meaning; })
      .def_prop_ro("allowed", [](Option const& one) { return allowed(one); })
      .def_prop_ro(
          "standard", [](Option const& one) { return one.standard_at(Face::python); },
          "The default in words.")
      .def_prop_ro(
          "follows",
          [](Option const& one) { return !one.standard.empty() || !one.at(Face::python).standard.empty(); },
          "Whether the default is no value, but follows from something else.")
      .def_prop_ro("of_matrix", [](Option const& one) { return is_of(one, true); })
      .def_prop_ro("of_solve", [](Option const& one) { return is_of(one, false); });
  module.def("options", [] {
    std::vector<Option> all;
    for (Option const& one : all_options())
      if (is_settable(one)) all.push_back(one);
    return all;
  });
  module.def("options_page", options_page, "docs/options.md.");
  module.def("as_python_spells", as_python_spells, nb::arg("text"),
             "What was said of the command's options, with this package's names for them.");
  nb::class_<Choices>(module, "Choices", "What options have been set to.")
      .def(nb::init<>())
      .def(nb::init<Choices const&>())
      .def("set", set, nb::arg("name"), nb::arg("value"))
      .def("words", spelled_all, nb::arg("of_matrix"))
      .def("layout_changes", layout_changes)
      .def_prop_ro("needs_symmetric",
                   [](Choices const& c) { return symmetry_for(c.solve.method) == Symmetry::required; })
      .def_prop_ro("rtol", [](Choices const& c) { return c.solve.rtol; })
      .def_prop_ro("atol", [](Choices const& c) { return c.solve.atol; })
      .def_prop_ro("preconditioner", [](Choices const& c) { return name(c.solve.preconditioner); })
      .def_prop_ro("partition", [](Choices const& c) { return c.layout.partition; })
      .def_prop_ro("check_symmetry", [](Choices const& c) { return c.solve.check_symmetry; })
      .def_prop_ro("oversubscribe", [](Choices const& c) { return c.solve.run.oversubscribe; })
      .def_prop_ro("null_space", [](Choices const& c) { return c.solve.null_space_constant; })
      .def_prop_ro("one_by_one", one_by_one,
                   "What is not done for several right-hand sides at once; empty: nothing.")
      .def_prop_ro("rhs_columns", [](Choices const& c) { return c.solve.rhs_columns; })
      .def_prop_ro("has_files", [](Choices const& c) {
        return !c.solve.checkpoint_file.empty() || !c.solve.resume_file.empty();
      });
}

}  // namespace hostless::python
