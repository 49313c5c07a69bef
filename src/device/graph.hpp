#pragma once
// A graph of kernels, one after the other, with loops as WHILE nodes where the runtime has them: recorded
// once, launched often.

#include "device/memory.hpp"

namespace hostless::gpu {

class Graph {
 public:
  Graph() {
    HOSTLESS_GPU(Graph_t) graph = nullptr;
    check(HOSTLESS_GPU(GraphCreate)(&graph, 0), "creating a graph");
    levels_.push_back({graph, nullptr});
  }
  Graph(Graph const&) = delete;
  Graph& operator=(Graph const&) = delete;
  ~Graph() {
    if (ready_ != nullptr) (void)HOSTLESS_GPU(GraphExecDestroy)(ready_);
    (void)HOSTLESS_GPU(GraphDestroy)(levels_.front().graph);
  }

  /// After all that was added at this level. The parameters' values are copied.
  void add_kernel(void const* kernel, int blocks, int threads, void** parameters) {
    HOSTLESS_GPU(KernelNodeParams) node{};
    node.func = const_cast<void*>(kernel);
    node.gridDim = dim3(static_cast<unsigned>(blocks));
    node.blockDim = dim3(static_cast<unsigned>(threads));
    node.kernelParams = parameters;
    Level& level = levels_.back();
    HOSTLESS_GPU(GraphNode_t) added = nullptr;
    check(HOSTLESS_GPU(GraphAddKernelNode)(&added, level.graph, after(level), count(level), &node),
          "adding a kernel to a graph");
    level.last = added;
    ++nodes_;
  }
  /// What use(stream) queues, as one node after all that was added at this level.
  template <class Use>
  void add_recorded(Stream const& stream, Use const& use) {
    HOSTLESS_GPU(Graph_t) recorded = record(stream, use);
    Level& level = levels_.back();
    HOSTLESS_GPU(GraphNode_t) added = nullptr;
    auto const code =
        HOSTLESS_GPU(GraphAddChildGraphNode)(&added, level.graph, after(level), count(level), recorded);
    (void)HOSTLESS_GPU(GraphDestroy)(recorded);  // the node has a copy
    check(code, "adding what was recorded to a graph");
    level.last = added;
    ++nodes_;
  }
  /// What use(stream) queues becomes all of this graph.
  template <class Use>
  void take_recorded(Stream const& stream, Use const& use) {
    HOSTLESS_GPU(Graph_t) recorded = record(stream, use);
    (void)HOSTLESS_GPU(GraphDestroy)(levels_.front().graph);
    levels_.front() = {recorded, nullptr};
    ++nodes_;
  }
  /// For a loop at this level; a kernel sets it before the loop and in its body.
  Condition new_condition() {
    Condition condition{};
    check(create_condition(&condition, levels_.back().graph), "creating the condition of a WHILE node");
    return condition;
  }
  /// What follows, up to `leave`, is repeated while the condition is true.
  void enter_while(Condition condition) {
    Level& level = levels_.back();
    HOSTLESS_GPU(GraphNode_t) added = nullptr;
    HOSTLESS_GPU(Graph_t) body = nullptr;
    check(add_while_node(&added, level.graph, after(level), count(level), condition, &body),
          "adding a WHILE node to a graph");
    level.last = added;
    ++nodes_;
    levels_.push_back({body, nullptr});
  }
  void leave() { levels_.pop_back(); }

  /// Ends the recording. Costs about a millisecond; launches afterwards do not.
  void instantiate(Stream const& stream) {
    check(HOSTLESS_GPU(GraphInstantiateWithFlags)(&ready_, levels_.front().graph, 0),
          "instantiating a graph");
    check(upload_graph(ready_, stream.get()), "bringing a graph to the GPU");
    stream.wait();
  }
  void launch(Stream const& stream) const {
    check(HOSTLESS_GPU(GraphLaunch)(ready_, stream.get()), "launching a graph");
  }
  int nodes() const { return nodes_; }

 private:
  struct Level {
    HOSTLESS_GPU(Graph_t) graph;
    HOSTLESS_GPU(GraphNode_t) last;
  };
  static HOSTLESS_GPU(GraphNode_t) const* after(Level const& level) {
    return level.last == nullptr ? nullptr : &level.last;
  }
  static std::size_t count(Level const& level) { return level.last == nullptr ? 0 : 1; }

  template <class Use>
  static HOSTLESS_GPU(Graph_t) record(Stream const& stream, Use const& use) {
    HOSTLESS_GPU(Graph_t) recorded = nullptr;
    check(HOSTLESS_GPU(StreamBeginCapture)(stream.get(), HOSTLESS_GPU(StreamCaptureModeRelaxed)),
          "recording a stream");
    try {
      use(stream.get());
    } catch (...) {
      (void)HOSTLESS_GPU(StreamEndCapture)(stream.get(), &recorded);
      (void)HOSTLESS_GPU(GetLastError)();
      if (recorded != nullptr) (void)HOSTLESS_GPU(GraphDestroy)(recorded);
      throw;
    }
    check(HOSTLESS_GPU(StreamEndCapture)(stream.get(), &recorded), "recording a stream");
    return recorded;
  }

  std::vector<Level> levels_;  // the whole, then bodies of the loops that are being recorded
  HOSTLESS_GPU(GraphExec_t) ready_ = nullptr;
  int nodes_ = 0;
};

}  // namespace hostless::gpu
