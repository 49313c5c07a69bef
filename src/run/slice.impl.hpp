#pragma once
// How one slice of a phase is executed on the host: bodies vectorised over the accumulators, contributions
// added in the order of docs/decisions/0001. Threads per slice: 1. Reduction order: row, accumulator, tree.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "hostless/base/host_device.hpp"
#include "hostless/base/isa.hpp"
#include "hostless/base/order.hpp"
#include "hostless/operate/local_matrix.hpp"
#include "hostless/operate/tiling.hpp"
#include "hostless/run/run_options.hpp"
#include "hostless/run/state.hpp"
#include "hostless/run/views.hpp"
#include "run/past_caches.hpp"

#if defined(__clang__)
#define HOSTLESS_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define HOSTLESS_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace hostless::host {

constexpr int accumulators = Tiling::accumulators;
constexpr int widest_block = 6;
constexpr int chunk_rows = accumulators * widest_block;
/// Block rows of several right-hand sides that are multiplied at once: so few that what memory delivers and takes
/// between the products of one step and the next is under way while they are computed (decision 0017).
constexpr int step_block_rows = LocalMatrix::step_of_sides, step_rows = step_block_rows * widest_block;
/// Block rows of several rows whose contributions are added at once.
constexpr int piece_block_rows = 32, piece_rows = piece_block_rows * widest_block;

/// The accumulators of one slice.
template <int K>
struct Accumulators {
  alignas(64) double value[K == 0 ? 1 : K][accumulators];
  int width;  // of their tree, 0 of none

  HOSTLESS_HOST_DEVICE void begin(int used) {
    width = used == 0 ? 0 : power_of_two(used);
    for (int k = 0; k < K; ++k) std::fill_n(value[k], width, 0.0);
  }
  HOSTLESS_HOST_DEVICE void finish(double* partial) {
    for (int k = 0; k < K; ++k) partial[k] = width == 0 ? 0.0 : tree(value[k], width);
  }
};

/// Adds the contributions of `block_rows` block rows of b rows to as many accumulators, rows rising inside a
/// block row.
template <int b>
HOSTLESS_HOST_DEVICE void add_block_rows(double* value, double const* contribution, int block_rows) {
  HOSTLESS_INDEPENDENT
  for (int l = 0; l < block_rows; ++l) {
    double sum = value[l];
    for (int j = 0; j < b; ++j) sum += contribution[l * b + j];
    value[l] = sum;
  }
}
template <int K>
HOSTLESS_HOST_DEVICE void add_to_accumulators(Accumulators<K>& sum, int at, double const* contribution,
                                              int block_rows, int b) {
  for (int k = 0; k < K; ++k) {
    double const* c = contribution + k * piece_rows;
    switch (b) {
      case 2:
        add_block_rows<2>(sum.value[k] + at, c, block_rows);
        break;
      case 3:
        add_block_rows<3>(sum.value[k] + at, c, block_rows);
        break;
      case 4:
        add_block_rows<4>(sum.value[k] + at, c, block_rows);
        break;
      default:
        add_block_rows<6>(sum.value[k] + at, c, block_rows);
        break;
    }
  }
}

/// At most `piece_block_rows` block rows of several rows, which are independent of each other.
template <int K, class Body, class... Views>
HOSTLESS_HOST_DEVICE void piece_of_chunk(State const& state, std::int64_t first_row, int block_rows, int b,
                                         Accumulators<K>& sum, int at, Body const& body, Views... views) {
  alignas(64) double contribution[K * piece_rows];
  int const rows = block_rows * b;
  for (int k = 0; k < K; ++k) std::fill_n(contribution + k * piece_rows, rows, 0.0);
  HOSTLESS_INDEPENDENT
  for (int i = 0; i < rows; ++i)
    body(state, BlockRow<1>{first_row + i, 0}, Contribution<piece_rows>{contribution + i}, views...);
  add_to_accumulators(sum, at, contribution, block_rows, b);
}

/// One chunk of at most 256 block rows, from accumulator `at` on: body(state, block row, sums, views...), or with
/// the products in front of the views.
template <int K, int B, class Body, class... Views>
HOSTLESS_HOST_DEVICE void chunk(State const& state, std::int64_t first_row, int block_rows, int b,
                                Accumulators<K>& sum, int at, Body const& body, Views... views) {
  if constexpr (B == 1) {  // rows are independent of each other: one long loop whatever the block size
    if (b == 1) {          // a row is an accumulator
      HOSTLESS_INDEPENDENT
      for (int i = 0; i < block_rows; ++i) {
        body(state, BlockRow<1>{first_row + i, 0}, Contribution<accumulators>{sum.value[0] + at + i},
             views...);
      }
      return;
    }
    if constexpr (K == 0) {
      HOSTLESS_INDEPENDENT
      for (int i = 0; i < block_rows * b; ++i)
        body(state, BlockRow<1>{first_row + i, 0}, Contribution<accumulators>{sum.value[0]}, views...);
    } else {  // some block rows after the other: what they contribute stays in the first-level cache
      for (int from = 0; from < block_rows; from += piece_block_rows) {
        int const some = std::min(piece_block_rows, block_rows - from);
        std::int64_t const row = first_row + from * b;
        auto const piece = [&](int those, int rows) __attribute__((always_inline)) {
          piece_of_chunk<K>(state, row, those, rows, sum, at + from, body, views...);
        };
        if (some < piece_block_rows) {
          piece(some, b);
        } else if (b == 2) {  // lengths that the compiler knows
          piece(piece_block_rows, 2);
        } else if (b == 3) {
          piece(piece_block_rows, 3);
        } else if (b == 6) {
          piece(piece_block_rows, 6);
        } else {
          piece(piece_block_rows, b);
        }
      }
    }
  } else {  // the body couples the rows of a block row
    for (int l = 0; l < block_rows; ++l) {
      body(state, BlockRow<B>{first_row + l * B, 0}, Contribution<accumulators>{sum.value[0] + at + l},
           views...);
    }
  }
}

/// The same of a step of several right-hand sides. Whole ones of blocks of one, and a piece of what is shorter, have a
/// length that the compiler knows: what a loop of another one costs before and behind its vectors was as much as these.
template <int K, int B, class Body, class... Views>
HOSTLESS_HOST_DEVICE void chunk_of_step(State const& state, std::int64_t first_row, int block_rows, int b,
                                        Accumulators<K>& sum, int at, Body const& body, Views... views) {
  if constexpr (B == 1) {
    if (b == 1) {
      if (block_rows == step_block_rows)
        return chunk<K, 1>(state, first_row, step_block_rows, 1, sum, at, body, views...);
      if (block_rows > piece_block_rows) {
        chunk<K, 1>(state, first_row, piece_block_rows, 1, sum, at, body, views...);
        return chunk<K, 1>(state, first_row + piece_block_rows, block_rows - piece_block_rows, 1, sum,
                           at + piece_block_rows, body, views...);
      }
    }
  }
  chunk<K, B>(state, first_row, block_rows, b, sum, at, body, views...);
}

template <int K, int B, class Body, class... Views>
HOSTLESS_HOST_DEVICE void rows_of_slice(Tiling const& t, int slice, State const& shared, double* partial,
                                        Body const& body, Views... views) {
  State const state = shared;  // a copy whose address nobody has: scalars stay in registers
  Accumulators<K> sum;
  std::int64_t const first = t.first(slice), last = t.first(slice + 1);
  sum.begin(static_cast<int>(std::min<std::int64_t>(accumulators, last - first)));
  for (std::int64_t block_row = first; block_row < last; block_row += accumulators) {
    int const block_rows = static_cast<int>(std::min<std::int64_t>(accumulators, last - block_row));
    chunk<K, B>(state, block_row * t.block, block_rows, t.block, sum, 0, body, views...);
  }
  sum.finish(partial);
}

/// Where the products of a sweep come from: a matrix, or a user's function that has filled `ready` for all
/// rows.
struct Multiplier {
  LocalMatrix const* matrix = nullptr;
  double const* ready = nullptr;
  LocalMatrix const* rounded = nullptr;  ///< the same in fp32, for phases that multiply with that
  /// Of a right-hand side whose vectors lie `offset` behind the first one's.
  Multiplier of(bool is_rounded, std::int64_t offset) const {
    if (is_rounded) return {rounded, nullptr, rounded};
    return {matrix, ready == nullptr ? nullptr : ready + offset, rounded};
  }
};

/// What a sweep multiplies: of each right-hand side that it is of the gathered field, ghosts around it, with
/// room for what formats stage of it.
struct Multiplied {
  struct Column {
    State const* state;
    Multiplier by;
    double const* gathered;
    std::int64_t offset;  ///< of its vectors, and
    std::int64_t number;  ///< the place of its partial sums
  };
  Column column[most_columns];
  int count = 0;
  bool shares_matrix = true;  ///< all of them multiply with the same
  bool past_caches = false;   ///< what is filled (`fills`) is stored past them
  SidesRoom* room = nullptr;
  std::int64_t partials_apart = 0;
  /// The matrix is read once for all of them.
  bool is_wide() const { return count > 1 && shares_matrix; }
};

/// The products of a step for all columns, the matrix read once for several.
inline void multiply_all(Multiplied const& p, int slice, std::int64_t block_row, int block_rows,
                         double (&product)[most_columns][step_rows]) {
  double const* x[most_columns];
  double* out[most_columns];
  for (int c = 0; c < p.count; ++c) {
    x[c] = p.column[c].gathered;
    out[c] = product[c];
  }
  p.column[0].by.matrix->multiply(slice, block_row, block_rows, p.count, x, out, *p.room);
}

/// One right-hand side, with a matrix of its own or with what a user's function has left.
template <int K, int B, class Body, class... Views>
HOSTLESS_HOST_DEVICE void sweep_of_column(Tiling const& t, int slice, double* partial,
                                          Multiplied::Column const& column, double* ring, Body const& body,
                                          Views... views) {
  Multiplier const a = column.by;
  State const state = *column.state;
  Accumulators<K> sum;
  alignas(64) double product[chunk_rows];
  std::int64_t const first = t.first(slice), last = t.first(slice + 1);
  sum.begin(static_cast<int>(std::min<std::int64_t>(accumulators, last - first)));
  for (std::int64_t block_row = first; block_row < last; block_row += accumulators) {
    int const block_rows = static_cast<int>(std::min<std::int64_t>(accumulators, last - block_row));
    std::int64_t const row = block_row * t.block;
    Product rows{a.ready, 0};
    if (a.ready == nullptr) {
      a.matrix->multiply(slice, block_row, block_rows, column.gathered, product, ring);
      rows = Product{product, row};
    }
    chunk<K, B>(state, row, block_rows, t.block, sum, 0, body, rows, views...);
  }
  sum.finish(partial);
}

/// Rows from `first` on of a field that is being filled, until they are stored together.
struct RowsToStore {
  double* values;
  std::int64_t first;
  template <int B>
  HOSTLESS_HOST_DEVICE double& operator()(BlockRow<B> block_row, int j) const {
    return values[block_row.row - first + j];
  }
};
/// What a step fills of a right-hand side, until it is stored past the caches.
using FilledRows = double[step_rows];
template <bool past_caches, class View>
HOSTLESS_HOST_DEVICE auto step_view(View const& view, std::int64_t offset, std::int64_t row, double* filled) {
  if constexpr (past_caches && std::is_same_v<View, Filled>) {
    return RowsToStore{filled, row};
  } else {
    return view.in_column(offset);
  }
}
template <class View>
HOSTLESS_HOST_DEVICE void store_step(View const& view, std::int64_t at, double const* filled, int rows,
                                     LinesPastCaches lines) {
  if constexpr (std::is_same_v<View, Filled>) store_past_caches(view.values + at, filled, rows, lines);
}

/// What a sweep does beside its products: nothing.
struct NothingBetween {
  void before_slot() const {}
  void between(int) const {}
};

/// Several right-hand sides: step after step, each for all columns while caches have what they share.
template <int K, int B, bool past_caches, class Between, class Body, class... Views>
HOSTLESS_HOST_DEVICE void sweep_of_columns(Tiling const& t, int slice, double* partial, Multiplied const& p,
                                           Between const& between, Body const& body, Views... views) {
  Accumulators<K> sum[most_columns];
  alignas(64) double product[most_columns][step_rows];
  alignas(64) FilledRows filled[past_caches ? most_columns : 1];
  [[maybe_unused]] LinesPastCaches const lines = lines_past_caches();
  std::int64_t const first = t.first(slice), last = t.first(slice + 1);
  for (int c = 0; c < p.count; ++c)
    sum[c].begin(static_cast<int>(std::min<std::int64_t>(accumulators, last - first)));
  for (std::int64_t slot = first; slot < last; slot += accumulators) {
    between.before_slot();
    int const in_slot = static_cast<int>(std::min<std::int64_t>(accumulators, last - slot));
    for (int at = 0; at < in_slot; at += step_block_rows) {
      int const block_rows = std::min(step_block_rows, in_slot - at);
      std::int64_t const row = (slot + at) * t.block;
      multiply_all(p, slice, slot + at, block_rows, product);
      for (int c = 0; c < p.count; ++c) {
        State const state = *p.column[c].state;
        std::int64_t const offset = p.column[c].offset;
        chunk_of_step<K, B>(state, row, block_rows, t.block, sum[c], at, in_column(body, offset),
                            Product{product[c], row},
                            step_view<past_caches>(views, offset, row, filled[past_caches ? c : 0])...);
      }
      if constexpr (past_caches)
        for (int c = 0; c < p.count; ++c)
          (store_step(views, p.column[c].offset + row, filled[c], block_rows * t.block, lines), ...);
      between.between((in_slot - at + step_block_rows - 1) / step_block_rows);
    }
  }
  for (int c = 0; c < p.count; ++c) sum[c].finish(partial + p.column[c].number * p.partials_apart);
}

template <int K, int B, class Between, class Body, class... Views>
HOSTLESS_HOST_DEVICE void sweep_of_slice(Tiling const& t, int slice, double* partial, Multiplied const& p,
                                         Between const& between, Body const& body, Views... views) {
  if (p.is_wide()) {
    constexpr int filled = (0 + ... + static_cast<int>(std::is_same_v<Views, Filled>));
    static_assert(filled <= 1, "rows of one field wait to be stored");
    if constexpr (filled == 1)
      if (p.past_caches) return sweep_of_columns<K, B, true>(t, slice, partial, p, between, body, views...);
    return sweep_of_columns<K, B, false>(t, slice, partial, p, between, body, views...);
  }
  for (std::int64_t slot = t.first(slice); slot < t.first(slice + 1); slot += accumulators)
    between.before_slot();
  for (int c = 0; c < p.count; ++c) {
    Multiplied::Column const& column = p.column[c];
    sweep_of_column<K, B>(t, slice, partial + column.number * p.partials_apart, column,
                          p.room->ring(static_cast<int>(column.number)), in_column(body, column.offset),
                          views.in_column(column.offset)...);
  }
}

/// Of an operator of a context, whose rows sum nothing: body(state, block row, sums, products, views...).
template <int B, class Products, class Body, class... Views>
HOSTLESS_HOST_DEVICE void operator_of_slice(Tiling const& t, int slice, State const& shared,
                                            Products const& products, Body const& body, Views... views) {
  Products const from = products;
  State const state = shared;
  Accumulators<0> sum;
  double room[chunk_rows];
  std::int64_t const first = t.first(slice), last = t.first(slice + 1);
  for (std::int64_t block_row = first; block_row < last; block_row += accumulators) {
    int const block_rows = static_cast<int>(std::min<std::int64_t>(accumulators, last - block_row));
    std::int64_t const row = block_row * t.block;
    chunk<0, B>(state, row, block_rows, t.block, sum, 0, body,
                from.products(slice, block_row, block_rows, row, room), views...);
  }
}

// The three builds of a slice. `Call` is a functor with everything bound but the slice.
template <class Call>
HOSTLESS_TARGET_BASELINE void run_baseline(Call const& call, int slice, double* partial) {
  call(slice, partial);
}
template <class Call>
HOSTLESS_TARGET_V3 void run_v3(Call const& call, int slice, double* partial) {
  call(slice, partial);
}
template <class Call>
HOSTLESS_TARGET_V4 void run_v4(Call const& call, int slice, double* partial) {
  call(slice, partial);
}
template <class Call>
void run_slice(Call const& call, int slice, double* partial) {
  switch (active_isa()) {
    case Isa::v4:
      return run_v4(call, slice, partial);
    case Isa::v3:
      return run_v3(call, slice, partial);
    case Isa::baseline:
      return run_baseline(call, slice, partial);
  }
}

}  // namespace hostless::host
