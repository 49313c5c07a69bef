#pragma once

#include "hostless/files/stored_rows.hpp"
#include "hostless/solve/method.hpp"

namespace hostless {

/// What the files of its matrices must be: `any` where a method takes A != A'.
Symmetry symmetry_for(Method method);

}  // namespace hostless
