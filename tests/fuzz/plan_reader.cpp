// Reads any text as a set of plans; whatever is accepted must be safe to check, to summarise and to write
// again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "hostless/base/error.hpp"
#include "hostless/plan/checker.hpp"
#include "hostless/plan/store.hpp"
#include "hostless/plan/summary.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace hostless;
  PlanSet set;
  try {
    set = read_plans({reinterpret_cast<char const*>(data), size}, "fuzz.json");
  } catch (Error const& error) {
    if (error.code() != ErrorCode::bad_input) std::abort();
    return 0;
  }
  bool const proven = check(set.plans, set.patterns).empty();
  if (table(summarise(set.plans)).empty()) std::abort();
  std::string const text = write_plans(set);
  PlanSet const again = read_plans(text, "again.json");
  if (write_plans(again) != text || check(again.plans, again.patterns).empty() != proven) std::abort();
  return 0;
}
