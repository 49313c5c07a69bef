#pragma once
// What is drawn of a program of groups: who has what for whom, and in which steps it moves.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace hostless::test::groups {

struct Draw {
  explicit Draw(std::uint64_t seed) : engine(seed) {}
  int below(int n) { return static_cast<int>(engine() % static_cast<std::uint64_t>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  std::mt19937_64 engine;
};

enum class Kind { message, barrier, all_reduce, broadcast };
struct Thing {
  Kind kind = Kind::message;
  int source = 0, target = 0, tag = 0;  // of a message; source: the root of a broadcast
  std::size_t bytes = 0;
  bool ready = false;
};

// Two ranks, the lower one first; {rank, rank}: what one has for itself.
using Pair = std::pair<int, int>;
inline Pair pair_of(Thing const& thing) { return std::minmax(thing.source, thing.target); }

// From a match of everything to its end.
struct Phase {
  std::vector<Thing> things;
  std::vector<std::set<Pair>> steps;  // who moves what they have
  int times = 1;                      // all steps are enqueued
  int launches = 0;                   // of a graph of all steps
};

inline std::size_t drawn_bytes(Draw& draw) {
  switch (draw.below(6)) {
    case 0:
      return 0;
    case 1:
      return static_cast<std::size_t>(draw.below(100000));
    default:
      return static_cast<std::size_t>(draw.below(300));
  }
}

inline Phase draw_phase(Draw& draw, int ranks) {
  Phase phase;
  std::set<Pair> pairs;
  bool const has_collectives = draw.one_in(3);
  for (int a = 0; a < ranks; ++a)
    for (int b = a; b < ranks; ++b) {
      if (has_collectives && a != b) pairs.insert({a, b});
      if (!draw.one_in(a == b ? 4 : 2)) continue;
      pairs.insert({a, b});
      for (int k = 1 + draw.below(3); k-- > 0;) {
        Thing& thing = phase.things.emplace_back();
        bool const back = draw.one_in(2);
        thing.source = back ? b : a, thing.target = back ? a : b;
        thing.tag = draw.below(3), thing.bytes = drawn_bytes(draw), thing.ready = draw.one_in(4);
      }
    }
  for (int k = has_collectives ? 1 + draw.below(2) : 0; k-- > 0;) {
    Thing& thing = phase.things.emplace_back();
    thing.kind = static_cast<Kind>(1 + draw.below(3));
    thing.source = draw.below(ranks), thing.target = -1;
    thing.bytes = drawn_bytes(draw) / 8 * 8;
  }
  for (int k = 1 + draw.below(4); k-- > 0;) {
    auto& step = phase.steps.emplace_back();
    for (Pair const& pair : pairs)
      if (has_collectives && pair.first != pair.second ? true : !draw.one_in(3)) step.insert(pair);
  }
  phase.times = 1 + draw.below(3);
  phase.launches = draw.one_in(3) ? 1 + draw.below(4) : 0;
  return phase;
}

}  // namespace hostless::test::groups
