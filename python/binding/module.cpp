// The extension module hostless._core: the Python package calls it with arrays of one kind and gets plain
// values back. What people see is written in Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/processors.hpp"
#include "binding.hpp"
#include "exchanges.hpp"
#include "hostless/base/environment.hpp"
#include "hostless/base/error.hpp"
#include "stencils.hpp"

namespace hostless::python {

char const* class_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
      return "UsageError";
    case ErrorCode::bad_input:
      return "BadInputError";
    case ErrorCode::environment:
      return "MachineError";
    case ErrorCode::peer_lost:
      return "PeerLostError";
    case ErrorCode::aborted:
      return "AbortedError";
  }
  return "Error";
}

ErrorCode code_of(std::string const& exception) {
  for (ErrorCode code : {ErrorCode::usage, ErrorCode::bad_input, ErrorCode::environment, ErrorCode::peer_lost,
                         ErrorCode::aborted}) {
    if (exception == class_of(code)) return code;
  }
  throw Error(ErrorCode::usage, "unknown exception '" + exception + "'. Use a class of hostless.errors.");
}

namespace {

void translate(std::exception_ptr const& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (Error const& e) {
    nb::object const type = nb::module_::import_("hostless.errors").attr(class_of(e.code()));
    std::string const text = as_python_spells(e.what());  // may name a file, whose bytes need not be UTF-8
    nb::object const words =
        nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
    if (words.is_valid()) PyErr_SetObject(type.ptr(), words.ptr());
  }
}

}  // namespace
}  // namespace hostless::python

NB_MODULE(_core, module) {
  namespace python = hostless::python;
  python::watch_forks();
  nanobind::register_exception_translator(python::translate);
  module.attr("version") = HOSTLESS_VERSION;
  module.attr("MOST_RANKS") = hostless::most_workers;
  module.def("check_environment", hostless::check_environment,
             "Refuses environment variables that would be ignored.");
  module.def("unknown_variables", hostless::unknown_variables, "A sentence for each that nothing asks for.");
  python::bind_gpu_arrays(module);
  python::bind_options(module);
  python::bind_system(module);
  python::bind_sources(module);
  python::bind_ranks(module);
  python::bind_exchanges(module);
  python::bind_neighborhoods(module);
  python::bind_stencils(module);
}
