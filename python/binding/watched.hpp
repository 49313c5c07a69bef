#pragma once

#include <functional>

namespace hostless::python {

/// Runs `work` without the GIL on a thread of its own, watched (base/setup_watch.hpp). The calling thread
/// looks for signals ten times a second, ends the work when one has raised an exception in Python, and shows
/// on a terminal how far it is.
///
/// Errors  what a signal raised, once the work has ended; what `work` throws; environment  no thread
void run_watched(std::function<void()> const& work);

}  // namespace hostless::python
