#include "queue/halo/host_pass.hpp"

#include <cstring>

namespace hostless::queue {
namespace {

// Shorter ones are copied piece by piece.
constexpr std::size_t least_line = 32;

void copy_lines(HaloWork work, HaloRegion const& region, HaloArray const& array, std::byte* message) {
  std::size_t const line = std::size_t{region.count[2]} * array.item_bytes;
  for (std::uint32_t plane = 0; plane < region.count[0]; ++plane)
    for (std::uint32_t row = 0; row < region.count[1]; ++row, message += line) {
      std::byte* const cells = halo_cell(array, region, {{plane, row, 0}, 0});
      if (work == HaloWork::unpack) {
        std::memcpy(cells, message, line);
      } else {
        std::memcpy(message, cells, line);
        if (work == HaloWork::take_out) std::memset(cells, 0, line);
      }
    }
}

bool has_lines(HaloRegion const& region, HaloArray const& array) {
  return array.stride[2] == array.item_bytes && std::size_t{region.count[2]} * array.item_bytes >= least_line;
}

}  // namespace

void pass_halo_by_host(HaloPass const& pass) {
  HaloHead const& head = pass.head;
  for (int n = 0; n < head.neighbours; ++n) {
    if (head.work == HaloWork::add) {
      pass_halo_share(head, pass.field, n, 0, 1);
      continue;
    }
    HaloRegion const region = halo_region(head, head.direction[n], is_of_border(head.work));
    for (int f = 0; f < head.fields; ++f) {
      HaloArray const& array = pass.field[f];
      std::byte* const message = halo_field(head, pass.field, f, n, region.cells());
      if (has_lines(region, array)) {
        copy_lines(head.work, region, array, message);
      } else {
        copy_halo(head.work, region, array, message, 0, 1);
      }
    }
  }
}

}  // namespace hostless::queue
