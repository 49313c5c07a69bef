#include "solve/gpu_solver/gpu_trace.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/whole_file.hpp"

namespace hostless::gpu {
namespace {

/// The events of one rank, each on a line of its own; a process of the trace is a rank, a thread a block.
std::string events_of(Trace const& trace, int rank) {
  std::string text;
  char const* const names[] = {"publish", "begin", "sweep", "rows"};
  auto const barriers = trace.blocks == 0 ? 0 : trace.entries.size() / static_cast<std::size_t>(trace.blocks);
  constexpr int shown_blocks = 16;
  for (int k = 0; k < std::min(shown_blocks, trace.blocks); ++k) {
    int const block = static_cast<int>(std::int64_t{trace.blocks} * k / std::min(shown_blocks, trace.blocks));
    TraceEntry const* const entry = trace.entries.data() + static_cast<std::size_t>(block) * barriers;
    for (std::size_t m = 0; m < barriers && entry[m].end != 0; ++m) {
      auto const event = [&](std::string const& name, std::uint64_t begin, std::uint64_t end) {
        double const us = 1e6 / trace.hertz;
        text += fmt::format(
            "{}{{\"name\":\"{}\",\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"args\":{{"
            "\"iteration\":{}}}}}",
            text.empty() ? "" : ",\n", name, rank, block, us * static_cast<double>(begin - entry[0].begin),
            us * static_cast<double>(end - begin), entry[m].iteration);
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
