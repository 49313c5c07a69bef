#pragma once
// What queues keep of Python's: let go of by threads that have no GIL, and may not wait for it.

#include <nanobind/nanobind.h>

#include <memory>

namespace hostless::python {

/// A reference that any thread may let go of, with or without the GIL: it is dropped later, by whoever calls
/// drop_unkept or by the main thread of the interpreter.
using PythonReference = std::shared_ptr<PyObject>;
PythonReference keep(nanobind::object object);
/// Drops what was let go of. With the GIL.
void drop_unkept();

/// Calls it on any thread, with the GIL. Throws what it raises; stays where the interpreter has gone.
void call_function(PyObject* function);
/// Whether this thread is inside such a call.
bool is_in_function();

}  // namespace hostless::python
