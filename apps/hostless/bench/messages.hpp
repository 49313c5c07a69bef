#pragma once
// What `hostless bench pingpong`, `halo` and `allreduce` share, of ranks of the processor and of GPUs.

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench.hpp"
#include "bench/halo.hpp"
#include "input.hpp"
#include "lines.hpp"
#include "ranks.hpp"

namespace hostless {

struct MessageOptions {
  InputOptions input;
  LayoutOptions layout;
  RankOptions ranks;
  MeasureOptions measure;
  std::vector<std::size_t> sizes;
  std::vector<int> pair, values = {1, 2, 3, 4};
  int gpus = 0, sums = 0;  ///< sums 0: not given
  std::string load;        ///< of `halo`: a file of plans instead of a matrix
  int fields = 1;
  std::size_t item_bytes = sizeof(double);
  std::string transports;  ///< empty: one, as `ranks` says
  double row_limit_s = 600;
  bool oversubscribe = false;
  std::string memory = "host";  ///< of `pingpong`: where messages of the host's transports lie
  std::string gpu_transport;    ///< empty: GPUs by persistent kernels
  std::string queue;            ///< empty: none; the type of the queue that starts and waits
  bool processor_time = false;  ///< of `pingpong` by a queue of streams
  std::string queue_run;        ///< of a queue of streams: empty: both; stream, graph
  Provenance provenance;

  std::vector<std::size_t> sizes_or_default() const;
  /// Errors  usage  fewer than two ranks; a pair that is none, or not of these ranks
  std::vector<std::pair<int, int>> pairs_of(int ranks_) const;
};

using Json = nlohmann::ordered_json;

constexpr double us = 1e6;  ///< microseconds of a second

/// Best, median and worst, as members of `row` and as columns.
void add_times(Json& row, bench::Timing const& timing);
std::string times_of(bench::Timing const& timing);

/// Lines of a table, from rank 0 alone, as soon as they are known.
class Table {
 public:
  Table(MessageOptions const& o, Transport& transport)
      : shown_(o.measure.prints_table() && transport.group().rank() == 0) {}
  void line(std::string const& text) const {
    if (!shown_) return;
    std::puts(text.c_str());
    std::fflush(stdout);
  }

 private:
  bool shown_;
};

void write_report(MessageOptions const& o, Transport& transport, Json const& report);

/// The options of `halo` that say what is exchanged.
void add_halo_options(CLI::App& command, MessageOptions& o);
/// As many ranks as there are plans in the file, where nobody has said how many. Errors: those of load_plans
void take_ranks_of_plans(MessageOptions& o);
int time_halo(MessageOptions const& o, Transport& transport);
/// What is exchanged: of a matrix, or saved. Collective; the plans of all ranks are returned on rank 0.
std::vector<ExchangePlan> halo_plans(MessageOptions const& o, Group& group, bench::Halo& what);
/// Adds what is exchanged to the report, and says it in a line. Collective.
std::string describe_halo(MessageOptions const& o, Group& group, bench::Halo const& what,
                          std::vector<ExchangePlan> const& plans, Json& report);

/// Those of --gpu-transport and --memory gpu, before ranks are started: as many ranks as GPUs where nobody
/// has said how many. Errors  usage  an unknown one; options of persistent kernels
void check_stream_options(MessageOptions& o);
/// Under mpirun, where nobody has said how many GPUs: one for each rank of a machine. Collective.
void take_gpus_of_ranks(MessageOptions& o, Group& group);
int time_stream_ping_pong(MessageOptions const& o, Transport& transport);
int time_stream_halo(MessageOptions const& o, Transport& transport);
int time_stream_sums(MessageOptions const& o, Transport& transport);

/// Those of --queue: the same by a queue's work, beside the host.
int time_queue_ping_pong(MessageOptions const& o, Transport& transport);
int time_queue_halo(MessageOptions const& o, Transport& transport);
/// --queue, which takes nothing of GPUs beside it but for the types peer and nccl.
void add_queue(CLI::App& command, std::string& queue);
/// Before ranks are started; makes as many ranks as GPUs, at least two, where nobody has said how many.
/// bench: pingpong, halo, life.
/// Errors  usage  GPU options that a queue of this type or this command would ignore, or too few GPUs
void check_queue_options(MessageOptions& o, std::string_view bench);

/// Before ranks are started; makes as many ranks as GPUs where nobody has said how many.
/// Errors  usage  GPU options that contradict each other or that would be ignored
void check_device_options(MessageOptions& o, bool is_ping_pong);
int time_device_ping_pong(MessageOptions const& o, Transport& transport);
int time_device_halo(MessageOptions const& o, Transport& transport);
int time_device_sums(MessageOptions const& o, Transport& transport);

}  // namespace hostless
