// Reads any text as a machine's file and as measurements; whatever is accepted must be written again as the
// same values, and priced.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "hostless/base/error.hpp"
#include "hostless/model/fit.hpp"
#include "hostless/model/price.hpp"

namespace {

using namespace hostless;

template <class Work>
bool accepted(Work const& work) {
  try {
    work();
  } catch (Error const& error) {
    if (error.code() != ErrorCode::bad_input) std::abort();
    return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const text{reinterpret_cast<char const*>(data), size};
  Measurements measured;
  accepted([&] { read_measurements(text, "fuzz.csv", measured); });
  MachineModel machine;
  if (!accepted([&] { machine = parse_machine(text, "fuzz.json"); })) return 0;
  std::string const written = to_json(machine);
  if (to_json(parse_machine(written, "again.json")) != written) std::abort();
  for (MessageSpan span : all_spans)
    for (MemoryKind memory : all_memory_kinds)
      accepted([&] {
        if (!(price(machine, {span, memory, 4096, 3, 5}).seconds > 0)) std::abort();
      });
  return 0;
}
