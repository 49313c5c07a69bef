// Queues of messages: what the package's _queue calls, with addresses that it has looked at.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "../binding.hpp"
#include "queues.hpp"

namespace hostless::python {
namespace {

// An array may lead back to its request: the garbage collector looks here.
int visit_request(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<HeldRequest>(self)->kept().ptr());
  return 0;
}
int clear_request(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  nb::inst_ptr<HeldRequest>(self)->let_go();
  return 0;
}
PyType_Slot request_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_request)},
                               {Py_tp_clear, reinterpret_cast<void*>(clear_request)},
                               {0, nullptr}};

void bind_requests(nb::module_& module) {
  nb::class_<BufferWords>(module, "BufferWords", "Where an array lies.")
      .def("__init__", [](BufferWords* self, std::uintptr_t address, std::size_t bytes) {
        new (self) BufferWords{address, bytes};
      });
  nb::class_<HeldRequest>(module, "HeldRequest", nb::type_slots(request_slots),
                          "A message or collective that is started again and again, or a match of some.")
      .def("free", &HeldRequest::free)
      .def("is_matched", &HeldRequest::is_matched)
      .def("test", &HeldRequest::test)
      .def("wait", &HeldRequest::wait)
      .def("cancel", &HeldRequest::cancel)
      .def("status",
           [](HeldRequest const& self) {
             RequestStatus const now = self.status();
             return std::tuple(now.peer, now.tag, now.bytes, now.starts, now.lost);
           })
      .def_prop_ro("exists", &HeldRequest::exists);
  nb::class_<HeldCommunicator>(module, "HeldCommunicator", "Ranks, as requests name them.")
      .def("__init__",
           [](HeldCommunicator* self, std::shared_ptr<Ranks> ranks, int gpu, std::string const& by,
              double limit_s) { new (self) HeldCommunicator(std::move(ranks), gpu, by, limit_s); })
      .def("send", &HeldCommunicator::send)
      .def("receive", &HeldCommunicator::receive)
      .def("barrier", &HeldCommunicator::barrier)
      .def("all_reduce", &HeldCommunicator::all_reduce)
      .def("broadcast", &HeldCommunicator::broadcast)
      .def("close", &HeldCommunicator::close)
      .def_prop_ro("closed", &HeldCommunicator::closed);
  module.def("begin_match", begin_match, nb::arg("requests"));
}

}  // namespace

void bind_queues(nb::module_& module) {
  bind_requests(module);
  nb::class_<HeldQueue>(module, "HeldQueue", "Work that is done in order.")
      .def(
          "__init__",
          [](HeldQueue* self, std::string const& type, std::uintptr_t stream, nb::object kept) {
            new (self) HeldQueue(type, stream, std::move(kept));
          },
          nb::arg("type"), nb::arg("stream"), nb::arg("kept").none())
      .def("enqueue_start", &HeldQueue::enqueue_start)
      .def("enqueue_wait", &HeldQueue::enqueue_wait)
      .def("enqueue_wait_all", &HeldQueue::enqueue_wait_all)
      .def("enqueue_function", &HeldQueue::enqueue_function)
      .def("wait", &HeldQueue::wait)
      .def("test", &HeldQueue::test)
      .def("set_limit", &HeldQueue::set_limit)
      .def("close", &HeldQueue::close)
      .def_prop_ro("is_idle", &HeldQueue::is_idle)
      .def_prop_ro("closed", &HeldQueue::closed);
}

}  // namespace hostless::python
