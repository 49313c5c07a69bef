#pragma once
// A method's text phase by phase: the host executes the text, every phase is one kernel, scalars never leave
// the GPU (Trotter et al. 2025, section 3.1.2).

#include <stdexcept>
#include <type_traits>
#include <utility>

#include "exchange/gpu/solver_exchange.hpp"
#include "run/gpu/wide_phases.gpu.hpp"

namespace hostless::gpu {

/// The verbs, executed by the host. `Late`: the decision of the text's `finish`; the sweep before it takes
/// it, for no launch of its own. `Inner`: float where iterations multiply with a rounded matrix.
template <int B, class Late = NoDecision, class Inner = double>
class StreamRun {
 public:
  /// `product`: what makes the products of formats that are multiplied apart, else null; `between`: what
  /// carries between ranks whose kernels do not, else null; with it, sweeps may be parted by `order`.
  StreamRun(Queue& queue, RowsView const& rows, PhaseMemory const& memory, Product const* product,
            SolverExchange* exchange, TileOrder order)
      : queue_(queue), rows_(rows), memory_(memory), product_(product), exchange_(exchange), order_(order) {}

  Field keep(double* memory) const { return {memory, 0, 0}; }
  Field scratch(double* memory) const { return {memory, 0, 0}; }
  Field gathered(double* memory) const { return {memory, 0, 0}; }
  void save(Field, double*) const {}  // the fields live where they are saved to

  template <class Body, class... Views>
  void publish(Field p, Body const& body, Views... views) {
    Range const range("publish");
    launch_rows<0, Ending::nothing>(p.memory, {}, body, NoDecision{}, p, views...);
    hand_on(p.memory);
  }
  template <int K, class Body, class... Views>
  void begin(Field p, Into<K> into, Body const& body, Views... views) {
    Range const range("begin");
    launch_rows<K, Ending::keep>(p.memory, {}, body, NoDecision{}, p, views...);
    begun_ = delivery(into);
    hand_on(p.memory);
  }
  template <int K, class Decision>
  void finish(Into<K>, Decision const&) {
    static_assert(std::is_same_v<Decision, Late>, "name the decision of `finish` as the run's Late");
    if (begun_.width != 0)
      throw std::logic_error("a text finishes a sum without a sweep after its beginning");
  }
  template <int K, class Body, class Decision, class... Views>
  void sweep(Field p, Into<K> into, Body const& body, Decision const& decide, Views... views) {
    if constexpr (K > 0) {
      if (exchange_ == nullptr) {
        launch_sweep<K, Ending::decide>(delivery(into), body, decide, p, views...);
      } else {
        launch_sweep<K, Ending::keep>({}, body, NoDecision{}, p, views...);
        decide_on_gathered(delivery(into), decide);
      }
    } else {
      static_assert(std::is_same_v<Decision, NoDecision>, "a decision needs a sum");
      if constexpr (!std::is_same_v<Late, NoDecision>) {
        if (begun_.width != 0) return sweep_late(p, body, views...);
      }
      launch_sweep<0, Ending::nothing>({}, body, decide, p, views...);
    }
  }
  /// Forms the gathered field first.
  template <class Former, class View, class... Rest>
  void sweep(Fused<Field, Former, View> const& formed, Rest... rest) {
    publish(formed.field, formed.body, formed.view);
    sweep(formed.field, rest...);
  }
  template <class... Rest>
  void sweep(Begun<Field> begun, Rest... rest) {
    sweep(begun.field, rest...);
  }
  template <int K, class Body, class Decision, class... Views>
  void rows(Into<K> into, Body const& body, Decision const& decide, Views... views) {
    Range const range("rows");
    if (exchange_ == nullptr)
      return launch_rows<K, Ending::decide>(nullptr, delivery(into), body, decide, views...);
    launch_rows<K, Ending::keep>(nullptr, {}, body, NoDecision{}, views...);
    decide_on_gathered(delivery(into), decide);
  }
  /// A function of the host: refused before anything is launched.
  template <class Function>
  void apply(Function const&, Field, Field) {}
  template <class Text>
  void only(Gate gate, Text const& text) {
    Gate const outer = std::exchange(gate_, gate);
    text();
    gate_ = outer;
  }
  template <class Text>
  void repeat(Gate gate, Text const& text) {
    Gate const outer = std::exchange(gate_, gate);
    queue_.repeat(gate, [&] { text(); });
    gate_ = outer;
  }

 private:
  template <class Body, class... Views>
  void sweep_late(Field p, Body const& body, Views... views) {
    if (exchange_ == nullptr) {
      launch_sweep<0, Ending::decide_late>(begun_, body, Late{}, p, views...);
    } else {
      launch_sweep<0, Ending::nothing>({}, body, NoDecision{}, p, views...);
      decide_on_gathered(begun_, Late{});
    }
    begun_ = {};
  }
  template <class Body, class Decision>
  PhaseCall<Body, Decision> call(Delivery to, Body const& body, Decision const& decide) const {
    return {memory_, rows_.tiling, gate_, queue_.loop(), to, nullptr, nullptr, body, decide};
  }
  void work(KernelLaunch const& kernel) {
    queue_.mark(Mark::computes, gate_);
    queue_.launch(kernel);
    queue_.mark(Mark::computed, gate_);
  }
  void hand_on(double* memory) {
    if (is_parted()) {
      queue_.fork();
      queue_.beside([&] {
        queue_.mark(Mark::departs, gate_);
        exchange_->begin_exchange(queue_, memory);
      });
      travels_ = true;
      return;
    }
    if (exchange_ != nullptr) {
      queue_.mark(Mark::departs, gate_);
      exchange_->exchange(queue_, memory);
      return queue_.mark(Mark::arrived, gate_);
    }
    auto phase = call({}, 0, NoDecision{});
    phase.sent = memory;
    for (int round = 1; round < memory_.rounds; ++round) {
      void* parameters[] = {&phase, &round};
      work({reinterpret_cast<void const*>(&round_kernel<B>), memory_.tiles, parameters, false});
    }
  }
  template <class Decision>
  void decide_on_gathered(Delivery to, Decision const& decide) {
    Range const range("meet");
    auto phase = call(to, 0, decide);
    double const* all = std::exchange(gathered_, nullptr);
    if (all == nullptr) {
      queue_.mark(Mark::departs, gate_);
      all = gather(to.width);
      queue_.mark(Mark::arrived, gate_);
    }
    int ranks = exchange_->ranks();
    void* parameters[] = {&phase, &all, &ranks};
    work({reinterpret_cast<void const*>(&gathered_kernel<Decision>), 1, parameters, true});
  }
  template <int K, Ending ending, class Body, class Decision, class... Views>
  void launch_rows(double const* sent, Delivery to, Body const& body, Decision const& decide,
                   Views... views) {
    auto phase = call(to, body, decide);
    if (memory_.peers != nullptr) phase.sent = sent;
    void* parameters[] = {&phase, &views...};
    work({reinterpret_cast<void const*>(&rows_kernel<B, K, ending, Body, Decision, Views...>),
          memory_.tiles * memory_.columns, parameters, decides(ending)});
  }
  template <int K, Ending ending, class Body, class Decision, class... Views>
  void launch_wide_sweep(Delivery to, Body const& body, Decision const& decide, Field p, Views... views) {
    auto phase = call(to, body, decide);
    RowsView rows = rows_;
    void* parameters[] = {&phase, &rows, &p, &views...};
    int const groups = (memory_.columns + wide_columns - 1) / wide_columns;
    work({reinterpret_cast<void const*>(&wide_sweep_kernel<B, K, ending, Body, Decision, Views...>),
          memory_.tiles * groups, parameters, decides(ending)});
  }
  template <int K, Ending ending, class Body, class Decision, class... Views>
  void launch_sweep(Delivery to, Body const& body, Decision const& decide, Field p, Views... views) {
    Range const range("sweep");
    if constexpr (std::is_same_v<Inner, double> && ending != Ending::keep) {  // nothing else carries then
      if (memory_.columns > 1) return launch_wide_sweep<K, ending>(to, body, decide, p, views...);
    }
    if (product_ != nullptr) {
      queue_.mark(Mark::computes, gate_);
      product_->multiply(queue_, gate_, memory_, p.memory, rows_.ready);
      queue_.mark(Mark::computed, gate_);
    }
    auto phase = call(to, body, decide);
    RowsView rows = rows_;
    void* parameters[] = {&phase, &rows, &p, &views...};
    auto const launch = [&](int blocks) {
      work({reinterpret_cast<void const*>(&sweep_kernel<B, Inner, K, ending, Body, Decision, Views...>),
            blocks, parameters, decides(ending)});
    };
    if (!std::exchange(travels_, false)) return launch(memory_.tiles);
    phase.tile_of_block = order_.tile;
    launch(order_.interior);
    queue_.beside([&] {
      exchange_->finish_exchange(queue_, p.memory);
      if (begun_.width != 0) gathered_ = gather(begun_.width);
      queue_.mark(Mark::arrived, gate_);
    });
    queue_.join();  // bounded: no thread, two streams
    phase.tile_of_block += order_.interior;
    if (int const border = memory_.tiles - order_.interior; border > 0) launch(border);
  }
  bool is_parted() const { return exchange_ != nullptr && product_ == nullptr && order_.tile != nullptr; }
  double const* gather(int width) { return exchange_->gather(queue_, memory_.total - 1, said_width(width)); }
  Queue& queue_;
  RowsView const& rows_;
  PhaseMemory const& memory_;
  Product const* product_;
  SolverExchange* exchange_;
  TileOrder order_;
  Delivery begun_;                    // a sum that waits in memory
  bool travels_ = false;              // the gathered field, beside what is queued next
  double const* gathered_ = nullptr;  // what all ranks say of the sum that was begun, where it has travelled
  Gate gate_ = Gate::solve;
};

}  // namespace hostless::gpu
