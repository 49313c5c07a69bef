#include "halos/queue_halos.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <tuple>
#include <vector>

#include "drawn_bytes.hpp"
#include "hostless/queue/halo.hpp"
#include "queue_home.hpp"

namespace hostless::test {
namespace {

using Index = std::array<std::int64_t, 3>;

struct GridField {
  std::size_t bytes = 1;
  Datatype element = Datatype::byte;
  std::int64_t pad = 0;  // bytes behind a line
  std::size_t skip = 0;  // bytes before the first cell
};
struct GridStep {
  bool scatters = false, ends_run = false;
  int copy = 0;  // which of two arrays a field
};

// Drawn alike on all ranks.
struct HaloWorld {
  std::vector<int> ranks;
  std::vector<bool> periodic;
  std::vector<std::vector<std::int64_t>> sizes;  // by axis and position on it
  int width = 1;
  bool star = false, ready = false, adds = false;
  std::vector<GridField> fields;
  std::vector<GridStep> steps;

  HaloWorld(std::mt19937_64& draw, int size) {
    auto const below = [&](std::int64_t n) {
      return static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(n));
    };
    int const axes = 2 + static_cast<int>(below(2));
    width = 1 + static_cast<int>(below(3));
    star = below(3) == 0, ready = below(2) == 0, adds = below(2) == 0;
    ranks.assign(static_cast<std::size_t>(axes), 1);
    for (int prime = 2, rest = size; rest > 1;) {
      if (rest % prime != 0) {
        ++prime;
        continue;
      }
      ranks[static_cast<std::size_t>(below(axes))] *= prime, rest /= prime;
    }
    for (int const along : ranks) {
      periodic.push_back(below(2) == 0);
      sizes.emplace_back();
      for (int k = 0; k < along; ++k) sizes.back().push_back(width + below(4));
    }
    draw_fields(below);
    for (std::int64_t k = 0, count = 1 + below(5); k < count; ++k)
      steps.push_back({adds && below(2) == 0, k + 1 == count || below(3) == 0, static_cast<int>(below(2))});
  }
  template <class Below>
  void draw_fields(Below const& below) {
    constexpr std::array<std::size_t, 8> plain = {1, 2, 3, 4, 8, 12, 16, 64};
    constexpr std::array<Datatype, 4> numbers = {Datatype::f32, Datatype::f64, Datatype::i32, Datatype::i64};
    for (std::int64_t k = 0, count = 1 + below(4); k < count; ++k) {
      GridField field;
      if (adds || below(3) == 0) {
        field.element = numbers[static_cast<std::size_t>(below(4))];
        std::size_t const one = bytes_of(field.element);
        field.bytes = one * static_cast<std::size_t>(1 + below(3));
        field.pad = static_cast<std::int64_t>(one) * below(3);
      } else {
        field.bytes = plain[static_cast<std::size_t>(below(plain.size()))];
        field.pad = below(5), field.skip = static_cast<std::size_t>(below(4));
      }
      fields.push_back(field);
    }
  }

  std::size_t axes() const { return ranks.size(); }
  // Missing axes have one cell, no halo and one rank.
  Index position_of(int rank) const {
    Index at{};
    for (std::size_t a = axes(); a-- > 0;) at[a] = rank % ranks[a], rank /= ranks[a];
    return at;
  }
  int rank_at(Index const& position) const {
    int rank = 0;
    for (std::size_t a = 0; a < axes(); ++a) rank = rank * ranks[a] + static_cast<int>(position[a]);
    return rank;
  }
  std::int64_t along(std::size_t a) const { return a < axes() ? ranks[a] : 1; }
  std::int64_t halo(std::size_t a) const { return a < axes() ? width : 0; }
  std::int64_t size(Index const& position, std::size_t a) const {
    return a < axes() ? sizes[a][static_cast<std::size_t>(position[a])] : 1;
  }
  std::int64_t extent(std::size_t a) const {
    std::int64_t all = 0;
    for (std::int64_t k = 0; k < along(a); ++k) all += a < axes() ? sizes[a][static_cast<std::size_t>(k)] : 1;
    return all;
  }
  std::int64_t low(Index const& position, std::size_t a) const {
    std::int64_t first = 0;
    for (std::int64_t k = 0; k < position[a]; ++k)
      first += a < axes() ? sizes[a][static_cast<std::size_t>(k)] : 1;
    return first;
  }
};

// A rank's array of a field as it lies in memory, or as the oracle has it.
struct PaddedBox {
  Index extent{};  // with the halo
  std::array<std::int64_t, 3> stride{};
  std::size_t skip = 0, bytes = 0;

  PaddedBox(HaloWorld const& world, int rank, GridField const& field) : skip(field.skip) {
    Index const position = world.position_of(rank);
    for (std::size_t a = 0; a < 3; ++a) extent[a] = world.size(position, a) + 2 * world.halo(a);
    std::size_t const last = world.axes() - 1;
    std::int64_t close = static_cast<std::int64_t>(field.bytes);
    for (std::size_t a = world.axes(); a-- > 0;) {
      stride[a] = close;
      close = close * extent[a] + (a == last ? field.pad : 0);
    }
    bytes = skip + static_cast<std::size_t>(close);
  }
  std::size_t at(Index const& cell) const {
    std::int64_t all = static_cast<std::int64_t>(skip);
    for (std::size_t a = 0; a < 3; ++a) all += stride[a] * cell[a];
    return static_cast<std::size_t>(all);
  }
  template <class Use>
  void each(Use const& use) const {
    Index cell{};
    for (cell[0] = 0; cell[0] < extent[0]; ++cell[0])
      for (cell[1] = 0; cell[1] < extent[1]; ++cell[1])
        for (cell[2] = 0; cell[2] < extent[2]; ++cell[2]) use(cell);
  }
};

template <class T>
void add_elements(std::byte* to, std::byte const* from, std::size_t bytes) {
  for (std::size_t k = 0; k < bytes; k += sizeof(T)) {
    T a, b;
    std::memcpy(&a, to + k, sizeof a);
    std::memcpy(&b, from + k, sizeof b);
    a = static_cast<T>(a + b);
    std::memcpy(to + k, &a, sizeof a);
  }
}
void add_cell(GridField const& field, std::byte* to, std::byte const* from) {
  if (field.element == Datatype::f32) add_elements<float>(to, from, field.bytes);
  if (field.element == Datatype::f64) add_elements<double>(to, from, field.bytes);
  if (field.element == Datatype::i32) add_elements<std::uint32_t>(to, from, field.bytes);
  if (field.element == Datatype::i64) add_elements<std::uint64_t>(to, from, field.bytes);
}

// A cell of a rank's halo, and the cell that it stands for.
struct Ghost {
  int owner = 0;
  Index owned{}, ways{};  // ways: where the ghost's rank lies, seen from the owner's
  int rank = 0;
  Index cell{};
};

// All ghosts that are exchanged, by global indices: in the order of their owners, cells there, and ways.
std::vector<Ghost> ghosts_of(HaloWorld const& world, int ranks) {
  std::vector<Ghost> all;
  for (int rank = 0; rank < ranks; ++rank) {
    Index const position = world.position_of(rank);
    PaddedBox(world, rank, GridField{}).each([&](Index const& cell) {
      Ghost ghost{.rank = rank, .cell = cell};
      Index owner{};
      int crossed = 0;
      for (std::size_t a = 0; a < 3; ++a) {
        std::int64_t const inside = cell[a] - world.halo(a), extent = world.extent(a);
        std::int64_t global = world.low(position, a) + inside;
        if ((global < 0 || global >= extent) && !world.periodic[a]) return;
        ghost.ways[a] = inside < 0 ? 1 : inside >= world.size(position, a) ? -1 : 0;
        crossed += ghost.ways[a] != 0 ? 1 : 0;
        for (global = (global + extent) % extent; global >= world.size(owner, a); ++owner[a])
          global -= world.size(owner, a);
        ghost.owned[a] = global + world.halo(a);
      }
      if (crossed == 0 || (world.star && crossed > 1)) return;
      ghost.owner = world.rank_at(owner);
      all.push_back(ghost);
    });
  }
  std::sort(all.begin(), all.end(), [](Ghost const& x, Ghost const& y) {
    return std::tie(x.owner, x.owned, x.ways) < std::tie(y.owner, y.owned, y.ways);
  });
  return all;
}

// All ranks' arrays of one field, and what halos do to them.
class AllRanks {
 public:
  AllRanks(HaloWorld const& world, int ranks, std::vector<Ghost> const& ghosts, GridField const& field,
           std::uint64_t seed)
      : ghosts_(ghosts), field_(field) {
    std::mt19937_64 draw(seed);
    for (int r = 0; r < ranks; ++r) {
      boxes_.emplace_back(world, r, field);
      arrays_.emplace_back(boxes_.back().bytes);
      DrawnBytes(draw()).fill(arrays_.back().data(), arrays_.back().size());
      boxes_.back().each(
          [&](Index const& cell) { set_numbers(arrays_.back().data() + boxes_.back().at(cell), draw); });
    }
  }
  std::vector<std::byte> const& array(int rank) const { return arrays_[static_cast<std::size_t>(rank)]; }

  void gather() {
    for (Ghost const& one : ghosts_)
      std::memcpy(here(one.rank, one.cell), here(one.owner, one.owned), field_.bytes);
  }
  void scatter() {
    for (Ghost const& one : ghosts_) {
      add_cell(field_, here(one.owner, one.owned), here(one.rank, one.cell));
      std::memset(here(one.rank, one.cell), 0, field_.bytes);
    }
  }

 private:
  std::byte* here(int rank, Index const& cell) {
    auto const r = static_cast<std::size_t>(rank);
    return arrays_[r].data() + boxes_[r].at(cell);
  }
  void set_numbers(std::byte* cell, std::mt19937_64& draw) const {
    if (field_.element != Datatype::f64 && field_.element != Datatype::f32) return;
    for (std::size_t k = 0; k < field_.bytes; k += bytes_of(field_.element)) {
      double const number = static_cast<double>(static_cast<std::int64_t>(draw() >> 20)) / 7e6;
      auto const narrow = static_cast<float>(number);
      if (field_.element == Datatype::f64) std::memcpy(cell + k, &number, sizeof number);
      if (field_.element == Datatype::f32) std::memcpy(cell + k, &narrow, sizeof narrow);
    }
  }

  std::vector<Ghost> const& ghosts_;
  GridField field_;
  std::vector<PaddedBox> boxes_;
  std::vector<std::vector<std::byte>> arrays_;
};

// Where there is no room for as many messages, nothing of a step was enqueued: it is enqueued again.
void enqueue(QueueHalo& halo, Queue& queue, bool scatters, HaloStep const& step) {
  for (bool is_enqueued = false; !is_enqueued;) try {
      scatters ? halo.enqueue_scatter(queue, step) : halo.enqueue_gather(queue, step);
      is_enqueued = true;
    } catch (QueueError const& e) {
      if (e.why() != Refusal::too_many) throw;
      queue.wait();
    }
}

std::string run_world(Communicator& communicator, Group& group, Queue& queue, std::uint64_t seed,
                      EnqueueSteps const& by) {
  std::mt19937_64 draw(seed);
  HaloWorld const world(draw, group.size());
  int const rank = group.rank();
  HaloGrid grid{world.ranks, world.periodic, {}, world.width, world.star ? HaloReach::star : HaloReach::box};
  for (std::size_t a = 0; a < world.axes(); ++a) grid.size.push_back(world.size(world.position_of(rank), a));
  std::vector<HaloField> fields;
  std::vector<Ghost> const ghosts = ghosts_of(world, group.size());
  std::vector<AllRanks> expected[2];
  std::vector<void*> arrays[2];
  std::vector<std::byte*> whole[2];
  for (GridField const& field : world.fields) {
    PaddedBox const box(world, rank, field);
    for (std::size_t copy = 0; copy < 2; ++copy) {
      expected[copy].emplace_back(world, group.size(), ghosts, field, draw());
      whole[copy].push_back(queue_home().memory(box.bytes));
      std::copy_n(expected[copy].back().array(rank).data(), box.bytes, whole[copy].back());
      arrays[copy].push_back(whole[copy].back() + box.skip);
    }
    fields.push_back({arrays[0].back(), field.bytes, field.element, {}});
    for (std::size_t a = 0; a < world.axes(); ++a) fields.back().strides.push_back(box.stride[a]);
  }
  QueueHalo halo(communicator, grid, fields, {.ready = world.ready, .tag = static_cast<int>(seed % 3)});
  int const times = by([&] {
    for (GridStep const& step : world.steps) {
      HaloStep with{.ends_run = step.ends_run};
      if (step.copy == 1) with.arrays = arrays[1];
      enqueue(halo, queue, step.scatters, with);
    }
  });
  queue.wait();
  for (int k = 0; k < times; ++k)
    for (GridStep const& step : world.steps)
      for (AllRanks& one : expected[step.copy]) step.scatters ? one.scatter() : one.gather();
  for (std::size_t copy = 0; copy < 2; ++copy)
    for (std::size_t f = 0; f < fields.size(); ++f) {
      auto const& right = expected[copy][f].array(rank);
      auto const at = std::mismatch(right.begin(), right.end(), whole[copy][f]).first - right.begin();
      if (static_cast<std::size_t>(at) != right.size())
        return "byte " + std::to_string(at) + " of array " + std::to_string(copy) + " of field " +
               std::to_string(f) + " is wrong";
    }
  return {};
}

}  // namespace

std::string run_random_halos(Communicator& communicator, Group& group, Queue& queue, std::uint64_t first_seed,
                             std::uint64_t count, EnqueueSteps const& by) {
  std::string wrong;
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    queue_home().again();
    group.barrier();
    std::string const here = run_world(communicator, group, queue, seed, by);
    if (!here.empty() && wrong.empty())
      wrong = "halo " + std::to_string(seed) + " on rank " + std::to_string(group.rank()) + ": " + here;
  }
  group.barrier();
  return wrong;
}

}  // namespace hostless::test
