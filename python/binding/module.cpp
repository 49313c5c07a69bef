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
#include "hostless/queue/refusal.hpp"
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

nb::object words_of(Error const& e) {
  std::string const text = as_python_spells(e.what());  // may name a file, whose bytes need not be UTF-8
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

char const* name_of(Refusal why) {
  switch (why) {
    case Refusal::no_request:
      return "no_request";
    case Refusal::not_persistent:
      return "not_persistent";
    case Refusal::already_matched:
      return "already_matched";
    case Refusal::not_matched:
      return "not_matched";
    case Refusal::already_started:
      return "already_started";
    case Refusal::not_started:
      return "not_started";
    case Refusal::other_queue:
      return "other_queue";
    case Refusal::in_use:
      return "in_use";
    case Refusal::wildcard:
      return "wildcard";
    case Refusal::mismatch:
      return "mismatch";
    case Refusal::unsupported:
      return "unsupported";
    case Refusal::twice:
      return "twice";
    case Refusal::too_many:
      return "too_many";
  }
  return "";
}

void translate(std::exception_ptr const& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (QueueError const& e) {
    nb::object const words = words_of(e);
    if (!words.is_valid()) return;
    nb::object const type = nb::module_::import_("hostless.errors").attr("QueueError");
    PyErr_SetObject(type.ptr(), type(words, name_of(e.why())).ptr());
  } catch (Error const& e) {
    nb::object const type = nb::module_::import_("hostless.errors").attr(class_of(e.code()));
    nb::object const words = words_of(e);
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
  python::bind_queues(module);
}
