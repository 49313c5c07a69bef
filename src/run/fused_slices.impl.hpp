#pragma once
// A slice of a gathered field formed for the sweep that multiplies it, of several right-hand sides, and what x
// is owed meanwhile (decision 0017).

#include <cstdint>
#include <type_traits>

#include "hostless/base/rows.hpp"
#include "run/deferred_update.hpp"
#include "run/engine.hpp"

namespace hostless::host {

/// Rows of a block row that a body couples: those of its preconditioner, else 1.
template <class Body>
constexpr int coupled_rows() {
  if constexpr (requires { Body::coupled; }) {
    return Body::coupled;
  } else {
    return 1;
  }
}

/// x waits for step p, of the columns of which a bit is set.
struct DeferredUpdate {
  std::uint32_t columns = 0;
  double step[most_columns];
  InMemory x{nullptr}, p{nullptr};
  bool of(int column) const { return (columns >> column & 1u) != 0; }
};

/// Block rows [first, first + count), at most 256.
struct SomeBlockRows {
  std::int64_t first;
  int count;
};

template <int B, class Body, class... Views>
HOSTLESS_HOST_DEVICE void rows_without_sums(Tiling const& t, SomeBlockRows rows, State const& shared,
                                            Body const& body, Views... views) {
  State const state = shared;
  Accumulators<0> none;
  chunk_of_step<0, B>(state, rows.first * t.block, rows.count, t.block, none, 0, body, views...);
}

/// Rows between those that are formed and those that are fetched (decision 0017).
constexpr std::int64_t fetched_ahead = 512;
/// Rows [first, first + count) of a field into the second cache; behind its end nothing is fetched and nothing fails.
/// Fields of several columns beside the direction that is multiplied are more streams than a processor fetches ahead
/// by itself. Inlined whatever the compiler thinks: GCC drops calls of what only fetches.
__attribute__((always_inline)) inline void fetch_rows(double const* field, std::int64_t first, int count) {
  std::uintptr_t at =
      reinterpret_cast<std::uintptr_t>(field) + static_cast<std::uintptr_t>(first) * sizeof(double);
  for (int row = 0; row < count; row += line_values, at += line_values * sizeof(double))
    __builtin_prefetch(reinterpret_cast<void const*>(at), 0, 2);
}

/// p by the body, of the columns whose gate is open; x first, where it is owed of what is overwritten.
template <class Former, class View>
void form_rows(Engine const& e, Gate gate, DeferredUpdate const& deferred, SomeBlockRows rows,
               Former const& former, InMemory p, View view) {
  concretely(former, [&](auto const& concrete) {
    using Concrete = std::remove_cvref_t<decltype(concrete)>;
    constexpr int coupled = coupled_rows<Concrete>();
    auto const call = [&](int, double*) __attribute__((always_inline)) {
      for (int c = 0; c < static_cast<int>(e.columns.size()); ++c) {
        State const& state = e.columns[static_cast<std::size_t>(c)];
        if (!state.open(gate)) continue;
        std::int64_t const offset = c * e.column_stride;
        auto const form = in_column(concrete, offset);
        std::int64_t const ahead = offset + rows.first * e.tiling.block + fetched_ahead;
        int const count = rows.count * e.tiling.block;
        fetch_rows(p.values, ahead, count);
        fetch_rows(view.values, ahead, count);
        if (deferred.of(c)) fetch_rows(deferred.x.values, ahead, count);
        if (deferred.of(c)) {
          rows_without_sums<coupled>(e.tiling, rows, state, AdvanceThen<Concrete>{deferred.step[c], form},
                                     p.in_column(offset), view.in_column(offset),
                                     deferred.x.in_column(offset));
        } else {
          rows_without_sums<coupled>(e.tiling, rows, state, form, p.in_column(offset),
                                     view.in_column(offset));
        }
      }
    };
    run_slice(call, 0, nullptr);
  });
}

/// x takes what it is owed.
inline void apply_deferred_update(Engine const& e, DeferredUpdate const& deferred, int slice) {
  for (int c = 0; c < static_cast<int>(e.columns.size()); ++c) {
    std::int64_t const offset = c * e.column_stride;
    if (!deferred.of(c)) continue;
    auto const call = [&](int s, double* partial) __attribute__((always_inline)) {
      rows_of_slice<0, 1>(e.tiling, s, e.columns[static_cast<std::size_t>(c)], partial,
                          Advance{deferred.step[c]}, deferred.x.in_column(offset),
                          deferred.p.in_column(offset));
    };
    run_slice(call, slice, nullptr);
  }
}

}  // namespace hostless::host
