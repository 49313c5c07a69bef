#pragma once
// How one slice of a phase is executed on the host: bodies vectorised over the accumulators, contributions
// added in the order of docs/decisions/0001. Threads per slice: 1. Reduction order: row, accumulator, tree.

#include <algorithm>
#include <cstdint>

#include "hostless/base/anywhere.hpp"
#include "hostless/base/isa.hpp"
#include "hostless/base/order.hpp"
#include "hostless/operate/local_matrix.hpp"
#include "hostless/operate/tiling.hpp"
#include "hostless/run/state.hpp"
#include "hostless/run/views.hpp"

#if defined(__clang__)
#define HOSTLESS_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define HOSTLESS_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace hostless::host {

constexpr int accumulators = Tiling::accumulators;
constexpr int widest_block = 6;
constexpr int chunk_rows = accumulators * widest_block;

/// The accumulators of one slice.
template <int K>
struct Accumulators {
  double value[K == 0 ? 1 : K][accumulators];
  int used = 0;

  HOSTLESS_ANYWHERE void begin(int n) {
    used = n;
    for (int k = 0; k < K; ++k) std::fill_n(value[k], power_of_two(n), 0.0);
  }
  HOSTLESS_ANYWHERE void finish(double* partial) {
    for (int k = 0; k < K; ++k) partial[k] = used == 0 ? 0.0 : tree(value[k], power_of_two(used));
  }
};

/// Adds the contributions of `leaves` leaves of b rows to the accumulators, rows rising inside a leaf.
template <int b>
HOSTLESS_ANYWHERE void add_leaves(double* value, double const* contribution, int leaves) {
  HOSTLESS_INDEPENDENT
  for (int l = 0; l < leaves; ++l) {
    double sum = value[l];
    for (int j = 0; j < b; ++j) sum += contribution[l * b + j];
    value[l] = sum;
  }
}
template <int K>
HOSTLESS_ANYWHERE void add_to_accumulators(Accumulators<K>& sum, double const* contribution, int leaves,
                                           int b) {
  for (int k = 0; k < K; ++k) {
    double const* c = contribution + k * chunk_rows;
    switch (b) {
      case 2:
        add_leaves<2>(sum.value[k], c, leaves);
        break;
      case 3:
        add_leaves<3>(sum.value[k], c, leaves);
        break;
      case 4:
        add_leaves<4>(sum.value[k], c, leaves);
        break;
      default:
        add_leaves<6>(sum.value[k], c, leaves);
        break;
    }
  }
}

/// One chunk of at most 256 leaves: body(state, leaf, sums, views...), or with the products in front of the
/// views.
template <int K, int B, class Body, class... Views>
HOSTLESS_ANYWHERE void chunk(State const& state, std::int64_t first_row, int leaves, int b,
                             Accumulators<K>& sum, Body const& body, Views... views) {
  if constexpr (B == 1) {  // rows are independent of each other: one long loop whatever the block size
    if (b == 1) {          // a row is an accumulator
      HOSTLESS_INDEPENDENT
      for (int i = 0; i < leaves; ++i) {
        body(state, Leaf<1>{first_row + i, 0}, Contribution<accumulators>{sum.value[0] + i}, views...);
      }
      return;
    }
    double contribution[K == 0 ? 1 : K * chunk_rows];
    int const rows = leaves * b;
    for (int k = 0; k < K; ++k) std::fill_n(contribution + k * chunk_rows, rows, 0.0);
    HOSTLESS_INDEPENDENT
    for (int i = 0; i < rows; ++i) {
      body(state, Leaf<1>{first_row + i, 0}, Contribution<chunk_rows>{contribution + (K == 0 ? 0 : i)},
           views...);
    }
    if constexpr (K > 0) add_to_accumulators(sum, contribution, leaves, b);
  } else {  // the body couples the rows of a leaf
    for (int l = 0; l < leaves; ++l) {
      body(state, Leaf<B>{first_row + l * B, 0}, Contribution<accumulators>{sum.value[0] + l}, views...);
    }
  }
}

template <int K, int B, class Body, class... Views>
HOSTLESS_ANYWHERE void rows_of_slice(Tiling const& t, int slice, State const& shared, double* partial,
                                     Body const& body, Views... views) {
  State const state = shared;  // a copy whose address nobody has: scalars stay in registers
  Accumulators<K> sum;
  std::int64_t const first = t.first(slice), last = t.first(slice + 1);
  sum.begin(static_cast<int>(std::min<std::int64_t>(accumulators, last - first)));
  for (std::int64_t leaf = first; leaf < last; leaf += accumulators) {
    int const leaves = static_cast<int>(std::min<std::int64_t>(accumulators, last - leaf));
    chunk<K, B>(state, leaf * t.block, leaves, t.block, sum, body, views...);
  }
  sum.finish(partial);
}

/// Where the products of a sweep come from: a matrix, or a user's function that has filled `ready` for all
/// rows.
struct Multiplier {
  LocalMatrix const* matrix = nullptr;
  double const* ready = nullptr;
  LocalMatrix const* rounded = nullptr;  ///< the same in fp32, for phases that multiply with that
  Multiplier of(bool is_rounded) const { return is_rounded ? Multiplier{rounded, nullptr, rounded} : *this; }
};

template <int K, int B, class Body, class... Views>
HOSTLESS_ANYWHERE void sweep_of_slice(Tiling const& t, int slice, State const& shared, double* partial,
                                      Multiplier a, double* ring, double const* gathered, Body const& body,
                                      Views... views) {
  State const state = shared;
  Accumulators<K> sum;
  double product[chunk_rows];
  std::int64_t const first = t.first(slice), last = t.first(slice + 1);
  sum.begin(static_cast<int>(std::min<std::int64_t>(accumulators, last - first)));
  for (std::int64_t leaf = first; leaf < last; leaf += accumulators) {
    int const leaves = static_cast<int>(std::min<std::int64_t>(accumulators, last - leaf));
    std::int64_t const row = leaf * t.block;
    Product rows{a.ready, 0};
    if (a.ready == nullptr) {
      a.matrix->multiply(slice, leaf, leaves, gathered, product, ring);
      rows = Product{product, row};
    }
    chunk<K, B>(state, row, leaves, t.block, sum, body, rows, views...);
  }
  sum.finish(partial);
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
