#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "hostless/stencil/cells.hpp"
#include "hostless/stencil/kernel.hpp"
#include "hostless/stencil/pack.hpp"

namespace hostless {

/// Rows of cells, a pack at a time. What is left at an end of a row is computed as a whole pack too, some cells of it
/// again, and as the shortest one that reaches: one by one they would take as long as many packs.
///
/// All of it must be inlined into a function of the instruction set that is meant: what is left out of line is
/// compiled for the oldest one, which took 250 ns a row where it was called with long vectors in use.
///
/// ends  whether neighbours of a row's ends are read elsewhere than beside them
template <class T, class Body, bool ends>
struct PackedRows {
  static constexpr int rows = HostCell<T, Body>::rows, fields = fields_of_body<Body>();
  using In = T const* [rows];
  using Out = T* [fields];

  Body const& body;
  RowEnds row;

  /// V       the longest pack
  /// planes  that are updated together, `to_plane` values from one to the next
  template <class V, int planes>
  inline __attribute__((always_inline)) void update(In const& in, Out const& out,
                                                    std::int64_t const (&strides)[rows],
                                                    CellBlock const& block, std::int64_t to_plane) const {
    bool const follow = block.along == Sinking<V, planes>::axis;
    if (follow && is_short<V, planes>()) {
      update_columns<V, planes>(in, out, block, to_plane);
    } else if constexpr (planes > 1) {
      update_planes<V, planes>(in, out, block, to_plane);
    } else {
      update_rows<V>(in, out, strides, block);
    }
  }

 private:
  template <class V, int planes, bool at_end = ends>
  using Sinking = SinkingCells<T, Body, V, at_end, planes>;

  /// 72 x 72 cells in fp32: 0.83 us by columns, 0.97 by rows; 100 x 100: 2.2 and 1.8. Of two planes, one thread:
  /// 20 x 20 x 60 2.97 us by columns, 5.8 by rows; 100^3 254 and 216, in fp64 64^3 166 and 99.
  template <class V, int planes>
  inline __attribute__((always_inline)) bool is_short() const {
    return row.cells <= (planes > 1 ? 6 : 5) * V::width;
  }
  /// Short rows, in bands of so many that they stay in the nearest cache for all columns.
  template <class V, int planes>
  inline __attribute__((always_inline)) void update_columns(In const& in, Out const& out,
                                                            CellBlock const& block,
                                                            std::int64_t to_plane) const {
    constexpr std::int64_t band = fields < 4 ? 32 / fields : 8;
    for (std::int64_t done = 0; done < block.rows; done += band) {
      std::int64_t const some = std::min(band, block.rows - done);
      each_pack<V>(
          0, row.cells, [&](auto pack, std::int64_t first) __attribute__((always_inline)) {
            Sinking<decltype(pack), planes> cells(in, first, row, done * block.out_stride, block.out_stride,
                                                  to_plane);
            for (std::int64_t left = some;;) {
              keep_planes<decltype(pack), planes>(cells, out);
              if (--left == 0) break;
              cells.sink();
            }
          });
    }
  }
  /// Rows one after the other, each of all planes.
  template <class V, int planes>
  inline __attribute__((always_inline)) void update_planes(In const& in, Out const& out,
                                                           CellBlock const& block,
                                                           std::int64_t to_plane) const {
    std::int64_t const begin = line_begin<V>(out[0]);  // of the other rows too: long ones are lines apart
    for (std::int64_t left = block.rows, offset = 0; left > 0; --left, offset += block.out_stride) {
      auto const use = [&](auto pack, std::int64_t first, auto at_end) __attribute__((always_inline)) {
        keep_planes<decltype(pack), planes>(
            Sinking<decltype(pack), planes, at_end>(in, first, row, offset, block.out_stride, to_plane), out);
      };
      constexpr std::bool_constant<ends> at_end;
      use(V(), 0, at_end);
      std::int64_t first = begin > 0 ? begin : V::width;
      for (; first + V::width < row.cells; first += V::width) use(V(), first, std::false_type());
      each_pack<V>(
          first, row.cells, [&](auto pack, std::int64_t at) __attribute__((always_inline)) {
            use(pack, at, at_end);
          });
    }
  }
  template <class V>
  inline __attribute__((always_inline)) void update_rows(In const& first_in, Out const& first_out,
                                                         std::int64_t const (&strides)[rows],
                                                         CellBlock const& block) const {
    T const* in[rows];
    T* out[fields];
    for (int k = 0; k < rows; ++k) in[k] = first_in[k];
    for (int f = 0; f < fields; ++f) out[f] = first_out[f];
    for (std::int64_t left = block.rows; left > 0; --left) {
      std::int64_t const first = is_short<V, 1>() ? 0 : update_middle<V>(in, out);
      each_pack<V>(
          first, row.cells, [&](auto pack, std::int64_t at) __attribute__((always_inline)) {
            update_pack<decltype(pack)>(in, out, at);
          });
      for (int k = 0; k < rows; ++k) in[k] += strides[k];
      for (int f = 0; f < fields; ++f) out[f] += block.out_stride;
    }
  }
  template <class V, int planes, class Cells>
  inline __attribute__((always_inline)) void keep_planes(Cells const& cells, Out const& out) const {
    [&]<int... plane>(std::integer_sequence<int, plane...>) __attribute__((always_inline)) {
      (keep<V>(typename Cells::template InPlane<plane>(cells), out, cells.value_index(plane)), ...);
    }
    (std::make_integer_sequence<int, planes>{});
  }
  template <class V, class Here>
  inline __attribute__((always_inline)) void keep(Here const& here, Out const& out,
                                                  std::int64_t first) const {
    auto const put = [&](V const& value, int f) __attribute__((always_inline)) {
      if constexpr (std::is_same_v<V, T>)
        out[f][first] = value;
      else
        value.store(out[f] + first);
    };
    if constexpr (fields == 1) {
      put(body(here), 0);
    } else {
      auto const values = body(here);
      for (int f = 0; f < fields; ++f) put(values[static_cast<std::size_t>(f)], f);
    }
  }
  template <class V>
  inline __attribute__((always_inline)) void update_pack(In const& in, Out const& out,
                                                         std::int64_t first) const {
    if constexpr (ends)
      keep<V>(EndCell<T, Body, V>(in, first, row), out, first);
    else
      keep<V>(HostCell<T, Body, V>(in, first), out, first);
  }
  /// The first cell from `first` on that begins a pack where a line does.
  template <class V>
  inline __attribute__((always_inline)) static std::int64_t line_begin(T const* first) {
    auto const values_before = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(first) / sizeof(T));
    return -values_before & (V::width - 1);
  }
  /// Of a long row the packs that begin where one of `out` does, for others touch two cache lines each, and what lies
  /// before them. Returns where what is left begins.
  template <class V>
  inline __attribute__((always_inline)) std::int64_t update_middle(In const& in, Out const& out) const {
    std::int64_t first = line_begin<V>(out[0]);
    if (first > 0) update_pack<V>(in, out, 0);
    update_pack<V>(in, out, first);
    PassingCell<T, Body, V> cell(in, first + V::width);
    for (; cell.first() + 2 * V::width <= row.cells; cell.pass()) {
      cell.fetch();
      keep<V>(cell, out, cell.first());
    }
    return cell.first();
  }
  /// Calls use(pack, first), or use(T(), first), for packs that cover the cells from `first` to the end of a row and
  /// none beyond.
  template <class V, class Use>
  inline __attribute__((always_inline)) static void each_pack(std::int64_t first, std::int64_t cells,
                                                              Use const& use) {
    while (first < cells) {
      std::int64_t width = V::width;
      while (width > 2 && (width > cells || width / 2 >= cells - first)) width /= 2;
      if (width > cells) width = 1;
      // which touches two lines each, where twelve values begin one
      if (width * std::int64_t{sizeof(T)} == 64 && 4 * (cells - first) <= 3 * width) width /= 2;
      first = std::min(first, cells - width);
      with_pack<V>(
          width, [&](auto pack) __attribute__((always_inline)) { use(pack, first); });
      first += width;
    }
  }
  template <class V, class Use>
  inline __attribute__((always_inline)) static void with_pack(std::int64_t width, Use const& use) {
    if (width == V::width) return use(V());
    if constexpr (V::width > 2)
      with_pack<typename V::Half>(width, use);
    else
      use(T());
  }
};

}  // namespace hostless
