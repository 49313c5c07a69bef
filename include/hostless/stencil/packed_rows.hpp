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

  /// V  the longest pack
  template <class V>
  inline __attribute__((always_inline)) void update(In const& in, Out const& out,
                                                    std::int64_t const (&strides)[rows],
                                                    CellBlock const& block) const {
    if (is_short<V>() && block.along == SinkingCell<T, Body, V, ends>::axis) {
      update_columns<V>(in, out, block);
    } else {
      update_rows<V>(in, out, strides, block);
    }
  }

 private:
  /// 72 x 72 cells in fp32: 0.83 us by columns, 0.97 by rows; 100 x 100: 2.2 and 1.8.
  template <class V>
  inline __attribute__((always_inline)) bool is_short() const {
    return row.cells <= 5 * V::width;
  }
  /// Short rows, in bands of so many that they stay in the nearest cache for all columns.
  template <class V>
  inline __attribute__((always_inline)) void update_columns(In const& in, Out const& out,
                                                            CellBlock const& block) const {
    constexpr std::int64_t band = fields < 4 ? 32 / fields : 8;
    for (std::int64_t done = 0; done < block.rows; done += band) {
      std::int64_t const some = std::min(band, block.rows - done);
      each_pack<V>(
          0, row.cells, [&](auto pack, std::int64_t first) __attribute__((always_inline)) {
            SinkingCell<T, Body, decltype(pack), ends> cell(in, first, row, done * block.out_stride);
            for (std::int64_t left = some;;) {
              keep<decltype(pack)>(cell, out, cell.value_index());
              if (--left == 0) break;
              cell.sink(block.out_stride);
            }
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
      std::int64_t const first = is_short<V>() ? 0 : update_middle<V>(in, out);
      each_pack<V>(
          first, row.cells, [&](auto pack, std::int64_t at) __attribute__((always_inline)) {
            update_pack<decltype(pack)>(in, out, at);
          });
      for (int k = 0; k < rows; ++k) in[k] += strides[k];
      for (int f = 0; f < fields; ++f) out[f] += block.out_stride;
    }
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
  /// Of a long row the packs that begin where one of `out` does, for others touch two cache lines each, and what lies
  /// before them. Returns where what is left begins.
  template <class V>
  inline __attribute__((always_inline)) std::int64_t update_middle(In const& in, Out const& out) const {
    auto const values_before =
        static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(out[0]) / sizeof(T));
    std::int64_t first = -values_before & (V::width - 1);
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
      with_pack<Pack<T, V::bytes / 2>>(width, use);
    else
      use(T());
  }
};

}  // namespace hostless
