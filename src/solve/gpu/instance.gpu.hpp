#pragma once
// Makes the Instances of a method from its descriptor.

#include <type_traits>
#include <utility>

#include "run/gpu/persistent_columns.gpu.hpp"
#include "run/gpu/persistent_kernel.gpu.hpp"
#include "run/gpu/stream.gpu.hpp"
#include "solve/gpu/instance.hpp"
#include "solve/methods/descriptor.hpp"
#include "solve/methods/preconditioners.hpp"

namespace hostless {

/// What `persistent_kernel` and a StreamRun execute.
template <class Run, class Data>
HOSTLESS_TEXT void run_text(Run& run, Data const& data) {
  Data::Descriptor::text(run, data);
}

}  // namespace hostless

namespace hostless::gpu {

/// Variants have kernels of their own, so that those without a second matrix or a polynomial keep their
/// registers.
template <class Descriptor, Variant variant, int B>
struct MethodInstance {
  using M = BlockRowPreconditioner<B>;
  static auto bind(MethodInput<M> const& in) {
    return Descriptor::bind(in, PreconditionerOf<variant>::of(in));
  }
  using Data = decltype(bind(std::declval<MethodInput<M>>()));
  /// How the matrix is stored that iterations multiply with.
  using Inner = std::conditional_t<variant == Variant::rounded, float, double>;
  static constexpr bool spans_ranks = Descriptor::offers.spans_ranks && variant == Variant::plain;
  /// So is that of several right-hand sides.
  static constexpr bool takes_columns = spans_ranks;
  static constexpr bool fuses = Descriptor::offers.fuses && variant != Variant::polynomial;

  static Data data_of(Arguments const& a) {
    using Kind = AnyPreconditioner::Kind;
    Kind const kind = a.preconditioner_data_kind == PreconditionerData::none     ? Kind::none
                      : a.preconditioner_data_kind == PreconditionerData::jacobi ? Kind::jacobi
                                                                                 : Kind::block_jacobi;
    return bind(
        {{kind, a.preconditioner_data}, a.rhs, a.field, a.polynomial, fields_in<Descriptor>(variant)});
  }
  template <Ranks ranks>
  static void const* kernel_of() {
    return reinterpret_cast<void const*>(&persistent_kernel<B, Data, Inner, ranks>);
  }
  static void const* kernel(Ranks ranks) {
    if constexpr (spans_ranks) {
      if (ranks == Ranks::several) return kernel_of<Ranks::several>();
      if (ranks == Ranks::routed) return kernel_of<Ranks::routed>();
    }
    return kernel_of<Ranks::one>();
  }

  static std::int64_t shared_bytes(int device, Ranks ranks) {
    return shared_bytes_beside(kernel(ranks), device);
  }
  static void const* kernel_of_columns(int columns) {
    if constexpr (takes_columns) {
      return room_for(columns) == 2 ? reinterpret_cast<void const*>(&columns_kernel<B, 2, Data>)
                                    : reinterpret_cast<void const*>(&columns_kernel<B, wide_columns, Data>);
    } else {
      return nullptr;
    }
  }
  static std::int64_t shared_bytes_of_columns(int device, int columns) {
    return takes_columns ? shared_bytes_beside(kernel_of_columns(columns), device) : -1;
  }
  static void launch_columns(Arguments const& a, HOSTLESS_GPU(Stream_t) stream) {
    Data data = data_of(a);
    RowsView rows = a.rows;
    Layout layout = a.layout;
    Control control = a.control;
    FieldsOfSides fields = a.fields_of_sides;
    FlaggedWord* flagged_words = a.flagged_words;
    std::uint32_t* epoch = a.epoch;
    State* states = a.state;
    int count = a.columns;
    void* parameters[] = {&data, &rows, &layout, &control, &fields, &flagged_words, &epoch, &states, &count};
    launch_blocks(kernel_of_columns(count), a, parameters, stream);
  }
  static void launch_persistent(Arguments const& a, HOSTLESS_GPU(Stream_t) stream) {
    if (a.columns > 1) return launch_columns(a, stream);
    void const* const chosen = kernel(ranks_of(a));
    Data data = data_of(a);
    RowsView rows = a.rows;
    Layout layout = a.layout;
    Control control = a.control;
    PeerView const* peers = a.peers;
    FlaggedWord* flagged_words = a.flagged_words;
    std::uint32_t* epoch = a.epoch;
    State* state = a.state;
    void* parameters[] = {&data, &rows, &layout, &control, &peers, &flagged_words, &epoch, &state};
    launch_blocks(chosen, a, parameters, stream);
  }
  static void run_phases(Arguments const& a, Queue& queue) {
    StreamRun<B, typename Descriptor::Late, Inner> run(queue, a.rows, a.phases, a.product, a.exchange,
                                                       a.tile_order);
    run_text(run, data_of(a));
  }
  static constexpr Instance instance{fields_in<Descriptor>(variant),
                                     batch_block_rows<B>,
                                     spans_ranks,
                                     takes_columns,
                                     fuses,
                                     Descriptor::offers.begins,
                                     &shared_bytes,
                                     &shared_bytes_of_columns,
                                     &launch_persistent,
                                     &run_phases};
};

template <class Descriptor, Variant variant, int B>
Instance const& instance_of() {
  return MethodInstance<Descriptor, variant, B>::instance;
}

}  // namespace hostless::gpu
