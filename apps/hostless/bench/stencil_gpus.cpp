#include "stencil_gpus.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "hostless/base/error.hpp"
#include "messages.hpp"
#include "standard_output.hpp"
#include "stencil/array_axes.hpp"
#include "stencil/initial_fields.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

struct GpuVariant {
  char const* name;
  char const* obstacle;  ///< why there is none; empty: there is
  RunKind run = RunKind::automatic;
  GpuHalos halos = GpuHalos::kernel;
  GpuCells cells = GpuCells::plain;
};
/// A step, an exchange, a step: depth 1. Ours is as the command says, or chosen.
constexpr GpuVariant gpu_variants[]{
    {"copy", "", RunKind::stream, GpuHalos::copies},
    {"overlap", "", RunKind::stream, GpuHalos::overlap},
    {"p2p", "", RunKind::stream, GpuHalos::kernel},
    {"nvshmem", "its kernels put by NVSHMEM; those of the library load and store"},
    {"cpu-free", "", RunKind::persistent, GpuHalos::kernel},
    {"cpu-free-two-kernels", "", RunKind::persistent, GpuHalos::overlap},
    {"cpu-free-perks", "", RunKind::persistent, GpuHalos::overlap, GpuCells::cached},
    {"blocked", ""},
    {"blocked-overlap", "on GPUs ours has one form: blocked"}};

GpuVariant const& gpu_variant(char const* name) {
  return *std::find_if(std::begin(gpu_variants), std::end(gpu_variants),
                       [&](GpuVariant const& one) { return std::strcmp(one.name, name) == 0; });
}

struct TimedOnGpus {
  StencilVariant variant;
  std::string problem;  ///< why it is not timed; empty: it is
  std::unique_ptr<GpuStencilRun> run;
  bench::Timing timing;
};

class GpuBench {
 public:
  GpuBench(VariantsWish const& o, GpuWords const& gpus)
      : o_(o), kernel_(o.grid->kernel(o.axes(), o.value_bytes())), grid_(o.grid->grid(o.grid->size)) {
    Box const all{{0, 0, 0}, grid_.extent};
    ArrayPart const part = array_part_of(all, o.axes());
    cells_.resize(static_cast<std::size_t>(all.cells()) * o.value_bytes());
    for (StencilVariant const& variant : o.variants) {
      TimedOnGpus one;
      one.variant = variant;
      make(one, gpus);
      timed_.push_back(std::move(one));
    }
    for (int f = 0; f < kernel_.fields; ++f) {
      fill_initial(o.grid->problem, f, o.grid->size, part.low, part.high, cells_, o.value_bytes());
      for (TimedOnGpus& one : timed_)
        if (one.run) one.run->give(f, seen(cells_));
    }
  }

  void time() {
    bench::Protocol const& protocol = o_.measure->protocol;
    for (int k = -1; k < protocol.repeat; ++k) {  // first what is not timed
      std::int64_t const steps = k < 0 ? protocol.warm_up : protocol.steps;
      auto const once = [&](TimedOnGpus& one) {
        if (!one.run || steps == 0) return;
        StencilResult const result = one.run->run(steps);
        if (result.status != StencilStatus::steps_done)
          throw Error(
              result.status == StencilStatus::peer_lost ? ErrorCode::peer_lost : ErrorCode::environment,
              fmt::format("{}: {}: {} (nothing can be timed). Use other parameters.", one.variant.name,
                          name(result.status), result.message));
        if (k >= 0) one.timing.step_s.push_back(result.run_s / static_cast<double>(steps));
      };
      // by turns, so that what else happens on the machine meets all of them
      if (k % 2 == 0) std::for_each(timed_.begin(), timed_.end(), once);
      if (k % 2 != 0) std::for_each(timed_.rbegin(), timed_.rend(), once);
      if (k >= 0) o_.rivals->run();
    }
    for (TimedOnGpus& one : timed_) std::sort(one.timing.step_s.begin(), one.timing.step_s.end());
  }

  bool are_equal() {
    std::vector<std::byte> first, mine(cells_.size());
    bool equal = true;
    for (int f = 0; f < kernel_.fields; ++f) {
      first.clear();
      for (TimedOnGpus const& one : timed_) {
        if (!one.run) continue;
        one.run->take(f, seen(mine));
        if (first.empty()) first = mine;
        equal = equal && mine == first;
      }
    }
    return equal;
  }

  Json rows() const {
    Json all = Json::array();
    for (TimedOnGpus const& one : timed_) {
      Json row = {{"name", one.variant.name}, {"label", one.variant.label}};
      if (!one.run) {
        row["problem"] = one.problem;
      } else {
        row["depth"] = one.run->depth();
        row["block_steps"] = one.run->block_steps();
        row["how"] = one.run->describe();
        add_times(row, one.timing);
        row["all_us"] = Json::array();
        for (double const s : one.timing.step_s) row["all_us"].push_back(us * s);
      }
      all.push_back(row);
    }
    return all;
  }
  /// Of the first that is timed; empty: none is.
  std::string gpu() const {
    for (TimedOnGpus const& one : timed_)
      if (one.run) return one.run->device_name();
    return {};
  }

 private:
  void make(TimedOnGpus& one, GpuWords const& gpus) {
    GpuVariant const& found = gpu_variant(one.variant.name);
    bool const is_ours = found.obstacle[0] == '\0' && std::strcmp(found.name, "blocked") == 0;
    one.problem = found.obstacle;
    if (is_ours && o_.no_compute) one.problem = "steps between its exchanges cannot be left out";
    if (!one.problem.empty()) return;
    GpuStencilOptions options = gpus.options(*o_.dealt);
    options.limits = o_.measure->protocol.limits;
    if (!is_ours) {
      options.run = found.run;
      options.cells = found.cells;
      options.depth = 1;
      options.block_steps = 1;
      options.halos = found.halos;
      options.computes = !o_.no_compute;
    }
    try {
      one.run = std::make_unique<GpuStencilRun>(grid_, kernel_, options);
    } catch (Error const& e) {
      if (e.code() != ErrorCode::usage || is_ours) throw;
      one.problem = e.what();
    }
  }
  CellArray seen(std::vector<std::byte>& cells) const {
    return cells_of_box(cells.data(), {{0, 0, 0}, grid_.extent}, o_.value_bytes());
  }

  VariantsWish const& o_;
  StencilKernel kernel_;
  Grid grid_;
  std::vector<std::byte> cells_;
  std::vector<TimedOnGpus> timed_;
};

void tell_of_gpus(VariantsWish const& o, Json const& report) {
  hostless::print("{}, {} cells, {}: {}, parts on GPUs {}{}\n", o.grid->problem, shape_text(o.grid->size),
                  report["type"].get<std::string>(), report["gpu"].get<std::string>(),
                  fmt::join(report["gpu_of_part"].get<std::vector<int>>(), ","),
                  o.no_compute ? ", nothing computed" : "");
  hostless::print("{:21} {:>10} {:>10} {:>10} {:>6}  {}\n", "", "best us", "median us", "worst us", "depth",
                  "how");
  for (Json const& row : report["variants"]) {
    std::string const name = row["name"];
    if (row.contains("problem")) {
      hostless::print("{:21} not run: {}\n", name, row["problem"].get<std::string>());
      continue;
    }
    auto const number = [&](char const* key) { return row[key].get<double>(); };
    hostless::print("{:21} {:10.3f} {:10.3f} {:10.3f} {:>6}  {}\n", name, number("best_us"),
                    number("median_us"), number("worst_us"),
                    row.contains("depth") ? fmt::format("{}", row["depth"].get<int>()) : "",
                    row.contains("how") ? row["how"].get<std::string>() : row["label"].get<std::string>());
  }
  if (report.contains("bits")) hostless::print("bits {}\n", report["bits"].get<std::string>());
  std::fflush(stdout);
}

}  // namespace

int time_stencil_on_gpus(VariantsWish const& o, GpuWords const& gpus) {
  GpuBench bench(o, gpus);
  bench.time();
  bool const equal = o.no_compute || bench.are_equal();
  Json report = bench_head("stencil", o.provenance);
  report["problem"] = o.grid->problem;
  report["size"] = o.grid->size;
  report["type"] = o.value_bytes() == 4 ? "fp32" : "fp64";
  report["boundary"] = "dirichlet";
  report["gpu_of_part"] = gpus.devices();
  report["gpu"] = bench.gpu();
  report["steps"] = o.measure->protocol.steps;
  report["computes"] = !o.no_compute;
  report["variants"] = bench.rows();
  if (!o.no_compute) report["bits"] = equal ? "equal" : "different";
  double const ours_s = blocked_s(report["variants"]);
  for (Json const& row : o.rivals->rows(ours_s)) report["variants"].push_back(row);
  if (o.measure->prints_table()) tell_of_gpus(o, report);
  if (!o.measure->json.empty()) write_text(o.measure->json, json_text(report));
  return equal ? 0 : 1;
}

}  // namespace hostless
