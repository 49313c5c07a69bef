#include "wires.hpp"

#include <algorithm>
#include <cstring>

namespace hostless::loopback {

// Of each epoch, until it lies in the target: offered by its source, or kept by the wire, which lets the
// source go.
struct Wires::Message {
  struct Epoch {
    std::uint32_t number = 0;
    bool under_way = false;
    bool is_kept = false;
    std::byte const* from = nullptr;
    std::vector<std::byte> kept;
  };
  Message(int from_rank, int to_rank, int number, std::size_t size)
      : source(from_rank), target(to_rank), id(number), bytes(size) {
    for (Epoch& e : epochs) e.kept.resize(size);
  }
  int source, target, id;
  std::size_t bytes;
  std::array<Epoch, 2> epochs;  // even and odd: a source may be one ahead
  // Of the source.
  bool offered = false;
  std::uint32_t last = 0;
  unsigned sent_in = 0;  // polls, once its bytes have been taken
  bool is_rendezvous = false;
  // Of the target.
  std::byte* to = nullptr;
  bool awaited = false, arrived = false;
  std::uint32_t wanted = 0;
  unsigned received_in = 0;
};

Wires::Wires(int ranks, unsigned seed) : random_(seed), sums_(static_cast<std::size_t>(ranks)) {}
Wires::~Wires() = default;

Wires::Message& Wires::message(int source, int target, int id, std::size_t bytes) {
  std::lock_guard const lock(guard_);
  for (auto const& known : all_)
    if (known->source == source && known->target == target && known->id == id) return *known;
  return *all_.emplace_back(std::make_unique<Message>(source, target, id, bytes));
}

unsigned Wires::some_polls() { return static_cast<unsigned>(random_() % 4); }

bool Wires::offer(Message& m, std::byte const* from, std::uint32_t epoch) {
  std::lock_guard const lock(guard_);
  if (m.offered) return false;
  m.offered = true;
  m.last = epoch;
  m.is_rendezvous = random_() % 2 == 0;
  Message::Epoch& e = m.epochs[epoch & 1u];
  e.number = epoch;
  e.under_way = true;
  e.is_kept = false;
  e.from = from;
  ++under_way_;
  return true;
}

bool Wires::await(Message& m, std::byte* to, std::uint32_t epoch) {
  std::lock_guard const lock(guard_);
  if (m.awaited) return false;
  m.awaited = true;
  m.arrived = false;
  m.to = to;
  m.wanted = epoch;
  return true;
}

// One step of one epoch of a message, where there is one to do.
bool Wires::move(Message& m) {
  for (std::uint32_t const parity : {m.wanted & 1u, ~m.wanted & 1u}) {
    Message::Epoch& e = m.epochs[parity];
    if (!e.under_way) continue;
    bool const fits = m.awaited && !m.arrived && m.wanted == e.number;
    if (!fits && (e.is_kept || m.is_rendezvous)) continue;
    std::byte const* const from = e.is_kept ? e.kept.data() : e.from;
    if (m.bytes != 0) std::memcpy(fits ? m.to : e.kept.data(), from, m.bytes);
    if (!e.is_kept) m.sent_in = some_polls();
    e.is_kept = true;
    if (!fits) return true;
    e.under_way = false;
    m.arrived = true;
    m.received_in = some_polls();
    --under_way_;
    return true;
  }
  return false;
}

void Wires::move_something() {
  if (under_way_ == 0 || random_() % 2 == 0) return;
  std::size_t const first = random_() % all_.size();
  for (std::size_t k = 0; k < all_.size(); ++k)
    if (move(*all_[(first + k) % all_.size()])) return;
}

bool Wires::sent(Message& m) {
  std::lock_guard const lock(guard_);
  move_something();
  Message::Epoch const& e = m.epochs[m.last & 1u];
  bool const taken = !e.under_way || e.is_kept;
  if (!m.offered) return true;
  if (!taken || m.sent_in-- != 0) return false;
  m.offered = false;
  return true;
}

bool Wires::received(Message& m) {
  std::lock_guard const lock(guard_);
  move_something();
  if (!m.awaited) return true;
  if (!m.arrived || m.received_in-- != 0) return false;
  m.awaited = false;
  return true;
}

void Wires::withdraw(Message& m, bool source) {
  std::lock_guard const lock(guard_);
  if (!source) {
    m.awaited = false;
    return;
  }
  m.offered = false;
  for (Message::Epoch& e : m.epochs) {
    if (!e.under_way || e.is_kept) continue;
    e.under_way = false;
    --under_way_;
  }
}

void Wires::contribute(std::size_t rank, std::span<double const> mine) {
  std::lock_guard const lock(guard_);
  Sums& s = sums_[rank];
  ++s.last;
  std::copy(mine.begin(), mine.end(), s.value[s.last & 1u].begin());
  s.number[s.last & 1u] = s.last;
  s.told_in = some_polls();
}

bool Wires::collected(std::size_t rank, std::size_t width, std::span<double> all) {
  std::lock_guard const lock(guard_);
  move_something();
  Sums& mine = sums_[rank];
  std::size_t const parity = mine.last & 1u;
  for (Sums const& s : sums_)
    if (s.number[parity] != mine.last) return false;
  if (mine.told_in != 0) {
    --mine.told_in;
    return false;
  }
  for (std::size_t r = 0; r < sums_.size(); ++r)
    std::copy_n(sums_[r].value[parity].begin(), width, all.begin() + static_cast<std::ptrdiff_t>(r * width));
  return true;
}

}  // namespace hostless::loopback
