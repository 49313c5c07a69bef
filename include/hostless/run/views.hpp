#pragma once

#include <cstdint>

#include "hostless/base/host_device.hpp"

namespace hostless {

/// Some consecutive rows that one accumulator owns: B rows from `row` on. `slot` counts the block rows of the
/// accumulator, and is the only thing that may index a register array.
template <int B>
struct BlockRow {
  static constexpr int rows = B;
  std::int64_t row;
  int slot;
};

/// A field that lives in memory. Kept fields of other runs live in registers or shared memory behind the same
/// calls.
struct InMemory {
  double* values;
  /// That of another right-hand side, whose vectors lie so far behind these; none stays none.
  HOSTLESS_HOST_DEVICE InMemory in_column(std::int64_t offset) const {
    return {values == nullptr ? nullptr : values + offset};
  }
  template <int B>
  HOSTLESS_HOST_DEVICE double& operator()(BlockRow<B> block_row, int j) const {
    return values[block_row.row + j];
  }
};

/// A body whose vectors of the problem are those of another right-hand side, so far behind the first one's.
template <class Body>
HOSTLESS_HOST_DEVICE Body in_column(Body const& body, std::int64_t offset) {
  if constexpr (requires { body.in_column(offset); }) {
    return body.in_column(offset);
  } else {
    return body;
  }
}

/// Hands `use` the body with its run-time preconditioner replaced by the concrete one.
template <class Body, class Use>
HOSTLESS_HOST_DEVICE void concretely(Body const& body, Use const& use) {
  if constexpr (requires { body.choose(use); }) {
    body.choose(use);
  } else {
    use(body);
  }
}

/// The field, of which a body will change nothing: a run that stages fields need not write it back.
HOSTLESS_HOST_DEVICE InMemory reads(InMemory field) { return field; }

/// A field in memory of which a body writes every row that it is called for, and reads none.
struct Filled : InMemory {};
/// The field, of which a body is known to do so: a run may store it past the caches.
HOSTLESS_HOST_DEVICE Filled fills(InMemory field) { return {field}; }
template <class Field>
HOSTLESS_HOST_DEVICE Field fills(Field field) {
  return field;
}

/// The field, of which a body will change something that other rows read in the next sweep (`fused_update`):
/// a run that keeps it on chip writes it to memory too.
HOSTLESS_HOST_DEVICE InMemory halo_source(InMemory field) { return field; }

/// A gathered field that a sweep multiplies, and how it is formed first: p = body(p, view), row by row.
///
/// A run may publish it, then sweep; or form each neighbour's value where it is read, which costs a second
/// load and saves a barrier of everybody.
template <class Field, class Body, class View>
struct Fused {
  Field& field;
  Body body;
  View view;
};
template <class Field, class Body, class View>
HOSTLESS_HOST_DEVICE Fused<Field, Body, View> fused_update(Field& field, Body const& body, View view) {
  return {field, body, view};
}

/// A gathered field that `begin` has formed and whose exchange it has started: to be named so where the next
/// sweep multiplies it. A run may then carry it beside the sum, and need no barrier behind that sweep.
template <class Field>
struct Begun {
  Field& field;
};
template <class Field>
HOSTLESS_HOST_DEVICE Begun<Field> begun(Field& field) {
  return {field};
}

/// The products (A p)[row] of a block row, handed to a body by `sweep`.
struct Product {
  double const* values;  ///< of rows [first, ...)
  std::int64_t first;
  template <int B>
  HOSTLESS_HOST_DEVICE double operator()(BlockRow<B> block_row, int j) const {
    return values[block_row.row - first + j];
  }
};

/// Receives the contributions of one block row to a sum of K values.
template <int Stride>
struct Contribution {
  double* values;
  /// Adds one product, already rounded, to value k.
  HOSTLESS_HOST_DEVICE void add(int k, double product) const { values[k * Stride] += product; }
};

}  // namespace hostless
