#pragma once

#include <string>

#include "hostless/transport/transport.hpp"

namespace hostless::test {

/// Right and wrong use by two ranks, row by row: what is returned, and that what was refused has enqueued,
/// started or matched nothing. What was wrong, or empty.
std::string wrong_refusals(Transport& transport);

}  // namespace hostless::test
