// Exchanges without a matrix: what the package's _exchange calls, with addresses that it has looked at.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "binding.hpp"
#include "exchanges.hpp"

namespace hostless::python {
namespace {

using Numbers = nb::ndarray<std::int64_t const, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ItemNumbers = nb::ndarray<std::int32_t const, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::span<std::int64_t const> span_of(Numbers const& numbers) { return {numbers.data(), numbers.shape(0)}; }

PlannedExchange::Items items_of(std::vector<ItemNumbers> const& lists) {
  PlannedExchange::Items all;
  for (ItemNumbers const& one : lists) all.emplace_back(one.data(), one.data() + one.shape(0));
  return all;
}

void bind_words(nb::module_& module) {
  nb::class_<PlanWords>(module, "PlanWords", "How a plan of an exchange is made, in words.")
      .def(nb::init<>())
      .def_rw("route", &PlanWords::route)
      .def_rw("ranks_per_node", &PlanWords::ranks_per_node)
      .def_rw("around", &PlanWords::around);
  nb::class_<FieldWords>(module, "FieldWords", "Where the items of a field lie.")
      .def(nb::init<>())
      .def_rw("owned", &FieldWords::owned)
      .def_rw("ghosts", &FieldWords::ghosts)
      .def_rw("item_bytes", &FieldWords::item_bytes)
      .def_rw("element", &FieldWords::element)
      .def_rw("values", &FieldWords::values);
  nb::class_<BindWords>(module, "BindWords", "What an exchange is bound with, in words.")
      .def(nb::init<>())
      .def_rw("adds", &BindWords::adds)
      .def_rw("first_s", &BindWords::first_s)
      .def_rw("later_s", &BindWords::later_s)
      .def_rw("on_gpu", &BindWords::on_gpu)
      .def_rw("gpu_transport", &BindWords::gpu_transport)
      .def_rw("device", &BindWords::device);
}

void bind_plan(nb::module_& module) {
  auto const of_plan = [](auto member) {
    return [member](PlannedExchange const& self) { return self.plan().*member; };
  };
  nb::class_<PlannedExchange>(module, "PlannedExchange", "Who reads what, and this rank's plan of it.")
      .def_static("of_numbers",
                  [](std::shared_ptr<Ranks> ranks, Numbers const& owned, Numbers const& ghosts,
                     PlanWords const& words) {
                    return std::make_shared<PlannedExchange>(PlannedExchange::of_numbers(
                        std::move(ranks), span_of(owned), span_of(ghosts), words));
                  })
      .def_static("of_lists",
                  [](std::shared_ptr<Ranks> ranks, std::int64_t owned, std::vector<ItemNumbers> const& send,
                     std::vector<ItemNumbers> const& receive, PlanWords const& words) {
                    return std::make_shared<PlannedExchange>(PlannedExchange::of_lists(
                        std::move(ranks), owned, items_of(send), items_of(receive), words));
                  })
      .def_static("of_file",
                  [](std::shared_ptr<Ranks> ranks, nb::bytes const& path) {
                    return std::make_shared<PlannedExchange>(
                        PlannedExchange::of_file(std::move(ranks), std::string(path.c_str(), path.size())));
                  })
      .def("save", [](PlannedExchange const& self,
                      nb::bytes const& path) { self.save(std::string(path.c_str(), path.size())); })
      .def_prop_ro("ranks", &PlannedExchange::shared_ranks)
      .def_prop_ro("route", [](PlannedExchange const& self) { return name(self.plan().route); })
      .def_prop_ro("owned", of_plan(&ExchangePlan::owned))
      .def_prop_ro("ghosts", of_plan(&ExchangePlan::ghosts))
      .def_prop_ro("around", [](PlannedExchange const& self) { return self.plan().receive == 0; })
      .def_prop_ro("below", &PlannedExchange::below)
      .def_prop_ro("items_sent", [](PlannedExchange const& self) { return self.plan().items_sent(); })
      .def_prop_ro("items_received", [](PlannedExchange const& self) { return self.plan().items_received(); })
      .def_prop_ro("order", &PlannedExchange::order);
}

// An array may lead back to its exchange: the garbage collector looks here.
int visit_arrays(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<BoundArrays>(self)->kept().ptr());
  return 0;
}
int clear_arrays(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  nb::gil_scoped_release const release;
  nb::inst_ptr<BoundArrays>(self)->end();
  return 0;
}
PyType_Slot arrays_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_arrays)},
                              {Py_tp_clear, reinterpret_cast<void*>(clear_arrays)},
                              {0, nullptr}};

void bind_arrays(nb::module_& module) {
  auto const of_gpu = [](auto get) { return [get](BoundArrays const& self) { return get(self.gpu()); }; };
  nb::class_<BoundArrays>(module, "BoundArrays", nb::type_slots(arrays_slots),
                          "An exchange over arrays, in either direction.")
      .def("__init__",
           [](BoundArrays* self, std::shared_ptr<PlannedExchange> plan, std::vector<FieldWords> const& fields,
              BindWords const& words,
              nb::object kept) { new (self) BoundArrays(std::move(plan), fields, words, std::move(kept)); })
      .def("start", &BoundArrays::start)
      .def("finish", &BoundArrays::finish)
      .def("enqueue", &BoundArrays::enqueue)
      .def("test", &BoundArrays::test)
      .def("wait", &BoundArrays::wait)
      .def("leave", &BoundArrays::leave)
      .def("close", &BoundArrays::close)
      .def_prop_ro("lost", &BoundArrays::lost)
      .def_prop_ro("closed", &BoundArrays::closed)
      .def_prop_ro("gpu_transport", of_gpu([](GpuExchange const& gpu) { return name(gpu.transport()); }))
      .def_prop_ro("may_be_recorded", of_gpu([](GpuExchange const& gpu) { return gpu.may_be_recorded(); }))
      .def_prop_ro("device", of_gpu([](GpuExchange const& gpu) { return gpu.device(); }))
      .def_prop_ro("description", of_gpu([](GpuExchange const& gpu) { return gpu.describe(); }))
      .def_prop_ro("device_bytes", of_gpu([](GpuExchange const& gpu) { return gpu.bytes(); }));
}

}  // namespace

void bind_exchanges(nb::module_& module) {
  module.def("wait_limits", [] {
    WaitLimits const limits = WaitLimits::from_environment();
    return std::pair(limits.first_s, limits.later_s);
  });
  bind_words(module);
  bind_plan(module);
  bind_arrays(module);
}

}  // namespace hostless::python
