#pragma once
// Exchanges made up from a number, that every rank makes up alike, and what must come of them: computed from
// the global numbers of items alone, by nobody's plan.

#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "hostless/base/wait.hpp"
#include "hostless/exchange/exchange.hpp"
#include "hostless/exchange/patterns.hpp"
#include "hostless/exchange/reverse_exchange.hpp"
#include "hostless/plan/checker.hpp"
#include "hostless/plan/reverse.hpp"
#include "plan_cases.hpp"

namespace hostless::testing {

inline std::uint64_t scrambled(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Who owns which numbers and who reads which, in the order in which each rank has them.
struct World {
  std::vector<std::vector<std::int64_t>> owned, ghosts;  // [ranks]
  unsigned seed = 0;
  Route route = Route::direct;
  NodeMap nodes;
  PlanOptions options{ReuseGuarantee::answer, Space::host, true};
  bool by_lists = false;

  World(int ranks, unsigned number)
      : owned(at(ranks)), ghosts(at(ranks)), seed(number), nodes(random_nodes(ranks, number)) {
    std::mt19937 random(number);
    auto const below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    route = routes[at(below(5))];
    if (below(3) == 0) options.reuse_guarantee = ReuseGuarantee::credit;
    options = varied(route, nodes, number, options);
    by_lists = below(2) == 0;
    std::vector<std::int64_t> numbers(at(1 + below(20 * ranks)));
    for (std::size_t k = 0; k < numbers.size(); ++k)
      numbers[k] = static_cast<std::int64_t>(7 * k + number % 5);
    std::shuffle(numbers.begin(), numbers.end(), random);
    int const empty = below(2 * ranks);  // a rank that owns nothing, perhaps
    for (std::int64_t const n : numbers) {
      int const rank = below(ranks);
      if (rank != empty) owned[at(rank)].push_back(n);
    }
    int const density = 1 + below(6);
    for (int r = 0; r < ranks; ++r) {
      for (int s = 0; s < ranks; ++s)
        for (std::int64_t const n : owned[at(s)])
          if (below(density + (r == s ? 6 : 0)) == 0) ghosts[at(r)].push_back(n);
      if (below(3) > 0) std::shuffle(ghosts[at(r)].begin(), ghosts[at(r)].end(), random);
    }
  }

  std::pair<int, std::int32_t> home(std::int64_t number) const {
    for (std::size_t r = 0; r < owned.size(); ++r)
      for (std::size_t i = 0; i < owned[r].size(); ++i)
        if (owned[r][i] == number) return {static_cast<int>(r), static_cast<std::int32_t>(i)};
    return {-1, -1};
  }

  /// As this rank would pass them; lists are in the order of the reader's ghosts.
  std::vector<Pattern> patterns(Group& group) const {
    auto const me = at(group.rank());
    if (!by_lists) return patterns_of_ghosts(group, owned[me], ghosts[me]);
    std::vector<std::vector<std::int32_t>> send(owned.size()), receive(owned.size());
    for (std::size_t r = 0; r < owned.size(); ++r)
      for (std::size_t g = 0; g < ghosts[r].size(); ++g) {
        auto const [rank, item] = home(ghosts[r][g]);
        if (at(rank) == me) send[r].push_back(item);
        if (r == me) receive[at(rank)].push_back(static_cast<std::int32_t>(g));
      }
    return patterns_of_lists(group, static_cast<std::int64_t>(owned[me].size()), send, receive);
  }
};

/// Counts what is wrong and says it, the first few times.
class Wrong {
 public:
  explicit Wrong(World const& world) : world_(world) {}
  void add(std::string const& what) {
    if (++count_ <= 3)
      text_ += "plan " + std::to_string(world_.seed) + " (" + name(world_.route) + "): " + what + "\n";
  }
  std::string const& text() const { return text_; }

 private:
  World const& world_;
  std::string text_;
  int count_ = 0;
};

inline void dawdle(std::mt19937& random) {
  if (random() % 8 == 0) Backoff::give_core_away();
  if (random() % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
}

constexpr int epochs = 4;

/// One to five fields of 1 to 64 bytes an item; every byte of a ghost says whose it is.
inline void exchange_bytes(Transport& transport, World const& world, std::vector<Pattern> const& patterns,
                           Wrong& wrong) {
  Group& group = transport.group();
  auto const me = at(group.rank());
  auto const& owned = world.owned[me];
  auto const& ghosts = world.ghosts[me];
  std::mt19937 random(world.seed + 1), own_pace(world.seed * 31 + static_cast<unsigned>(me));
  std::vector<std::size_t> sizes(1 + random() % 5);
  for (std::size_t& size : sizes) size = 1 + random() % 64;
  auto const value = [&](std::size_t field, std::int64_t number, std::size_t byte, int epoch) {
    return static_cast<std::byte>(scrambled(world.seed + 1000003u * static_cast<std::uint64_t>(number) +
                                            64 * field + byte + (static_cast<std::uint64_t>(epoch) << 40)));
  };
  std::vector<std::vector<std::byte>> memory;  // [owned | ghosts] of each field, each between guards
  std::vector<Field> fields;
  constexpr std::size_t guard = 16;
  for (std::size_t const size : sizes) {
    memory.emplace_back(2 * guard + (owned.size() + ghosts.size()) * size, std::byte{0xa5});
    std::byte* const first = memory.back().data() + guard;
    fields.push_back(Field::apart(first, first + owned.size() * size, size));
  }
  ExchangePlan const plan = make_plan(world.route, patterns, world.nodes, group.rank(), world.options);
  Exchange exchange(transport, plan, fields, {{60, 60}, {}, {}});
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    auto expected = memory;
    for (std::size_t f = 0; f < sizes.size(); ++f) {
      std::size_t at_byte = guard;
      for (auto const* numbers : {&owned, &ghosts})
        for (std::int64_t const number : *numbers)
          for (std::size_t b = 0; b < sizes[f]; ++b) expected[f][at_byte++] = value(f, number, b, epoch);
      std::copy_n(expected[f].begin() + guard, owned.size() * sizes[f], memory[f].begin() + guard);
    }
    dawdle(own_pace);
    exchange.start();
    dawdle(own_pace);
    if (own_pace() % 2 == 0) exchange.test();
    if (!exchange.wait()) return wrong.add("a rank was lost");
    for (std::size_t f = 0; f < sizes.size(); ++f)
      if (memory[f] != expected[f])
        wrong.add("field " + std::to_string(f) + " of " + std::to_string(sizes[f]) +
                  " bytes an item differs on rank " + std::to_string(me) + " in exchange " +
                  std::to_string(epoch));
  }
}

/// Numbers of every size, so that another order of additions gives other bits.
template <class T>
T addend(std::uint64_t from) {
  std::uint64_t const bits = scrambled(from);
  if constexpr (std::is_floating_point_v<T>) {
    T const power = static_cast<T>(std::ldexp(1.0, static_cast<int>(bits % 41) - 20));
    return (static_cast<T>(static_cast<std::int32_t>(bits >> 32)) / 65536) * power;
  } else {
    return static_cast<T>(bits);
  }
}

template <class T>
class SummedField {
 public:
  SummedField(World const& world, std::size_t field, int me, int values)
      : world_(world), field_(field), me_(me), values_(values) {
    owned_.resize(world.owned[at(me)].size() * at(values));
    ghosts_.resize(world.ghosts[at(me)].size() * at(values));
    expected_.resize(owned_.size());
  }
  SumField described(Element element) { return {ghosts_.data(), owned_.data(), element, values_}; }
  void fill(int epoch) {
    auto const& owned = world_.owned[at(me_)];
    auto const& ghosts = world_.ghosts[at(me_)];
    for (std::size_t i = 0; i < owned.size(); ++i)
      for (int k = 0; k < values_; ++k) {
        T sum = value(-1, owned[i], k, epoch);
        owned_[i * at(values_) + at(k)] = sum;
        for (std::size_t r = 0; r < world_.ghosts.size(); ++r)  // in the order of ranks
          if (std::count(world_.ghosts[r].begin(), world_.ghosts[r].end(), owned[i]) > 0)
            sum += value(static_cast<int>(r), owned[i], k, epoch);
        expected_[i * at(values_) + at(k)] = sum;
      }
    for (std::size_t g = 0; g < ghosts.size(); ++g)
      for (int k = 0; k < values_; ++k) ghosts_[g * at(values_) + at(k)] = value(me_, ghosts[g], k, epoch);
  }
  bool good() const {
    return owned_.empty() || std::memcmp(owned_.data(), expected_.data(), owned_.size() * sizeof(T)) == 0;
  }

 private:
  T value(int holder, std::int64_t number, int k, int epoch) const {
    return addend<T>(world_.seed + 1009u * static_cast<std::uint64_t>(number) +
                     (static_cast<std::uint64_t>(holder + 1) << 32) +
                     (static_cast<std::uint64_t>(epoch) << 40) + 8 * field_ + static_cast<std::uint64_t>(k));
  }
  World const& world_;
  std::size_t field_;
  int me_, values_;
  std::vector<T> owned_, ghosts_, expected_;
};

/// All kinds of elements in one exchange; integers are held against sums that wrap around.
inline void add_ghosts(Transport& transport, World const& world, std::vector<Pattern> const& patterns,
                       Wrong& wrong) {
  int const me = transport.group().rank();
  std::mt19937 random(world.seed + 2), own_pace(world.seed * 37 + static_cast<unsigned>(me));
  auto const values = [&] { return 1 + static_cast<int>(random() % 4); };
  SummedField<float> f32(world, 0, me, values());
  SummedField<double> f64(world, 1, me, values());
  SummedField<std::uint32_t> i32(world, 2, me, values());
  SummedField<std::uint64_t> i64(world, 3, me, values());
  ReversePlan const plan = make_reverse_plan(world.route, patterns, world.nodes, me, world.options);
  ReverseExchange exchange(transport, plan,
                           {f32.described(Element::f32), f64.described(Element::f64),
                            i32.described(Element::i32), i64.described(Element::i64)},
                           {{60, 60}, {}, {}});
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    f32.fill(epoch), f64.fill(epoch), i32.fill(epoch), i64.fill(epoch);
    dawdle(own_pace);
    exchange.start();
    dawdle(own_pace);
    if (own_pace() % 2 == 0) exchange.test();
    if (!exchange.wait()) return wrong.add("a rank was lost while ghosts were added");
    if (!f32.good() || !f64.good() || !i32.good() || !i64.good())
      wrong.add("sums on rank " + std::to_string(me) + " differ in exchange " + std::to_string(epoch) +
                ": f32 " + (f32.good() ? "good" : "wrong") + ", f64 " + (f64.good() ? "good" : "wrong") +
                ", i32 " + (i32.good() ? "good" : "wrong") + ", i64 " + (i64.good() ? "good" : "wrong"));
  }
}

/// What is wrong with plan `number` on this rank. Collective.
inline std::string try_plan(Transport& transport, unsigned number) {
  Group& group = transport.group();
  World const world(group.size(), number);
  Wrong wrong(world);
  auto const patterns = world.patterns(group);
  if (group.rank() == 0) {
    for (std::string const& text :
         check(make_plans(world.route, patterns, world.nodes, world.options), patterns))
      wrong.add(text);
    auto const back = transposed(patterns);
    for (std::string const& text : check(make_plans(world.route, back, world.nodes, world.options), back))
      wrong.add("back: " + text);
  }
  exchange_bytes(transport, world, patterns, wrong);
  add_ghosts(transport, world, patterns, wrong);
  return wrong.text();
}

}  // namespace hostless::testing
