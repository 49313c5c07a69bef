// Resistors on a grid, a few long ones between random nodes, a resistance to ground at some nodes.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "problems/sources.hpp"

namespace hostless::problems {
namespace {

/// A pseudo-random permutation of [0, n) that can be evaluated and inverted at one place without a table:
/// four Feistel rounds on the smallest even number of bits that holds n, repeated while outside (Black and
/// Rogaway, CT-RSA 2002).
class Shuffle {
 public:
  Shuffle(std::uint64_t seed, std::int64_t n)
      : n_(static_cast<std::uint64_t>(n)),
        half_((static_cast<int>(std::bit_width(n_)) + 1) / 2),
        mask_((1ull << half_) - 1) {
    for (std::uint64_t round = 0; round < rounds; ++round)
      keys_[round] = Counter(seed, Stream::shuffle).bits(round);
  }
  std::int64_t position(std::int64_t item) const {
    auto value = static_cast<std::uint64_t>(item);
    do value = forward(value);
    while (value >= n_);
    return static_cast<std::int64_t>(value);
  }
  std::int64_t item(std::int64_t position) const {
    auto value = static_cast<std::uint64_t>(position);
    do value = backward(value);
    while (value >= n_);
    return static_cast<std::int64_t>(value);
  }

 private:
  static constexpr int rounds = 4;
  std::uint64_t scramble(int round, std::uint64_t half) const {
    return Counter(keys_[round], Stream::shuffle).bits(half) & mask_;
  }
  std::uint64_t forward(std::uint64_t value) const {
    std::uint64_t left = value >> half_, right = value & mask_;
    for (int round = 0; round < rounds; ++round) left = std::exchange(right, left ^ scramble(round, right));
    return left << half_ | right;
  }
  std::uint64_t backward(std::uint64_t value) const {
    std::uint64_t left = value >> half_, right = value & mask_;
    for (int round = rounds - 1; round >= 0; --round)
      right = std::exchange(left, right ^ scramble(round, left));
    return left << half_ | right;
  }

  std::uint64_t n_;
  int half_;
  std::uint64_t mask_;
  std::array<std::uint64_t, rounds> keys_{};
};

class CircuitRows final : public SharedRows {
 public:
  explicit CircuitRows(Choices const& choices)
      : SharedRows(choices.lattice.count(), choices.size, choices.rank),
        nx_(choices.lattice.nodes[0]),
        nodes_(choices.lattice.count()),
        held_(choices.held),
        long_ends_(2 * static_cast<std::int64_t>(choices.long_edges * static_cast<double>(nodes_))),
        horizontal_(Counter(choices.seed, Stream::horizontal), choices.contrast),
        vertical_(Counter(choices.seed, Stream::vertical), choices.contrast),
        long_(Counter(choices.seed, Stream::long_edge), choices.contrast),
        ground_(Counter(choices.seed, Stream::ground), choices.contrast),
        missing_(choices.seed, Stream::missing),
        grounded_(choices.seed, Stream::grounded),
        shuffle_(choices.seed, nodes_) {}

 private:
  struct Resistor {
    std::int64_t to;
    double conductance;
  };
  /// A node's resistors in rising column; five at most.
  struct Node {
    std::array<Resistor, 5> resistor;
    int count = 0;
    void add(std::int64_t to, double conductance) { resistor[count++] = {to, conductance}; }
    /// Keeps the order; two resistors between the same nodes act in parallel.
    void insert(std::int64_t to, double conductance) {
      int at = 0;
      while (at < count && resistor[at].to < to) ++at;
      if (at < count && resistor[at].to == to) {
        resistor[at].conductance += conductance;
        return;
      }
      std::move_backward(resistor.begin() + at, resistor.begin() + count, resistor.begin() + count + 1);
      resistor[at] = {to, conductance};
      ++count;
    }
  };

  /// One vertical resistor in ten is missing, which brings the entries a row down to the 4.83 of G3_circuit.
  /// The horizontal ones and the first column stay: they keep the circuit in one piece.
  bool has_vertical(std::int64_t lower) const {
    constexpr double share = 0.1034;
    return lower % nx_ == 0 || missing_.uniform(static_cast<std::uint64_t>(lower)) >= share;
  }

  /// The nodes at places 2 t and 2 t + 1 of a random order are joined, for the first places: an involution.
  std::optional<std::int64_t> far_end(std::int64_t node) const {
    if (long_ends_ == 0) return std::nullopt;
    std::int64_t const position = shuffle_.position(node);
    if (position >= long_ends_) return std::nullopt;
    return shuffle_.item(position ^ 1);
  }

  double to_ground(std::int64_t node) const {
    constexpr double share = 0.01;
    auto const index = static_cast<std::uint64_t>(node);
    if (!held_ || (node != 0 && grounded_.uniform(index) >= share)) return 0.0;
    return ground_(index);
  }

  /// Each resistor's value is drawn at its lower node, whichever end asks.
  Node resistors(std::int64_t node) const {
    auto const index = [](std::int64_t i) { return static_cast<std::uint64_t>(i); };
    std::int64_t const x = node % nx_;
    Node out;
    if (node >= nx_ && has_vertical(node - nx_)) out.add(node - nx_, vertical_(index(node - nx_)));
    if (x > 0) out.add(node - 1, horizontal_(index(node - 1)));
    if (x + 1 < nx_) out.add(node + 1, horizontal_(index(node)));
    if (node + nx_ < nodes_ && has_vertical(node)) out.add(node + nx_, vertical_(index(node)));
    if (auto const far = far_end(node)) out.insert(*far, long_(index(std::min(node, *far))));
    return out;
  }

  void fill(std::int64_t first, std::int64_t last, RowPanel& out) const override {
    out.clear();
    for (std::int64_t node = first; node < last; ++node) {
      Node const here = resistors(node);
      double sum = to_ground(node);
      for (int k = 0; k < here.count; ++k) sum += here.resistor[k].conductance;
      bool diagonal_written = false;
      auto const write = [&](std::int64_t column, double value) {
        out.column.push_back(column);
        out.value.push_back(value);
      };
      for (int k = 0; k < here.count; ++k) {
        if (!diagonal_written && here.resistor[k].to > node) {
          write(node, sum);
          diagonal_written = true;
        }
        write(here.resistor[k].to, -here.resistor[k].conductance);
      }
      if (!diagonal_written) write(node, sum);
      out.offset.push_back(static_cast<std::int64_t>(out.column.size()));
    }
  }

  std::int64_t nx_, nodes_;
  bool held_;
  std::int64_t long_ends_;
  LogNormal horizontal_, vertical_, long_, ground_;
  Counter missing_, grounded_;
  Shuffle shuffle_;
};

}  // namespace

std::unique_ptr<RowSource> make_circuit(Choices const& choices) {
  return std::make_unique<CircuitRows>(choices);
}

}  // namespace hostless::problems
