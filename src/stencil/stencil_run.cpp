#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/counted.hpp"
#include "hostless/base/error.hpp"
#include "hostless/stencil/stencil.hpp"
#include "plan/index.hpp"
#include "stencil/agreement.hpp"
#include "stencil/cache_room.hpp"
#include "stencil/change.hpp"
#include "stencil/costs.hpp"
#include "stencil/endings.hpp"
#include "stencil/halo_exchange.hpp"
#include "stencil/pass.hpp"
#include "stencil/plan_steps.hpp"
#include "stencil/shared_cells.hpp"

namespace hostless {

namespace {

/// Calls copy(cell of ours, cell of the caller's, bytes) for every row of a box, or every cell where the
/// caller's lie apart.
template <class Copy>
void each_piece(GridArray const& array, Box const& box, CellArray const& cells, Copy&& copy) {
  std::int64_t const bytes = array.value_bytes();
  auto* const data = static_cast<std::byte*>(cells.data);
  each_row(array, box, [&](std::byte* row, std::int64_t a, std::int64_t b) {
    std::byte* const theirs = data + a * cells.stride[0] + b * cells.stride[1] + box.low[2] * cells.stride[2];
    if (cells.stride[2] == bytes) {
      copy(row, theirs, box.extent(2) * bytes);
    } else {
      for (std::int64_t c = 0; c < box.extent(2); ++c)
        copy(row + c * bytes, theirs + c * cells.stride[2], bytes);
    }
  });
}

}  // namespace

struct StencilRun::Parts {
  Transport& transport;
  Grid grid;
  StencilKernel kernel;
  BoxPartition partition;
  Box box;
  StepsChosen chosen;
  std::array<bool, 3> wraps;  ///< axes whose far end this rank copies beyond this one itself
  Pass pass;
  std::array<std::int64_t, 3> halo{};
  bool exchanges = false;               ///< a neighbour has cells that this rank reads, which may be itself
  std::shared_ptr<SharedCells> shared;  ///< whose arrays these are, of StepsChosen::shares
  std::vector<GridArray> now, next, coefficients;
  /// What a step reads and writes, before and after now and next have changed places an odd number of times.
  std::array<StepArrays, 2> arrays_of;
  std::size_t turn = 0;
  std::unique_ptr<HaloExchange> exchange, coefficient_exchange;
  std::vector<char> given;
  bool ready = false;  ///< coefficients have halos, both arrays what stays as given; ranks agree on it
  std::int64_t steps = 0;
  std::int64_t to_come = 0;  ///< steps of this run that are not taken yet
  std::int64_t lasting = 0;  ///< steps that halos are still good for
  bool overlap = false;      ///< StencilOptions::overlap
  bool is_idle = false;      ///< all cells of a rank without neighbours stay as given

  Parts(Transport& carrying, BoxPartition const& boxes, StencilKernel const& of_kernel,
        StepsChosen const& how)
      : transport(carrying),
        grid(boxes.grid),
        kernel(of_kernel),
        partition(boxes),
        box(partition.box(carrying.group().rank())),
        chosen(how),
        wraps(wrapped_axes(partition, kernel, chosen)),
        pass(grid, kernel, wraps, cache_room().of_core) {
    for (std::size_t a = 0; a < 3; ++a) {
      // where no other rank is, nothing lies beyond the grid but what Neumann ends mirror
      bool const has_neighbours =
          !chosen.shares &&
          (partition.ranks_along[a] > 1 || (grid.boundary[a] == GridBoundary::periodic && !wraps[a]));
      halo[a] = std::int64_t{has_neighbours ? chosen.depth : pass.mirrors(a) ? 1 : 0} * kernel.radius[a];
      exchanges = exchanges || (has_neighbours && kernel.radius[a] > 0);
    }
    is_idle = !exchanges && !chosen.shares && pass.grown(box, 0).cells() <= 0;
    given.assign(at(kernel.arrays()), 0);
  }

  void share() {
    shared = SharedCells::of_all(transport.group(), grid, kernel, halo);
    now = shared->now(), next = shared->next(), coefficients = shared->coefficients();
    set_arrays();
  }
  void allocate() {
    std::int64_t const before = given_before(grid, kernel, box);
    for (int f = 0; f < kernel.fields; ++f) {
      now.emplace_back(box, halo, kernel.value_bytes, before);
      next.emplace_back(box, halo, kernel.value_bytes, before);
    }
    for (int c = 0; c < kernel.coefficients; ++c)
      coefficients.emplace_back(box, halo, kernel.value_bytes, before);
    set_arrays();
  }
  void set_arrays() {
    arrays_of[0] = {pointers(now), pointers(next)};
    arrays_of[1] = {pointers(next), pointers(now)};
    for (StepArrays& one : arrays_of)
      for (GridArray const& coefficient : coefficients) one.read.push_back(&coefficient);
  }

  void bind(StencilOptions const& options) {
    overlap = options.overlap;
    NodeMap const nodes = nodes_of(options, partition);
    // Halos of several steps need corners whatever the stencil is: a neighbour's cells are stepped here too.
    std::array<std::int64_t, 3> exchanged = halo;
    for (std::size_t a = 0; a < 3; ++a)
      if (wraps[a]) exchanged[a] = 0;
    HaloShape shape{exchanged, kernel.star && chosen.depth == 1, kernel.fields, kernel.value_bytes};
    ExchangeOptions bound;
    bound.limits = options.limits;
    bound.sums = Reduction::ordered;
    bound.sum_width = RankSums::most;
    auto const make = [&](int arrays) {
      shape.arrays = arrays;
      return std::make_unique<HaloExchange>(transport, partition, shape, options.route, nodes, bound);
    };
    exchange = make(kernel.fields);
    if (kernel.coefficients > 0) coefficient_exchange = make(kernel.coefficients);
  }

  double measure_sharing() {
    return hostless::measure_sharing(transport, *shared, box, kernel.radius[0], wraps[0],
                                     exchange->exchange());
  }

  GridArray& array(int which) {
    return which < kernel.fields ? now[at(which)] : coefficients[at(which - kernel.fields)];
  }

  static std::vector<GridArray const*> pointers(std::vector<GridArray> const& arrays) {
    std::vector<GridArray const*> found;
    for (GridArray const& one : arrays) found.push_back(&one);
    return found;
  }

  /// Box and halo, where the grid goes on; of shared cells the box, for those around it are others'.
  Box with_halo() const {
    Box grown = box;
    if (shared) return grown;
    for (std::size_t a = 0; a < 3; ++a) {
      bool const ends = grid.boundary[a] != GridBoundary::periodic;
      grown.low[a] = ends ? std::max(box.low[a] - halo[a], std::int64_t{0}) : box.low[a] - halo[a];
      grown.high[a] = ends ? std::min(box.high[a] + halo[a], grid.extent[a]) : box.high[a] + halo[a];
    }
    return grown;
  }

  /// Shared ones were there, their owners' all, when the ranks agreed to step: an exchange would store what others read.
  bool fill_coefficients() {
    if (coefficient_exchange) {
      if (!shared && !coefficient_exchange->run(pointers(coefficients))) return false;
      for (GridArray const& one : coefficients) pass.mirror(one, with_halo());
    }
    ready = true;
    return true;
  }

  /// What stays as given must be there in both arrays, also where it is a neighbour's.
  void copy_given() {
    Box const known = with_halo(), stepped = pass.grown(known, 0);
    auto const copy = [&](int f, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t cells) {
      std::memcpy(next[at(f)].at(a, b, c), now[at(f)].at(a, b, c),
                  static_cast<std::size_t>(cells) * kernel.value_bytes);
    };
    for (int f = 0; f < kernel.fields; ++f)
      for (std::int64_t a = known.low[0]; a < known.high[0]; ++a)
        for (std::int64_t b = known.low[1]; b < known.high[1]; ++b) {
          bool const steps_here =
              a >= stepped.low[0] && a < stepped.high[0] && b >= stepped.low[1] && b < stepped.high[1];
          std::int64_t const low = steps_here ? stepped.low[2] : known.high[2];
          std::int64_t const high = steps_here ? stepped.high[2] : known.high[2];
          copy(f, a, b, known.low[2], low - known.low[2]);
          copy(f, a, b, high, known.high[2] - high);
        }
  }

  /// As Pass::take.
  void take(int some, Box const& cells, bool mirrored) {
    pass.take({&arrays_of[turn], &arrays_of[1 - turn]}, some, cells, mirrored);
  }
  /// What the first pass, of `some` of the `count` steps that halos are to last for, can step before they have
  /// come.
  Box inner_of(int count, int some) const {
    Box const known = with_halo();
    Box inner = pass.grown(box, count - some);
    for (std::size_t a = 0; a < 3; ++a) {
      if (wraps[a]) continue;
      std::int64_t const reach = std::int64_t{some} * kernel.radius[a];
      if (known.low[a] < box.low[a]) inner.low[a] = box.low[a] + reach;
      if (known.high[a] > box.high[a]) inner.high[a] = box.high[a] - reach;
    }
    for (std::size_t a = 0; a < 3; ++a)
      if (inner.high[a] <= inner.low[a]) return {};
    return inner;
  }
  /// The rest of a box.
  static std::vector<Box> around(Box const& inner, Box const& whole) {
    if (inner.cells() <= 0) return {whole};
    std::vector<Box> pieces;
    Box rest = whole;
    for (std::size_t a = 0; a < 3; ++a) {
      Box below = rest, above = rest;
      below.high[a] = rest.low[a] = inner.low[a];
      above.low[a] = rest.high[a] = inner.high[a];
      for (Box const& piece : {below, above})
        if (piece.cells() > 0) pieces.push_back(piece);
    }
    return pieces;
  }

  // What step_and_look asks for.
  int ranks() const { return partition.ranks(); }
  std::int64_t longest() const { return lasting > 0 ? lasting : exchanges ? chosen.depth : to_come; }
  std::int64_t grain() const { return chosen.depth; }
  std::int64_t least() const { return chosen.block_steps; }
  /// A millisecond at most, by the largest box, and still not long where ranks take turns on one core and a step
  /// takes tens of them; it grows soon.
  std::int64_t first_stretch() const {
    constexpr std::int64_t cells = 200'000, most = 16;
    std::int64_t largest = 1;
    for (std::size_t a = 0; a < 3; ++a) {
      std::int64_t const along = partition.ranks_along[a];
      largest *= (grid.extent[a] + along - 1) / along;
    }
    return std::min(cells / largest, most);
  }
  void wish_to_stop() { exchange->exchange().raise(control::stop); }
  void lost(StencilResult& result) const {
    result.status = StencilStatus::peer_lost;
    result.message = fmt::format("a rank left or stayed silent past the deadline after step {}", steps);
  }
  /// Halos for `lasting` steps, and beside them what the first pass, of `some` steps, can step without: into
  /// `inner`. False: a peer is lost.
  bool fetch_halos(int some, Box& inner) {
    if (overlap && ready) inner = inner_of(static_cast<int>(lasting), some);
    if (exchanges) exchange->start(pointers(now));
    if (inner.cells() > 0) {
      for (GridArray const& one : now) pass.mirror(one, box);
      take(some, inner, lasting > some);
    }
    if (exchanges && !exchange->finish(pointers(now))) return false;
    bool const is_first = !ready;
    if (is_first) copy_given();
    if (is_first && !fill_coefficients()) return false;
    for (GridArray const& one : now) pass.mirror(one, with_halo());
    if (is_first)
      for (GridArray const& one : next) pass.mirror(one, with_halo());  // what stays as given
    if (shared) shared->took(transport.group().rank());
    return true;
  }
  /// Steps, after an exchange where halos are used up: a look, or an ear for others, does not use them up, so
  /// that exchanges are as far apart as they were chosen to be. False: a peer is lost.
  bool advance(std::int64_t count, bool looks, std::int64_t& taken) {
    Box inner;
    int some = next_pass(count, chosen.block_steps, looks);
    if (lasting == 0) {
      lasting = exchanges ? std::min(std::int64_t{chosen.depth}, to_come) : to_come;
      if (overlap) some = 1;  // the cells before it are whole until halos have come, or nobody comes
      if (!fetch_halos(some, inner)) return false;
    }
    if (is_idle) {
      lasting -= count, to_come -= count, steps += count, taken += count;
      return true;
    }
    for (std::int64_t left = count; left > 0; some = next_pass(left, chosen.block_steps, looks)) {
      if (shared && !shared->await_neighbours(transport.group().rank(), wraps[0], exchange->exchange()))
        return false;
      left -= some, lasting -= some, to_come -= some, steps += some, taken += some;
      Box const wanted = exchanges ? pass.grown(box, static_cast<int>(lasting)) : box;
      if (inner.cells() > 0) {
        for (Box const& piece : around(inner, wanted)) take(some, piece, lasting > 0);
        inner = {};
      } else {
        take(some, wanted, lasting > 0);
      }
      if (some % 2 != 0) now.swap(next), turn = 1 - turn;
      if (shared) shared->took(transport.group().rank());
    }
    return true;
  }

  bool sum(std::vector<double> const& mine, std::vector<double>& totals) {
    exchange->exchange().begin_sum(mine);
    totals.resize(mine.size());
    return exchange->exchange().finish_sum(totals);
  }
  /// Before the first step of a run: whether coefficients must travel, which they do by all, for what was given
  /// anew on one rank is in the halos of others; and whether all are asked for the same. why: this rank refuses
  /// its call; empty: it does not. False: a peer is lost.
  /// Errors  usage, on all ranks together  one refuses, or is asked for something else than another
  bool agree(std::int64_t wanted, StencilStop const& stop, std::string const& why) {
    std::vector<double> const asked = numbers_of(wanted, steps, stop, why);
    std::vector<double> mine{ready ? 0.0 : 1.0}, totals;
    mine.insert(mine.end(), asked.begin(), asked.end());
    if (!sum(mine, totals)) return false;
    ready = totals[0] == 0;
    std::vector<std::vector<double>> of_ranks(at(partition.ranks()));
    for (std::size_t k = 1; k < mine.size(); ++k) {
      std::vector<double> const all = of_every_rank(k);
      for (std::size_t r = 0; r < all.size(); ++r) of_ranks[r].push_back(all[r]);
    }
    check_asked(of_ranks, why);
    return true;
  }
  /// So that all ranks know what one has raised, before the next step.
  bool hear(bool& asked, double& seconds) {
    std::vector<double> totals;
    if (!sum({seconds}, totals)) return false;
    asked = (exchange->exchange().flags() & control::stop) != 0;
    for (double const one : of_every_rank(0)) seconds = std::max(seconds, one);
    return true;
  }
  std::vector<double> of_every_rank(std::size_t value) {
    auto const all = exchange->exchange().contributions();
    std::size_t const width = all.size() / at(partition.ranks());
    std::vector<double> found;
    for (std::size_t r = 0; r < at(partition.ranks()); ++r) found.push_back(all[r * width + value]);
    return found;
  }

  /// Of the last step. False: a peer is lost.
  bool look(StencilChange& change) {
    std::vector<double> mine, totals, squares(at(kernel.fields) * change::digits);
    for (int f = 0; f < kernel.fields; ++f) mine.push_back(change::largest(next[at(f)], now[at(f)], box));
    if (!sum(mine, totals)) return false;
    change.step = steps;
    change.largest.assign(at(kernel.fields), 0.0);
    for (int f = 0; f < kernel.fields; ++f)
      for (double const one : of_every_rank(at(f))) {
        double& top = change.largest[at(f)];
        if (std::isnan(one) || one > top) top = std::isnan(top) ? top : one;
      }
    auto const digits_of = [&](std::vector<double>& all, int f) {
      return std::span<double, change::digits>(all.data() + at(f) * change::digits, change::digits);
    };
    for (int f = 0; f < kernel.fields; ++f)
      change::squares(next[at(f)], now[at(f)], box, change.largest[at(f)], digits_of(squares, f));
    if (!sum(squares, totals)) return false;
    change.norm.clear();
    for (int f = 0; f < kernel.fields; ++f)
      change.norm.push_back(change::norm(change.largest[at(f)], digits_of(totals, f)));
    return true;
  }
  bool all_finite(bool& finite) {
    std::vector<double> mine{0.0}, totals;
    for (GridArray const& one : now)
      if (!change::is_finite(one, box)) mine[0] = 1;
    if (!sum(mine, totals)) return false;
    finite = totals[0] == 0;
    return true;
  }
};

StencilRun::StencilRun(Transport& transport, Grid const& grid, StencilKernel const& kernel,
                       StencilOptions const& options) {
  Group& group = transport.group();
  BoxPartition partition;
  std::uint64_t hash = 0;
  group.together([&] {
    check_kernel(kernel);
    check_grid(grid, kernel);
    if (options.depth < 0 || options.block_steps < 0)
      throw Error(ErrorCode::usage, fmt::format("{} between two exchanges, {} in one pass (neither can "
                                                "be negative). Use 0 to have them chosen.",
                                                counted(options.depth, "step"), options.block_steps));
    hash = hash_of(grid, kernel, options);
  });
  std::uint64_t const of_first = group.all_gather(hash)[0];
  group.together([&] {
    if (hash != of_first)
      throw Error(ErrorCode::usage,
                  fmt::format("rank {} steps another stencil, grid or depth than rank 0 (their cells would "
                              "not fit together). Give all ranks the same.",
                              group.rank()));
    partition = partition_for(group.size(), grid, kernel, options);
  });
  std::int64_t const cache = group.min(plain_bytes(kernel, partition, cache_room()));  // machines may differ
  std::optional<BoxPartition> slabs;
  if (transport.capabilities().threads_as_ranks)
    slabs = slabs_side_by_side(grid, kernel, options, group.size(), cache);
  double sharing = 0;
  if (slabs) {
    parts_ = std::make_unique<Parts>(transport, *slabs, kernel, StepsChosen{1, 1, true});
    parts_->share();
    parts_->bind(options);
    if (options.share == ShareCells::always) return;
    sharing = parts_->measure_sharing();
  }
  StencilCosts costs;
  if (options.depth == 0 && deepest_halo(partition, kernel) > 0)
    costs = measure_costs(transport, partition, kernel, options);
  group.together([&] {
    StepsChosen const steps = choose_steps(partition, kernel, options, costs, cache);
    if (slabs && step_with_sharing(*slabs, kernel, costs, sharing) <=
                     step_with_halos(partition, kernel, costs, steps.depth))
      return;
    slabs.reset();
    parts_ = std::make_unique<Parts>(transport, partition, kernel, steps);
    parts_->allocate();
  });
  if (!slabs) parts_->bind(options);
}

StencilRun::~StencilRun() = default;

Grid const& StencilRun::grid() const { return parts_->grid; }
BoxPartition const& StencilRun::partition() const { return parts_->partition; }
Box const& StencilRun::box() const { return parts_->box; }
int StencilRun::depth() const { return parts_->chosen.depth; }
int StencilRun::block_steps() const { return parts_->chosen.block_steps; }
bool StencilRun::shares_cells() const { return parts_->chosen.shares; }
std::int64_t StencilRun::steps() const { return parts_->steps; }
void StencilRun::count_from(std::int64_t steps) { parts_->steps = steps; }

void StencilRun::give(int array, CellArray const& cells) {
  Parts& parts = *parts_;
  check_array(parts.kernel, array);
  each_piece(parts.array(array), parts.box, cells,
             [](std::byte* ours, std::byte const* theirs, std::int64_t bytes) {
               std::memcpy(ours, theirs, static_cast<std::size_t>(bytes));
             });
  parts.given[at(array)] = 1;
  parts.ready = false;
  parts.lasting = 0;
}

void StencilRun::take(int field, CellArray const& cells) const {
  Parts const& parts = *parts_;
  check_field(parts.kernel, field);
  each_piece(parts.now[at(field)], parts.box, cells,
             [](std::byte const* ours, std::byte* theirs, std::int64_t bytes) {
               std::memcpy(theirs, ours, static_cast<std::size_t>(bytes));
             });
}

StencilResult StencilRun::run(std::int64_t steps, StencilStop const& stop) {
  Parts& parts = *parts_;
  std::string const why = refusal_of([&] {
    check_stop(steps, stop);
    check_given(parts.given);
  });
  parts.to_come = steps;
  parts.lasting = 0;  // another rank's cells may have been given anew
  StencilResult result;
  auto const begin = Clock::now();
  double const waited = parts.exchange->exchange().waited_s();
  if (parts.agree(steps, stop, why)) {
    step_and_look(parts, steps, stop, result);
  } else {
    parts.lost(result);
  }
  parts.exchange->exchange().lower();
  result.run_s = std::chrono::duration<double>(Clock::now() - begin).count();
  result.exchange_s = parts.exchange->exchange().waited_s() - waited;
  return result;
}

}  // namespace hostless
