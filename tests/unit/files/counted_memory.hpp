#pragma once

#include <cstdint>

/// A test linked with counted_memory.cpp counts every operator new of the process and can let one of them
/// fail.
namespace hostless::counted_memory {

/// Starts counting from nothing.
void start();
/// The `number`th allocation from now on (from 1) throws std::bad_alloc.
void fail(std::int64_t number);
/// Stops counting and failing.
void stop();
/// Allocations since start.
std::int64_t allocations();
/// Bytes allocated since start and not freed: now, and the most at any time.
std::int64_t live_bytes();
std::int64_t peak_bytes();

}  // namespace hostless::counted_memory
