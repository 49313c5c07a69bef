#pragma once
// What tests ask of the runtime in hip/hip_runtime.h.

#include <cstddef>
#include <functional>

namespace hostless::test::fake_runtime {

/// Forgets all that follows; what is still held stays counted.
void begin_again();
/// The call so many from now (0: the next) fails; below 0: none does.
void fail_call(int from_now);
/// Calls since begin_again, but for those that give back.
int calls();
/// Allocations, streams, events, graphs and opened handles that were not given back.
int held();
/// Handles that are opened, and allocations given back while they were, since begin_again.
int opened();
int freed_while_open();
/// What a test has left behind on purpose is not counted any more.
void forget_held();
/// Of all allocations; more cannot be had.
void limit_memory(std::size_t bytes);
void links(bool exist);  ///< whether GPUs reach each other's memory
int device_in_use();
int device_of_last_launch();
int timed_events();  ///< made since begin_again, and not for order alone
int launches();      ///< of kernels, in graphs too when those are launched
/// Called at every wait for a stream, in the place of kernels that would work meanwhile.
void at_waits(std::function<void()> what);
/// What is queued on streams is not done, however often they are asked, until this says so or begin_again.
void keep_streams_busy(bool are_busy);
/// Called with the parameters of every kernel that is launched and not recorded, in its place.
void at_launches(std::function<void(void** parameters)> what);

}  // namespace hostless::test::fake_runtime
