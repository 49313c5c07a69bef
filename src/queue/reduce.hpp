#pragma once

#include <cstddef>
#include <span>

#include "hostless/queue/queue.hpp"

namespace hostless::queue {

/// total [count] = total (...) next, element by element.
void reduce(std::byte* total, std::byte const* next, std::size_t count, Datatype datatype,
            ReduceOperation operation);

}  // namespace hostless::queue
