#pragma once

#include <string>

#include "api/guarded.hpp"
#include "hostless/queue.h"
#include "hostless/queue/queue.hpp"

namespace hostless::c_interface {

/// what: the argument that has it.
inline Datatype datatype_of(int datatype, std::string const& what = "datatype") {
  static_assert(static_cast<int>(Datatype::byte) == HOSTLESS_DATA_BYTE);
  static_assert(static_cast<int>(Datatype::f64) == HOSTLESS_DATA_F64);
  if (datatype < HOSTLESS_DATA_F32 || datatype > HOSTLESS_DATA_BYTE)
    misused(what + ": " + std::to_string(datatype) + " (there is none). Use one of HOSTLESS_DATA_...");
  return static_cast<Datatype>(datatype);
}

}  // namespace hostless::c_interface
