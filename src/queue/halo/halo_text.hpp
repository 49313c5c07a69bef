#pragma once
// What a halo passes between a rank's arrays and the messages of its neighbours: one text for kernels and for the
// host. Work is shared out by a first piece and a step, so that who does it changes no bit.

#include <cstddef>
#include <cstdint>

#include "hostless/base/host_device.hpp"
#include "hostless/queue/queue.hpp"

namespace hostless::queue {

/// A direction is three ways, -1, 0 or 1 along each axis, as digits; nowhere is the one in the middle. Two axes are the
/// last two of three.
constexpr int halo_directions = 27, most_halo_neighbours = 26, most_halo_fields = 16, most_halo_width = 3;
constexpr std::size_t most_halo_item = 64;
/// Fields of a message begin at multiples of it.
constexpr std::size_t halo_line = 16;

HOSTLESS_HOST_DEVICE int halo_way(int direction, int axis) {
  int const rest = axis == 0 ? direction / 9 : axis == 1 ? direction / 3 : direction;
  return rest % 3 - 1;
}
HOSTLESS_HOST_DEVICE int halo_direction(int first, int second, int third) {
  return (first + 1) * 9 + (second + 1) * 3 + third + 1;
}
HOSTLESS_HOST_DEVICE int opposite_direction(int direction) { return halo_directions - 1 - direction; }

constexpr int halo_works = 4;
enum class HaloWork : std::uint8_t {
  pack,      ///< messages = cells of the border
  unpack,    ///< cells of the halo = messages
  take_out,  ///< messages = cells of the halo, which become 0
  add        ///< cells of the border += messages, in the order of directions
};

/// A field of a rank, its halo included.
struct HaloArray {
  std::byte* cells = nullptr;  ///< the first one, which is the halo's
  std::int64_t stride[3] = {0, 0, 0};
  std::uint32_t item_bytes = 0;
  std::uint32_t unit = 1;  ///< bytes that are copied at once: 1, 2, 4, 8 or 16
  Datatype element = Datatype::byte;
};

/// Of all neighbours, in the order of directions.
struct HaloHead {
  std::byte* messages = nullptr;
  std::int64_t size[3] = {1, 1, 1};  ///< of the box, without its halo
  std::int32_t width[3] = {0, 0, 0};
  std::int32_t neighbours = 0, fields = 0;
  HaloWork work = HaloWork::pack;
  std::uint8_t direction[most_halo_neighbours] = {};
  std::uint32_t line[most_halo_neighbours] = {};  ///< where its message begins, in lines from `messages` on
};
struct HaloPass {
  HaloHead head;
  HaloArray field[most_halo_fields];
};

struct HaloRegion {
  std::int64_t first[3];  ///< from 0, which is the halo's
  std::uint32_t count[3];
  HOSTLESS_HOST_DEVICE std::uint32_t cells() const { return count[0] * count[1] * count[2]; }
};
/// The cells at the border (own), or beyond it.
HOSTLESS_HOST_DEVICE HaloRegion halo_region(HaloHead const& head, int direction, bool own) {
  HaloRegion region{};
  for (int a = 0; a < 3; ++a) {
    int const way = halo_way(direction, a), width = head.width[a];
    region.first[a] = way == 0 ? width : way < 0 ? (own ? width : 0) : head.size[a] + (own ? 0 : width);
    region.count[a] = static_cast<std::uint32_t>(way == 0 ? head.size[a] : width);
  }
  return region;
}
HOSTLESS_HOST_DEVICE bool is_of_border(HaloWork work) {
  return work == HaloWork::pack || work == HaloWork::add;
}
/// What `cells` of a field take in a message.
HOSTLESS_HOST_DEVICE std::size_t halo_bytes(HaloArray const& array, std::uint32_t cells) {
  std::size_t const bytes = std::size_t{cells} * array.item_bytes;
  return (bytes + halo_line - 1) / halo_line * halo_line;
}

/// The k-th piece of a region whose cells have `pieces` each.
struct HaloPiece {
  std::uint32_t at[3], part;
};
HOSTLESS_HOST_DEVICE HaloPiece halo_piece(HaloRegion const& region, std::uint32_t pieces, std::uint32_t k) {
  std::uint32_t const cell = pieces == 1 ? k : k / pieces;
  std::uint32_t const row = region.count[2] == 1 ? cell : cell / region.count[2];
  std::uint32_t const plane = region.count[0] == 1 ? 0 : row / region.count[1];
  return {{plane, row - plane * region.count[1], cell - row * region.count[2]}, k - cell * pieces};
}
HOSTLESS_HOST_DEVICE std::byte* halo_cell(HaloArray const& array, HaloRegion const& region,
                                          HaloPiece const& piece) {
  std::byte* cell = array.cells;
  for (int a = 0; a < 3; ++a) cell += (region.first[a] + piece.at[a]) * array.stride[a];
  return cell;
}

/// What is copied at once, of whatever type the caller's cells are.
template <class T>
struct [[gnu::may_alias]] HaloUnit {
  T value;
};
struct alignas(16) HaloSixteen {
  std::uint64_t low, high;
};

template <class T>
HOSTLESS_HOST_DEVICE void copy_halo_units(HaloWork work, HaloRegion const& region, HaloArray const& array,
                                          std::byte* message, std::uint32_t first, std::uint32_t step) {
  using Unit = HaloUnit<T>;
  auto const pieces = static_cast<std::uint32_t>(array.item_bytes / sizeof(Unit));
  auto* const packed = reinterpret_cast<Unit*>(message);
  std::uint32_t const all = region.cells() * pieces;
  for (std::uint32_t k = first; k < all; k += step) {
    HaloPiece const piece = halo_piece(region, pieces, k);
    auto* const in_array = reinterpret_cast<Unit*>(halo_cell(array, region, piece)) + piece.part;
    if (work == HaloWork::unpack) {
      *in_array = packed[k];
    } else {
      packed[k] = *in_array;
      if (work == HaloWork::take_out) *in_array = Unit{};
    }
  }
}
HOSTLESS_HOST_DEVICE void copy_halo(HaloWork work, HaloRegion const& region, HaloArray const& array,
                                    std::byte* message, std::uint32_t first, std::uint32_t step) {
  switch (array.unit) {
    case 16:
      return copy_halo_units<HaloSixteen>(work, region, array, message, first, step);
    case 8:
      return copy_halo_units<std::uint64_t>(work, region, array, message, first, step);
    case 4:
      return copy_halo_units<std::uint32_t>(work, region, array, message, first, step);
    case 2:
      return copy_halo_units<std::uint16_t>(work, region, array, message, first, step);
    default:
      return copy_halo_units<std::uint8_t>(work, region, array, message, first, step);
  }
}

/// A field of a message that begins there.
HOSTLESS_HOST_DEVICE std::byte* halo_field(HaloHead const& head, HaloArray const* fields, int field, int k,
                                           std::uint32_t cells) {
  std::byte* at = head.messages + std::size_t{head.line[k]} * halo_line;
  for (int f = 0; f < field; ++f) at += halo_bytes(fields[f], cells);
  return at;
}

/// Cells of a corner have several messages: the first neighbour whose region has one adds all of them.
template <class T>
HOSTLESS_HOST_DEVICE void add_halo_elements(HaloHead const& head, HaloArray const* fields, int field,
                                            int neighbour, std::uint32_t first, std::uint32_t step) {
  using Element = HaloUnit<T>;
  HaloArray const& array = fields[field];
  HaloRegion const region = halo_region(head, head.direction[neighbour], true);
  auto const pieces = static_cast<std::uint32_t>(array.item_bytes / sizeof(T));
  std::uint32_t const all = region.cells() * pieces;
  for (std::uint32_t k = first; k < all; k += step) {
    HaloPiece const piece = halo_piece(region, pieces, k);
    auto* const to = reinterpret_cast<Element*>(halo_cell(array, region, piece)) + piece.part;
    T sum = to->value;
    bool is_first = true;
    for (int n = 0; n < head.neighbours && is_first; ++n) {
      HaloRegion const other = halo_region(head, head.direction[n], true);
      std::uint32_t cell = 0;
      bool has = true;
      for (int a = 0; a < 3; ++a) {
        std::int64_t const at = region.first[a] + piece.at[a] - other.first[a];
        has = has && at >= 0 && at < other.count[a];
        cell = cell * other.count[a] + static_cast<std::uint32_t>(at);
      }
      if (!has) continue;
      is_first = n >= neighbour;
      auto const* const message =
          reinterpret_cast<Element const*>(halo_field(head, fields, field, n, other.cells()));
      if (is_first) sum = static_cast<T>(sum + message[cell * pieces + piece.part].value);
    }
    if (is_first) to->value = sum;
  }
}
/// Whole numbers wrap.
HOSTLESS_HOST_DEVICE void add_halo(HaloHead const& head, HaloArray const* fields, int field, int neighbour,
                                   std::uint32_t first, std::uint32_t step) {
  switch (fields[field].element) {
    case Datatype::f32:
      return add_halo_elements<float>(head, fields, field, neighbour, first, step);
    case Datatype::f64:
      return add_halo_elements<double>(head, fields, field, neighbour, first, step);
    case Datatype::i32:
      return add_halo_elements<std::uint32_t>(head, fields, field, neighbour, first, step);
    case Datatype::i64:
      return add_halo_elements<std::uint64_t>(head, fields, field, neighbour, first, step);
    case Datatype::byte:  // has no sums: never asked for
      return;
  }
}

/// A share of what passes from or to one neighbour.
HOSTLESS_HOST_DEVICE void pass_halo_share(HaloHead const& head, HaloArray const* fields, int neighbour,
                                          std::uint32_t first, std::uint32_t step) {
  HaloRegion const region = halo_region(head, head.direction[neighbour], is_of_border(head.work));
  for (int f = 0; f < head.fields; ++f) {
    if (head.work == HaloWork::add) {
      add_halo(head, fields, f, neighbour, first, step);
    } else {
      copy_halo(head.work, region, fields[f], halo_field(head, fields, f, neighbour, region.cells()), first,
                step);
    }
  }
}

/// Pieces of the neighbour that has most: what there is to share out.
inline std::size_t most_halo_pieces(HaloPass const& pass) {
  std::size_t most = 0;
  for (int n = 0; n < pass.head.neighbours; ++n)
    for (int f = 0; f < pass.head.fields; ++f) {
      HaloArray const& array = pass.field[f];
      std::size_t const cells = halo_region(pass.head, pass.head.direction[n], true).cells();
      std::size_t const pieces = cells * array.item_bytes / array.unit;
      if (pieces > most) most = pieces;
    }
  return most;
}

}  // namespace hostless::queue
