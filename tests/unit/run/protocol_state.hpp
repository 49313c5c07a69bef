#pragma once
// A state of the explorer of protocols, what leads to the next one, and the set of those that have been seen.

#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

#include "protocol_explorer.hpp"

namespace hostless::test {

constexpr std::size_t most_agents = 4, most_waits = 8, most_cells = 64;
constexpr int code_bits = 4, most_pending = 3;  // with what a cell shows: 16 bits
constexpr std::uint8_t waiting = 0, got = 1, failed_wait = 2, holds = 0x20;  // | half << 4 | code

// One point of all agents' and all memories' lives.
struct alignas(8) State {
  std::array<std::uint16_t, most_cells> cell{};  // what it shows, then what waits in the writer's buffer
  std::array<std::array<std::uint8_t, most_waits>, most_agents> wait{};  // of the agent's present step
  std::array<std::array<Code, most_waits>, most_agents> early{};         // plain loads that have happened
  std::array<std::uint8_t, most_agents> step{};
  std::uint8_t lost = 0, failed = 0, ended = 0, padding = 0;  // agents as bits
};
static_assert(sizeof(State) % 8 == 0 && std::has_unique_object_representations_v<State>);

struct Move {
  enum class Kind : std::uint8_t { show, first_half, take, fail, deadline, read, early, lose };
  Kind kind;
  std::uint8_t agent = 0;  // or the cell that is shown
  std::uint8_t wait = 0, half = 0;
};
struct Moves {
  std::array<Move, 96> move;
  int count = 0;
  void add(Move const& m) { move.at(static_cast<std::size_t>(count++)) = m; }
};

// States that have been seen, as fingerprints of 128 bits: that two of 10^8 are equal has a probability of
// 10^-22.
class Seen {
 public:
  bool insert(State const& state) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Mark const mark = mark_of(state);
    Mark& slot = find(slots_, mark);
    if (slot == mark) return false;
    slot = mark;
    ++count_;
    return true;
  }
  std::uint64_t count() const { return count_; }

 private:
  struct Mark {
    std::uint64_t a = 0, b = 0;
    bool operator==(Mark const&) const = default;
  };
  static std::uint64_t mix(std::uint64_t h, std::uint64_t v, std::uint64_t factor) {
    h = (h ^ v) * factor;
    return h ^ h >> 32;
  }
  static Mark mark_of(State const& state) {
    std::array<std::uint64_t, sizeof(State) / 8> words;
    std::memcpy(words.data(), &state, sizeof state);
    Mark mark{1, 2};
    for (std::uint64_t word : words) {
      mark.a = mix(mark.a, word, 0x9e3779b97f4a7c15u);
      mark.b = mix(mark.b, word, 0xc2b2ae3d27d4eb4fu);
    }
    return mark;
  }
  static Mark& find(std::vector<Mark>& slots, Mark const& mark) {
    std::size_t at = mark.a & (slots.size() - 1);
    while (slots[at] != Mark{} && slots[at] != mark) at = (at + 1) & (slots.size() - 1);
    return slots[at];
  }
  void grow() {
    std::vector<Mark> larger(2 * slots_.size());
    for (Mark const& mark : slots_)
      if (mark != Mark{}) find(larger, mark) = mark;
    slots_ = std::move(larger);
  }
  std::vector<Mark> slots_ = std::vector<Mark>(1u << 16);
  std::uint64_t count_ = 0;
};

}  // namespace hostless::test
