#include "run/context.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "hostless/base/error.hpp"

namespace hostless::host {

std::vector<std::vector<StageId>> stages_of_slices(ExchangePlan const& plan, GhostReads const& reads) {
  std::vector<StageId> const writer = ghost_writers(plan);
  std::vector<std::vector<StageId>> needs(reads.first.size() - 1);
  for (std::size_t slice = 0; slice < needs.size(); ++slice) {
    for (std::int64_t k = reads.first[slice]; k < reads.first[slice + 1]; ++k) {
      auto const ghost = static_cast<std::size_t>(reads.ghost[static_cast<std::size_t>(k)]);
      if (ghost >= writer.size() || writer[ghost] < 0)
        throw Error(ErrorCode::usage,
                    fmt::format("rows that read ghost {} of a field with {} (no exchange would write it). "
                                "Make the field's plan of all that its operators read",
                                ghost, writer.size()));
      needs[slice].push_back(writer[ghost]);
    }
    std::sort(needs[slice].begin(), needs[slice].end());
    needs[slice].erase(std::unique(needs[slice].begin(), needs[slice].end()), needs[slice].end());
  }
  return needs;
}

}  // namespace hostless::host
