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

// An array may lead back to its request or halo: the garbage collector looks here.
template <class Held>
int visit_kept(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<Held>(self)->kept().ptr());
  return 0;
}
template <class Held>
int clear_kept(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<Held>(self)->let_go();
  return 0;
}
template <class Held>
PyType_Slot slots_of[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_kept<Held>)},
                          {Py_tp_clear, reinterpret_cast<void*>(clear_kept<Held>)},
                          {0, nullptr}};

void bind_requests(nb::module_& module) {
  nb::class_<BufferWords>(module, "BufferWords", "Where an array lies.")
      .def("__init__", [](BufferWords* self, std::uintptr_t address, std::size_t bytes) {
        new (self) BufferWords{address, bytes};
      });
  nb::class_<HeldRequest>(module, "HeldRequest", nb::type_slots(slots_of<HeldRequest>),
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
      .def("halo", &HeldCommunicator::halo)
      .def("close", &HeldCommunicator::close)
      .def_prop_ro("closed", &HeldCommunicator::closed);
  module.def("begin_match", begin_match, nb::arg("requests"));
}

void bind_halos(nb::module_& module) {
  nb::class_<HaloWords>(module, "HaloWords", "What a rank says of its halo.")
      .def("__init__",
           [](HaloWords* self, std::vector<int> ranks, std::vector<bool> periodic,
              std::vector<std::int64_t> size, int width, bool is_star, bool ready, int tag) {
             new (self) HaloWords{{std::move(ranks), std::move(periodic), std::move(size), width,
                                   is_star ? HaloReach::star : HaloReach::box},
                                  {},
                                  {ready, tag}};
           })
      .def("add_field", [](HaloWords& self, std::uintptr_t address, std::size_t item_bytes,
                           std::string const& element, std::vector<std::int64_t> strides) {
        self.fields.push_back(
            {reinterpret_cast<void*>(address), item_bytes, datatype_from(element), std::move(strides)});
      });
  nb::class_<HeldHalo>(module, "HeldHalo", nb::type_slots(slots_of<HeldHalo>),
                       "The messages of a grid's halo, which are started again and again.")
      .def("close", &HeldHalo::close)
      .def_prop_ro("exists", &HeldHalo::exists)
      .def_prop_ro("messages", &HeldHalo::messages)
      .def_prop_ro("bytes", &HeldHalo::bytes);
  module.def("refuse_in_function", refuse_in_function, nb::arg("what"));
}

}  // namespace

void bind_queues(nb::module_& module) {
  bind_halos(module);
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
      .def("enqueue_start_and_wait", &HeldQueue::enqueue_start_and_wait)
      .def("enqueue_wait_all", &HeldQueue::enqueue_wait_all)
      .def("enqueue_function", &HeldQueue::enqueue_function)
      .def("enqueue_gather", &HeldQueue::enqueue_gather, nb::arg("halo"), nb::arg("arrays"),
           nb::arg("ends_run"), nb::arg("others").none())
      .def("enqueue_scatter", &HeldQueue::enqueue_scatter, nb::arg("halo"), nb::arg("arrays"),
           nb::arg("ends_run"), nb::arg("others").none())
      .def("wait", &HeldQueue::wait)
      .def("test", &HeldQueue::test)
      .def("set_limit", &HeldQueue::set_limit)
      .def("close", &HeldQueue::close)
      .def_prop_ro("is_idle", &HeldQueue::is_idle)
      .def_prop_ro("closed", &HeldQueue::closed);
}

}  // namespace hostless::python
