#include "hostless/solve/matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/counted.hpp"
#include "base/processors.hpp"
#include "base/setup_watch.hpp"
#include "hostless/machine/nodes.hpp"
#include "hostless/operate/pattern_differs.hpp"
#include "hostless/plan/routes.hpp"
#include "operate/device_rows.hpp"
#include "operate/ghost_reads.hpp"
#include "problems/recipe.hpp"
#include "solve/gpu_solver/gpu_loader.hpp"
#include "solve/gpu_solver/gpu_ranks.hpp"
#include "solve/matrix/assembly.hpp"
#include "solve/matrix/caller_rows.hpp"

namespace hostless {
namespace {

// Machines, unless the caller declares nodes; and with several nodes on which GPU of its machine each rank is.
NodeMap nodes_of(NodeMap const& machines, MatrixOptions const& options) {
  NodeMap nodes =
      options.ranks_per_node > 0 ? NodeMap::blocks(machines.ranks(), options.ranks_per_node) : machines;
  if (options.gpus < 1 || nodes.nodes() < 2) return nodes;
  for (int machine = 0; machine < machines.nodes(); ++machine) {
    auto const here = machines.ranks_of(machine);
    for (std::size_t k = 0; k < here.size(); ++k)
      nodes.device[static_cast<std::size_t>(here[k])] =
          gpu_slot(static_cast<int>(k), static_cast<int>(here.size()), options.gpus, true).device;
  }
  return nodes;
}

// Collective, so that no rank waits for one that has been refused.
void check_lengths(Matrix const& matrix, std::size_t mine, std::size_t local) {
  matrix.transport().group().together([&] {
    auto const rows = static_cast<std::size_t>(matrix.last_row() - matrix.first_row());
    auto const owned = static_cast<std::size_t>(matrix.owned());
    if (mine == rows && local == owned) return;
    throw Error(ErrorCode::usage,
                fmt::format("vectors of {} and {} (this rank has {} as the caller counts them and "
                            "works on {}). Pass vectors of these lengths.",
                            mine, counted(local, "entry", "entries"), counted(rows, "row"), owned));
  });
}

Route choose_route(MatrixOptions const& options, NodeMap const& nodes) {
  return options.automatic_route ? automatic_route(nodes) : options.route;
}

// Of this rank, for what it lays out by itself.
int threads_of(MatrixOptions const& options, RowSource const& source, int ranks_here,
               bool ranks_are_threads) {
  if (options.setup_threads < 0)
    throw Error(ErrorCode::usage, fmt::format("{} for the set-up of a matrix (0 chooses). Use 0 or more.",
                                              counted(options.setup_threads, "thread")));
  if (!source.is_concurrent()) return 1;
  if (options.setup_threads > 0) return options.setup_threads;
  constexpr std::int64_t rows_worth_a_thread = 1 << 14;
  auto const worth = (source.last_row() - source.first_row()) / rows_worth_a_thread;
  return static_cast<int>(
      std::clamp<std::int64_t>(worth, 1, processors_of_rank(ranks_here, ranks_are_threads)));
}

void check_pattern(ScannedRows const& scanned, std::uint64_t pattern) {
  if (scanned.pattern == pattern) return;
  throw Error(
      ErrorCode::usage,
      "the new values have another pattern than the matrix (its layout is made for one). Make another "
      "matrix.");
}

DeviceRequest device_request(MatrixOptions const& options) {
  DeviceRequest request;
  request.automatic = options.gpu_format == "auto";
  request.halves = options.gpu_format != "diagonals-full";
  if (request.automatic || !request.halves) return request;
  for (DeviceFormat format : {DeviceFormat::diagonals, DeviceFormat::sell, DeviceFormat::csr,
                              DeviceFormat::merge, DeviceFormat::vendor}) {
    request.format = format;
    if (options.gpu_format == name(format)) return request;
  }
  throw Error(ErrorCode::usage,
              fmt::format("GPU format '{}' (unknown). Use auto, diagonals, diagonals-full, sell, csr, merge "
                          "or vendor.",
                          options.gpu_format));
}

void check_recipe(Group const& group, RowSource const& source, MatrixOptions const& options) {
  auto refuse = [](std::string const& text) { throw Error(ErrorCode::usage, text); };
  if (options.gpus != 1)
    refuse(
        fmt::format("a matrix generated on the GPU, and {} (it stays on the one that solves). Use "
                    "--gpus 1.",
                    counted(options.gpus, "GPU")));
  if (group.size() != 1)
    refuse(fmt::format("a matrix generated on the GPU on {} (one GPU makes all of it). Use one rank.",
                       counted(group.size(), "rank")));
  problems::Recipe const* const recipe = source.recipe();
  if (recipe == nullptr)
    refuse(
        "a matrix generated on the GPU from rows that only the host makes (kernels know poisson1d, "
        "poisson2d, poisson7, poisson27, elasticity-hex8 and elasticity-tet4). Generate on the host.");
  if (options.block != 0 && options.block != recipe->block)
    refuse(
        fmt::format("block size {} of a matrix generated on the GPU (its kernels make blocks of {}). Leave "
                    "it out, or generate on the host.",
                    options.block, recipe->block));
  constexpr std::int64_t most_rows =
      INT32_MAX - 2 * block_rows_past * 6;  // accumulators without a block row count on
  if (source.global_rows() > most_rows)
    refuse(fmt::format("{} generated on the GPU (it counts them by 31 bits). Choose a smaller size.",
                       counted(source.global_rows(), "row")));
}

}  // namespace

struct Matrix::Parts {
  Transport* transport = nullptr;
  std::unique_ptr<Assembly> assembly;  // null for a function, and for rows that a GPU makes
  std::unique_ptr<LocalMatrix> local;
  std::unique_ptr<DeviceRows> device;
  DeviceRequest device_request;
  OperatorFunction function;
  std::int64_t function_first = 0, function_global = 0, generated_entries = 0;  // without an assembly
  ExchangePlan plan;
  SweepPlan sweep;
  std::string why_function = "1: the matrix is a function",
              why_contiguous = "contiguous: as the caller has it";
  int values_version = 0;
  PatternScan const* pattern_scan = nullptr;     // of rows that lie on a GPU
  bool same_bits = false, wants_halves = false;  // of them
  std::uint64_t pattern = 0;                     // theirs
  int rank_here = 0, ranks_here = 1;
  int threads = 1;  // that lay the rows out

  // Collective; remembers who shares this machine.
  NodeMap find_nodes(Group& group, MatrixOptions const& options) {
    NodeMap const machines = find_machines(group);
    auto const here = machines.ranks_of(machines.node[static_cast<std::size_t>(group.rank())]);
    ranks_here = static_cast<int>(here.size());
    rank_here = static_cast<int>(std::find(here.begin(), here.end(), group.rank()) - here.begin());
    return nodes_of(machines, options);
  }
  // At rows that lie on a GPU.
  ScannedRows look(GpuRows const& rows, std::int64_t first, std::int64_t last, bool in_blocks) const {
    RowFault const fault = pattern_scan->find_fault(rows, first, last);
    if (fault.kind != RowFault::Kind::none) throw error_of(fault, rows.rows);
    return pattern_scan->scan(rows, first, last, in_blocks);
  }
  // Collective.
  void choose_threads(MatrixOptions const& options, RowSource const& source) {
    transport->group().together([&] {
      threads = threads_of(options, source, ranks_here, transport->capabilities().threads_as_ranks);
    });
  }
};

Matrix::Matrix(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Matrix::Matrix(Matrix&&) noexcept = default;
Matrix& Matrix::operator=(Matrix&&) noexcept = default;
Matrix::~Matrix() = default;

Matrix Matrix::from_recipe(Transport& transport, RowSource const& source, MatrixOptions const& options) {
  Group& group = transport.group();
  auto parts = std::make_unique<Parts>();
  parts->transport = &transport;
  NodeMap const nodes = parts->find_nodes(group, options);
  group.together([&] {
    check_recipe(group, source, options);
    problems::Recipe const& recipe = *source.recipe();
    Tiling tiling;
    tiling.block = recipe.block;
    tiling.block_rows = recipe.lattice.count();
    tiling.slices = choose_slices(tiling.block_rows, options.slices);
    tiling.threads_per_row = options.threads_per_row;
    parts->function_global = source.global_rows();
    parts->generated_entries = count_entries(recipe);
    parts->why_function = fmt::format("{}: the unknowns of a node of the generator", recipe.block);
    parts->device = std::make_unique<DeviceRows>(make_device_rows(recipe, tiling, device_request(options)));
    Pattern pattern;
    pattern.owned = tiling.rows();
    pattern.first = {0};
    parts->plan = make_plan(choose_route(options, nodes), {pattern}, nodes, 0);
    parts->sweep = make_sweep(parts->plan, tiling);
  });
  return Matrix(std::move(parts));
}

Matrix Matrix::from_source(Transport& transport, RowSource const& source, MatrixOptions const& options) {
  if (options.generate_on_gpu) return from_recipe(transport, source, options);
  Group& group = transport.group();
  auto parts = std::make_unique<Parts>();
  parts->transport = &transport;
  NodeMap const nodes = parts->find_nodes(group, options);
  parts->choose_threads(options, source);
  group.together([&] {
    if (options.gpus < 0)
      throw Error(ErrorCode::usage, fmt::format("{} (no fewer than none). Use 0 for the processor.",
                                                counted(options.gpus, "GPU")));
  });
  bool const with_local = options.gpus == 0 || options.host_layout;
  parts->assembly = std::make_unique<Assembly>(group, source, options, [&] {
    ScannedRows scanned = scan_rows(source, true, parts->threads, !with_local);
    parts->pattern = scanned.pattern;
    return scanned;
  });
  Assembly const& a = *parts->assembly;
  auto const rows = a.rows_of(group, source);
  std::int64_t const passes = (with_local ? 2 : 0) + (options.gpus > 0 ? 2 : 0);
  SetupStage const stage("laying out", passes * a.owned());
  group.together([&] {
    if (with_local) parts->local = std::make_unique<LocalMatrix>(*rows, a.tiling(), options.format);
    if (options.gpus > 0) {
      parts->device_request = device_request(options);
      parts->device = std::make_unique<DeviceRows>(
          make_device_rows(*rows, a.tiling(), parts->device_request, parts->threads));
      parts->device_request.automatic = false;  // new values keep the layout: vectors are padded for it
      parts->device_request.format = parts->device->format;
    }
    parts->plan = make_plan(choose_route(options, nodes), a.patterns(), nodes, group.rank());
    if (group.size() == 1) {
      parts->sweep = make_sweep(parts->plan, a.tiling());
      return;
    }
    GhostReads const reads =
        parts->local ? parts->local->ghost_reads() : ghost_reads(*rows, a.tiling(), parts->threads);
    parts->sweep = make_sweep(parts->plan, a.tiling(), reads.first, reads.ghost);
  });
  return Matrix(std::move(parts));
}

Matrix Matrix::from_gpu_rows(Transport& transport, GpuRows const& rows, bool same_bits,
                             MatrixOptions const& options) {
  PatternScan const* pattern_scan = nullptr;
  transport.group().together([&] { pattern_scan = &gpu::library().pattern_scan(); });
  return from_gpu_rows(transport, rows, same_bits, options, *pattern_scan);
}

Matrix Matrix::from_gpu_rows(Transport& transport, GpuRows const& rows, bool same_bits,
                             MatrixOptions const& options, PatternScan const& pattern_scan) {
  Group& group = transport.group();
  auto parts = std::make_unique<Parts>();
  parts->transport = &transport;
  group.together([&] {
    if (options.gpus < 1)
      throw Error(ErrorCode::usage, "rows in the memory of a GPU, and a matrix for the processor. Use gpus.");
    if (options.generate_on_gpu)
      throw Error(ErrorCode::usage,
                  "rows in the memory of a GPU, and a matrix that is generated there. Choose one.");
    check_gpu_rows(rows);
    parts->device_request = device_request(options);
  });
  parts->pattern_scan = &pattern_scan;
  NodeMap const nodes = parts->find_nodes(group, options);
  CallerRows const source(rows, pattern_scan, group.size(), group.rank());
  parts->choose_threads(options, source);
  parts->assembly = std::make_unique<Assembly>(group, source, options, [&] {
    ScannedRows scanned = parts->look(rows, source.first_row(), source.last_row(), true);
    parts->pattern = scanned.pattern;
    return scanned;
  });
  Assembly const& a = *parts->assembly;
  parts->wants_halves = parts->device_request.halves;
  Matrix matrix(std::move(parts));
  GhostReads const reads = matrix.lay_out_there(source, same_bits);
  group.together([&] {
    Parts& p = *matrix.parts_;
    p.plan = make_plan(choose_route(options, nodes), a.patterns(), nodes, group.rank());
    p.sweep = group.size() > 1 ? make_sweep(p.plan, a.tiling(), reads.first, reads.ghost)
                               : make_sweep(p.plan, a.tiling());
  });
  return matrix;
}

// Collective. Returns which ghosts the slices read.
GhostReads Matrix::lay_out_there(CallerRows const& source, bool same_bits) {
  Parts& p = *parts_;
  Assembly const& a = *p.assembly;
  Group& group = transport().group();
  std::unique_ptr<LocalRows> dealt;  // rows that are not where they were go through the host
  if (!a.is_natural()) dealt = a.rows_of(group, source);
  GhostReads reads;
  DeviceRows made;
  DeviceRequest request = p.device_request;
  request.halves = p.wants_halves && same_bits;
  request.value_indices = dealt != nullptr;
  group.together([&] {
    if (dealt) {
      made = make_device_rows(*dealt, a.tiling(), request, p.threads);
      made.from = source.rows().values;
      reads = ghost_reads(*dealt, a.tiling(), p.threads);
    } else {
      CallerShare share{source.rows(), a.source_first(), a.ghost_block_rows(), a.block_rows_below()};
      ShareCount found = p.pattern_scan->count(share, a.tiling());
      made = make_device_rows(std::move(share), found, a.tiling(), request);
      reads = std::move(found.reads);
    }
  });
  // All ranks have theirs. In place: solvers know where it is.
  if (!p.device) p.device = std::make_unique<DeviceRows>();
  *p.device = std::move(made);
  p.same_bits = same_bits;
  request.automatic = false;  // new values keep the layout: vectors are padded for it
  request.format = p.device->format;
  p.device_request = request;
  return reads;
}

void Matrix::update_gpu_rows(GpuRows const& rows, bool same_bits) {
  Group& group = transport().group();
  Parts& p = *parts_;
  group.together([&] {
    if (p.pattern_scan == nullptr)
      throw Error(ErrorCode::usage,
                  "new values in the memory of a GPU for a matrix whose values came from the host. Make "
                  "another matrix.");
    check_gpu_rows(rows);
    ScannedRows other;  // of a matrix of another size
    if (rows.rows == global_rows()) other = p.look(rows, first_row(), last_row(), false);
    check_pattern(other, p.pattern);
  });
  if (same_bits != p.same_bits) {
    CallerRows const source(rows, *p.pattern_scan, group.size(), group.rank());
    static_cast<void>(lay_out_there(source, same_bits));
  } else if (p.device->share) {
    CallerShare share = *p.device->share;
    share.rows = rows;
    p.device->share = std::make_shared<CallerShare const>(std::move(share));
  } else {
    p.device->from = rows.values;
  }
  ++p.values_version;
}

Matrix Matrix::from_rows(Transport& transport, std::int64_t first_row, std::span<std::int64_t const> offsets,
                         std::span<std::int64_t const> columns, std::span<double const> values,
                         MatrixOptions const& options) {
  Group& group = transport.group();
  group.together([&] {
    constexpr std::int64_t most = std::int64_t{1} << 53;
    if (first_row < 0 || first_row > most)
      throw Error(ErrorCode::usage, fmt::format("first_row: {} (rows are counted from 0 to 2^53). Give the "
                                                "rows of all ranks below this one.",
                                                first_row));
  });
  std::int64_t const global = group.sum(static_cast<std::int64_t>(offsets.size()) - 1);
  group.together([&] { check_arrays(offsets, columns, values, global); });
  return from_source(transport, MemoryRows(global, first_row, offsets, columns, values), options);
}

Matrix Matrix::from_function(Transport& transport, std::int64_t first_row, std::int64_t rows,
                             OperatorFunction function) {
  Group& group = transport.group();
  group.together([&] {
    if (transport.capabilities().host_callback == Support::absent) {
      throw Error(ErrorCode::usage, fmt::format("the {} transport runs no host functions.",
                                                transport.capabilities().transport));
    }
    if (!function || rows < 0)
      throw Error(ErrorCode::usage, "a matrix needs a function and a number of rows >= 0.");
  });
  auto const every = group.all_gather(rows);
  group.together([&] {
    std::int64_t const below = std::accumulate(every.begin(), every.begin() + group.rank(), std::int64_t{0});
    if (first_row == below) return;
    throw Error(ErrorCode::usage,
                fmt::format("rank {} has rows from {} on but the ranks below have {} (the ranks' rows must "
                            "follow each other). Give rank r the rows after those of rank r - 1.",
                            group.rank(), first_row, below));
  });
  auto parts = std::make_unique<Parts>();
  parts->transport = &transport;
  parts->function = std::move(function);
  parts->function_first = first_row;
  parts->function_global = group.sum(rows);
  std::vector<Pattern> patterns;
  for (std::int64_t owned : every) {
    patterns.push_back({});
    patterns.back().owned = owned;
    patterns.back().first = {0};
  }
  Tiling tiling;
  tiling.block_rows = rows;
  tiling.slices = static_cast<int>(std::clamp<std::int64_t>(group.max(rows) / 64, 1, 264));
  parts->plan = make_plan(Route::direct, patterns, parts->find_nodes(group, {}), group.rank());
  parts->sweep = make_sweep(parts->plan, tiling);
  return Matrix(std::move(parts));
}

void Matrix::update_values(RowSource const& source) {
  Group& group = transport().group();
  if (parts_->assembly == nullptr) {
    throw Error(ErrorCode::usage,
                parts_->device
                    ? "a matrix generated on the GPU has no values to update (its generator makes them). "
                      "Make another matrix."
                    : "a matrix made from a function has no values to update (change the function).");
  }
  if (parts_->pattern_scan != nullptr)
    throw Error(ErrorCode::usage,
                "new values of the host for a matrix whose values lie on a GPU. Pass them there, or make "
                "another matrix.");
  auto const rows = parts_->assembly->rows_of(group, source);
  group.together([&] {
    if (parts_->local) {
      try {
        parts_->local->update_values(*rows);
      } catch (PatternDiffers const& e) {
        throw PatternDiffers(e.local_row(), global_row(e.local_row()));
      }
    } else {
      check_pattern(scan_rows(source, false, parts_->threads, true), parts_->pattern);
    }
    if (parts_->device)
      *parts_->device =
          make_device_rows(*rows, parts_->device->tiling, parts_->device_request, parts_->threads);
  });
  ++parts_->values_version;
}

void Matrix::update_values(std::span<std::int64_t const> offsets, std::span<std::int64_t const> columns,
                           std::span<double const> values) {
  transport().group().together([&] { check_arrays(offsets, columns, values, global_rows()); });
  update_values(MemoryRows(global_rows(), first_row(), offsets, columns, values));
}

std::int64_t Matrix::global_rows() const {
  return parts_->assembly ? parts_->assembly->global_rows() : parts_->function_global;
}
std::int64_t Matrix::global_entries() const {
  return parts_->assembly ? parts_->assembly->global_entries() : parts_->generated_entries;
}
std::int64_t Matrix::first_row() const {
  return parts_->assembly ? parts_->assembly->source_first() : parts_->function_first;
}
std::int64_t Matrix::last_row() const {
  return parts_->assembly ? parts_->assembly->source_last() : parts_->function_first + parts_->plan.owned;
}
std::int64_t Matrix::owned() const { return parts_->plan.owned; }
std::int64_t Matrix::global_row(std::int64_t local) const {
  return parts_->assembly ? parts_->assembly->global_row(local) : parts_->function_first + local;
}
Transport& Matrix::transport() const { return *parts_->transport; }
ExchangePlan const& Matrix::plan() const { return parts_->plan; }
SweepPlan const& Matrix::sweep() const { return parts_->sweep; }
LocalMatrix const* Matrix::local() const { return parts_->local.get(); }
OperatorFunction const& Matrix::function() const { return parts_->function; }
DeviceRows const* Matrix::device_rows() const { return parts_->device.get(); }
std::string const& Matrix::why_block() const {
  return parts_->assembly ? parts_->assembly->why_block() : parts_->why_function;
}
std::string Matrix::lost_blocks() const {
  return parts_->assembly ? parts_->assembly->lost_blocks() : std::string();
}
std::string const& Matrix::why_partition() const {
  return parts_->assembly ? parts_->assembly->why_partition() : parts_->why_contiguous;
}
int Matrix::values_version() const { return parts_->values_version; }
int Matrix::rank_here() const { return parts_->rank_here; }
int Matrix::ranks_here() const { return parts_->ranks_here; }

void Matrix::to_local(std::span<double const> mine, std::span<double> local) const {
  check_lengths(*this, mine.size(), local.size());
  if (parts_->assembly) return parts_->assembly->to_local(transport().group(), mine, local);
  std::copy(mine.begin(), mine.end(), local.begin());
}
void Matrix::from_local(std::span<double const> local, std::span<double> mine) const {
  check_lengths(*this, mine.size(), local.size());
  if (parts_->assembly) return parts_->assembly->from_local(transport().group(), local, mine);
  std::copy(local.begin(), local.end(), mine.begin());
}

PlannedMatrix plan_matrix(Group& group, RowSource const& source, MatrixOptions const& options,
                          bool to_each_its_own) {
  Assembly const assembly(group, source, options, [&] { return scan_rows(source, true, 1, false); });
  NodeMap const nodes = nodes_of(find_machines(group), options);
  PlannedMatrix planned;
  planned.tiling = assembly.tiling();
  planned.why_block = assembly.why_block();
  planned.why_partition = assembly.why_partition();
  SetupStage const stage("planning", group.size());
  group.together([&] {
    Route const route = choose_route(options, nodes);
    if (group.rank() == 0) {
      planned.plans = make_plans(route, assembly.patterns(), nodes);
      planned.patterns = assembly.patterns();
    }
    if (to_each_its_own) planned.mine = make_plan(route, assembly.patterns(), nodes, group.rank());
  });
  return planned;
}

}  // namespace hostless
