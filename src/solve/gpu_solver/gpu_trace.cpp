#include "solve/gpu_solver/gpu_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/whole_file.hpp"
#include "solve/clock_trace.hpp"

namespace hostless::gpu {
namespace {

void add_event(std::string& text, std::string const& name, int rank, int thread, Span span,
               std::int64_t iteration) {
  text += fmt::format(
      "{}{{\"name\":\"{}\",\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"args\":{{"
      "\"iteration\":{}}}}}",
      text.empty() ? "" : ",\n", name, rank, thread, 1e6 * span.begin, 1e6 * (span.end - span.begin),
      iteration);
}

/// Of a run phase by phase: thread 0 is what computes, thread 1 what travels.
std::string events_of_stamps(Trace const& trace, int rank) {
  std::string text;
  Stamp const* began[2] = {};
  std::uint64_t first = 0;
  if (!trace.stamps.empty()) first = trace.stamps.front().time_ns;
  auto const seconds = [&](std::uint64_t time) {
    return 1e-9 * static_cast<double>(static_cast<std::int64_t>(time - first));
  };
  for (Stamp const& stamp : trace.stamps) {
    int const thread = stamp.mark == Mark::computes || stamp.mark == Mark::computed ? 0 : 1;
    if (stamp.mark == Mark::computes || stamp.mark == Mark::departs) {
      began[thread] = &stamp;
      continue;
    }
    if (Stamp const* const begin = std::exchange(began[thread], nullptr);
        begin != nullptr && (thread == 1 || begin->open != 0))
      add_event(text, thread == 0 ? "computing" : "communication", rank, thread,
                {seconds(begin->time_ns), seconds(stamp.time_ns)}, begin->iteration);
  }
  return text;
}

/// The events of one rank, each on a line of its own; a process of the trace is a rank, a thread a block.
std::string events_of(Trace const& trace, int rank) {
  if (trace.blocks == 0) return events_of_stamps(trace, rank);
  std::string text;
  char const* const names[] = {"publish", "begin", "sweep", "rows"};
  auto const barriers = trace.entries.size() / static_cast<std::size_t>(trace.blocks);
  constexpr int shown_blocks = 16;
  for (int k = 0; k < std::min(shown_blocks, trace.blocks); ++k) {
    int const block = static_cast<int>(std::int64_t{trace.blocks} * k / std::min(shown_blocks, trace.blocks));
    TraceEntry const* const entry = trace.entries.data() + static_cast<std::size_t>(block) * barriers;
    for (std::size_t m = 0; m < barriers && entry[m].end != 0; ++m) {
      auto const event = [&](std::string const& name, std::uint64_t begin, std::uint64_t end) {
        auto const seconds = [&](std::uint64_t time) {
          return static_cast<double>(time - entry[0].begin) / trace.hertz;
        };
        add_event(text, name, rank, block, {seconds(begin), seconds(end)}, entry[m].iteration);
      };
      event(names[static_cast<int>(entry[m].phase)], entry[m].begin, entry[m].arrived);
      event("together", entry[m].arrived, entry[m].together);
      event("words", entry[m].together, entry[m].met);
      event("decision", entry[m].met, entry[m].end);
    }
  }
  return text;
}

// What every rank has to say, beside each other. Collective.
std::string gathered(Group& group, std::string const& mine) {
  auto const* const bytes = reinterpret_cast<std::byte const*>(mine.data());
  std::string all;
  for (Bytes const& text : group.all_gather_bytes(Bytes(bytes, bytes + mine.size()))) {
    if (!all.empty() && !text.empty()) all += ",\n";
    all.append(reinterpret_cast<char const*>(text.data()), text.size());
  }
  return all;
}

}  // namespace

void write_trace(Group& group, std::string const& path, Trace const& trace, bool together) {
  std::string const mine = events_of(trace, group.rank());
  std::string const all = together ? gathered(group, mine) : mine;
  auto const write = [&] {
    if (group.rank() != 0) return;
    write_whole_file(path, "{\"traceEvents\":[\n" + all + "\n]}\n");
  };
  if (!together) return write();
  group.together(write);
}

}  // namespace hostless::gpu
