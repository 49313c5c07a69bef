#include "hostless/machine/report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/counted.hpp"
#include "hostless/base/isa.hpp"
#include "hostless/machine/bandwidth.hpp"

namespace hostless {

MachineReport report_machine(double seconds) {
  MachineReport report;
  report.topology = find_topology();
  report.instruction_set = name(active_isa());
  report.bandwidth_threads = report.topology.usable_threads;
  report.read_bandwidth = measure_read_bandwidth(report.bandwidth_threads, seconds);
  report.triad_bandwidth = measure_triad_bandwidth(report.bandwidth_threads, seconds);
  return report;
}

std::string to_json(MachineReport const& report) {
  Topology const& t = report.topology;
  auto caches = nlohmann::ordered_json::array();
  for (CacheLevel const& cache : t.caches) {
    caches.push_back({{"level", cache.level}, {"bytes", cache.bytes}, {"count", cache.count}});
  }
  nlohmann::ordered_json const out = {{"version", MachineReport::current_version},
                                      {"host", t.host},
                                      {"processor", t.processor},
                                      {"sockets", t.sockets},
                                      {"numa_nodes", t.numa_nodes},
                                      {"cores", t.cores},
                                      {"hardware_threads", t.hardware_threads},
                                      {"usable_threads", t.usable_threads},
                                      {"memory_bytes", t.memory_bytes},
                                      {"caches", std::move(caches)},
                                      {"instruction_set", report.instruction_set},
                                      {"bandwidth_threads", report.bandwidth_threads},
                                      {"read_bandwidth_bytes_per_s", report.read_bandwidth},
                                      {"triad_bandwidth_bytes_per_s", report.triad_bandwidth}};
  return out.dump(2, ' ', false, decltype(out)::error_handler_t::replace);
}

std::string to_text(MachineReport const& report) {
  Topology const& t = report.topology;
  std::string text = fmt::format("host        {}\nprocessor   {}\n", t.host,
                                 t.processor.empty() ? "unknown" : t.processor.c_str());
  text += fmt::format("cores       {} ({}, {} usable; {}, {})\n", t.cores,
                      counted(t.hardware_threads, "hardware thread"), t.usable_threads,
                      counted(t.sockets, "socket"), counted(t.numa_nodes, "NUMA node"));
  text += fmt::format("memory      {:.1f} GiB\n", static_cast<double>(t.memory_bytes) / (1 << 30));
  for (CacheLevel const& cache : t.caches) {
    text += fmt::format("cache L{}    {} x {} KiB\n", cache.level, cache.count, cache.bytes >> 10);
  }
  text += fmt::format("kernels     {}\n", report.instruction_set);
  text += fmt::format("bandwidth   read {:.1f} GB/s, triad {:.1f} GB/s, {}\n", report.read_bandwidth * 1e-9,
                      report.triad_bandwidth * 1e-9, counted(report.bandwidth_threads, "thread"));
  return text;
}

}  // namespace hostless
