#pragma once
// Hands a text to the run that was asked for.

#include "run/graph_run.impl.hpp"
#include "run/on_threads.impl.hpp"

namespace hostless {

/// Run: host::ThreadRun, or host::ContextRun where the text has a context.
template <class Run = host::ThreadRun, class Text>
void run_text(host::Engine& engine, RunKind kind, Text const& text) {
  if (kind == RunKind::graph) {
    host::on_threads<Run>(engine, 1, [&](auto& thread) {
      host::GraphRun graph(thread);
      text(graph);
      graph.launch();
    });
    return;
  }
  host::on_threads<Run>(engine, kind == RunKind::persistent ? engine.options.threads : 1, text);
}

}  // namespace hostless
