#include "hostless/base/environment.hpp"

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/deadline_scale.hpp"
#include "hostless/base/error.hpp"
#include "hostless/base/isa.hpp"

namespace hostless {
namespace {

// Null where it is not set, or empty.
char const* variable(char const* name) {
  char const* const text = std::getenv(name);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

}  // namespace

void check_environment() {
  if (char const* wanted = variable("HOSTLESS_ISA");
      wanted != nullptr && std::strcmp(wanted, name(active_isa())) != 0) {
    throw Error(ErrorCode::usage,
                "HOSTLESS_ISA='" + std::string(wanted) + "' (this processor runs " + name(active_isa()) +
                    " instead). Set it to baseline, v3 or v4, no higher than the processor has, or drop it.");
  }
  if (char const* scale = variable("HOSTLESS_DEADLINE_SCALE"); scale != nullptr && !deadline_scale(scale)) {
    throw Error(ErrorCode::usage, "HOSTLESS_DEADLINE_SCALE='" + std::string(scale) +
                                      "' (it multiplies the deadlines). Set it to a number above 0.");
  }
}

}  // namespace hostless
