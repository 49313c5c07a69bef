#pragma once
// Record and replay on the host: every verb becomes a node; loops and gated parts become nodes with a child
// graph, as WHILE and IF nodes of a device graph. Executing a node is executing the verb, so no bit can
// differ.

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "run/context.hpp"
#include "run/host_run.impl.hpp"

namespace hostless::host {

/// Run: ThreadRun, or what has its verbs and more (ContextRun).
template <class Run>
class GraphRun {
 public:
  explicit GraphRun(Run& run) : run_(run) {}

  InMemory keep(double* values) const { return {values}; }
  InMemory scratch(double* values) const { return {values}; }
  InMemory gathered(double* values) const { return {values}; }
  InContext gathered(GatheredField& field) const { return {&field}; }
  void save(InMemory, double*) const {}

  template <class... Arguments>
  void publish(Arguments... a) {
    add([this, a...] { run_.publish(a...); });
  }
  template <class... Arguments>
  void begin(Arguments... a) {
    add([this, a...] { run_.begin(a...); });
  }
  template <class... Arguments>
  void finish(Arguments... a) {
    add([this, a...] { run_.finish(a...); });
  }
  template <class... Arguments>
  void sweep(InMemory p, Arguments... a) {
    add([this, p, a...] { run_.sweep(p, a...); });
  }
  template <class Matrix, class... Arguments>
  void sweep(By<Matrix> by, Arguments... a) {
    add([this, by, a...] { run_.sweep(by, a...); });
  }
  template <class Field>
  void send(Field field) {
    add([this, field] { run_.send(field); });
  }
  template <class Body, class View, class... Rest>
  void sweep(Fused<InMemory, Body, View> const& formed, Rest... rest) {
    publish(formed.field, formed.body, formed.view);
    sweep(formed.field, rest...);
  }
  template <class... Rest>
  void sweep(Begun<InMemory> begun, Rest... rest) {
    sweep(begun.field, rest...);
  }
  template <class... Arguments>
  void rows(Arguments... a) {
    add([this, a...] { run_.rows(a...); });
  }
  template <class... Arguments>
  void apply(Arguments... a) {
    add([this, a...] { run_.apply(a...); });
  }
  template <class Text>
  void only(Gate gate, Text const& text) {
    add([this, gate, child = record(text)] { run_.only(gate, [&] { replay(*child); }); });
  }
  template <class Text>
  void repeat(Gate gate, Text const& text) {
    add([this, gate, child = record(text)] { run_.repeat(gate, [&] { replay(*child); }); });
  }
  /// Replays what was recorded.
  void launch() const { replay(nodes_); }
  std::size_t nodes() const { return nodes_.size(); }

 private:
  using Nodes = std::vector<std::function<void()>>;
  template <class Node>
  void add(Node node) {
    current_->push_back(std::move(node));
  }
  template <class Text>
  std::shared_ptr<Nodes> record(Text const& text) {
    auto child = std::make_shared<Nodes>();
    Nodes* const outer = std::exchange(current_, child.get());
    text();
    current_ = outer;
    return child;
  }
  static void replay(Nodes const& nodes) {
    for (auto const& node : nodes) node();
  }

  Run& run_;
  Nodes nodes_;
  Nodes* current_ = &nodes_;
};

}  // namespace hostless::host
