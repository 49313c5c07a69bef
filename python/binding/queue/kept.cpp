#include "kept.hpp"

#include <cxxabi.h>

#include <atomic>
#include <new>
#include <utility>

#include "../away.hpp"

namespace nb = nanobind;

namespace hostless::python {
namespace {

struct Unkept {
  PyObject* object;
  Unkept* next;
};
std::atomic<Unkept*> unkept{nullptr};  // nothing that a fork may find locked
std::atomic<bool> is_pending{false};

int drop_pending(void*) {
  is_pending = false;
  drop_unkept();
  return 0;
}

void drop_later(PyObject* object) noexcept {
  auto* const one = new (std::nothrow) Unkept{object, nullptr};
  if (one == nullptr) return;
  one->next = unkept.load();
  while (!unkept.compare_exchange_weak(one->next, one)) {
  }
  // While the interpreter goes, objects that go with it still drop what they kept.
  if (Py_IsInitialized() == 0) return;
  if (!is_pending.exchange(true) && Py_AddPendingCall(drop_pending, nullptr) != 0) is_pending = false;
}

thread_local int functions_inside = 0;
struct Inside {
  Inside() { ++functions_inside; }
  ~Inside() { --functions_inside; }
};

}  // namespace

PythonReference keep(nb::object object) { return {object.release().ptr(), drop_later}; }

void drop_unkept() {
  for (Unkept* one = unkept.exchange(nullptr); one != nullptr;) {
    Unkept* const next = one->next;
    Py_DECREF(one->object);
    delete one;
    one = next;
  }
}

void call_function(PyObject* function) {
  Back const back;
  try {
    Inside const inside;
    nb::handle const callable(function);
    callable();
  } catch (abi::__forced_unwind&) {  // the interpreter went meanwhile
    stay();
  }
}

bool is_in_function() { return functions_inside != 0; }

}  // namespace hostless::python
