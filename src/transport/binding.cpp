#include "transport/binding.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace hostless {
namespace {

struct Announced {
  std::int64_t id;
  std::uint64_t bytes;
  friend bool operator<(Announced const& a, Announced const& b) { return a.id < b.id; }
};
using ByPeer = std::vector<std::vector<Announced>>;

std::string named(std::int64_t id, int source, int target) {
  return "message " + std::to_string(id) + " from rank " + std::to_string(source) + " to rank " +
         std::to_string(target);
}

void add(ByPeer& all, int peer, Announced const& message) {
  if (peer < 0 || static_cast<std::size_t>(peer) >= all.size()) {
    throw Error(ErrorCode::usage, "message " + std::to_string(message.id) + " names rank " +
                                      std::to_string(peer) + " (there are " + std::to_string(all.size()) +
                                      "). Build the plan for this number of ranks.");
  }
  all[static_cast<std::size_t>(peer)].push_back(message);
}

void refuse_twice(std::vector<Announced>& messages, int source, int target) {
  std::sort(messages.begin(), messages.end());
  auto const twice = std::adjacent_find(messages.begin(), messages.end(),
                                        [](auto const& a, auto const& b) { return a.id == b.id; });
  if (twice != messages.end()) {
    throw Error(ErrorCode::usage, named(twice->id, source, target) +
                                      " is there twice (ids tell messages apart). Give each its own id.");
  }
}

// Both lists are sorted by id. The error names the first message that differs.
void compare(std::vector<Announced> const& sent, std::vector<Announced> const& expected, int source,
             int target) {
  for (std::size_t k = 0; k < std::max(sent.size(), expected.size()); ++k) {
    bool const only_sent = k >= expected.size() || (k < sent.size() && sent[k].id < expected[k].id);
    bool const only_expected = k >= sent.size() || (k < expected.size() && expected[k].id < sent[k].id);
    if (only_sent) {
      throw Error(ErrorCode::usage, named(sent[k].id, source, target) +
                                        " has no receiver (the plan is not consistent). Rebuild the plan.");
    }
    if (only_expected) {
      throw Error(ErrorCode::usage, named(expected[k].id, source, target) +
                                        " has no sender (the plan is not consistent). Rebuild the plan.");
    }
    if (sent[k].bytes != expected[k].bytes) {
      throw Error(ErrorCode::usage, named(sent[k].id, source, target) + " is sent as " +
                                        std::to_string(sent[k].bytes) + " bytes and expected as " +
                                        std::to_string(expected[k].bytes) +
                                        " (the two sides must agree). Rebuild the plan.");
    }
  }
}

/// Twice as much, of some thousand ranks, still fits into the numbers that buffers are laid out with.
template <class Message>
void check_total(std::vector<Message> const& messages, char const* way) {
  constexpr std::uint64_t most = std::uint64_t{1} << 47;  // bytes that a process can name
  std::uint64_t left = most;
  for (Message const& message : messages) {
    if (message.bytes > left)
      throw Error(ErrorCode::usage, "message " + std::to_string(message.id) + " has " +
                                        std::to_string(message.bytes) + " bytes, and all that a rank " + way +
                                        " more than " + std::to_string(most) +
                                        " (more than any memory has). Exchange less.");
    left -= message.bytes;
  }
}

int peer_of(Outgoing const& o) { return o.target; }
int peer_of(Incoming const& i) { return i.source; }

template <class Message>
std::vector<int> numbered(std::vector<Message> const& messages, int first) {
  std::vector<std::size_t> order(messages.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(peer_of(messages[a]), messages[a].id) < std::pair(peer_of(messages[b]), messages[b].id);
  });
  std::vector<int> numbers(messages.size());
  int next = first;
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (k > 0 && peer_of(messages[order[k]]) != peer_of(messages[order[k - 1]])) next = first;
    numbers[order[k]] = next++;
  }
  return numbers;
}

}  // namespace

std::vector<int> numbers_by_peer(std::vector<Outgoing> const& out, int first) { return numbered(out, first); }
std::vector<int> numbers_by_peer(std::vector<Incoming> const& in, int first) { return numbered(in, first); }

void check_binding(Group& group, Binding const& binding) {
  auto const ranks = static_cast<std::size_t>(group.size());
  int const me = group.rank();
  ByPeer out(ranks), in(ranks);
  group.together([&] {
    check_total(binding.out, "sends");
    check_total(binding.in, "receives");
    for (Outgoing const& o : binding.out) add(out, o.target, {o.id, o.bytes});
    for (Incoming const& i : binding.in) add(in, i.source, {i.id, i.bytes});
    for (std::size_t r = 0; r < ranks; ++r) {
      refuse_twice(out[r], me, static_cast<int>(r));
      refuse_twice(in[r], static_cast<int>(r), me);
    }
    if (binding.gather_width < 1 || binding.gather_width > most_gather_width) {
      throw Error(ErrorCode::usage, "a sum of " + std::to_string(binding.gather_width) +
                                        " values was asked for (1 to " + std::to_string(most_gather_width) +
                                        " travel together). Split the sum.");
    }
  });
  auto const announced = group.exchange_values(out);
  auto const widths = group.all_gather(binding.gather_width);
  group.together([&] {
    for (std::size_t r = 0; r < ranks; ++r) compare(announced[r], in[r], static_cast<int>(r), me);
    for (int const width : widths) {
      if (width != widths[0]) {
        throw Error(ErrorCode::usage, "the ranks bind sums of " + std::to_string(widths[0]) + " and " +
                                          std::to_string(width) +
                                          " values (all must agree). Bind the same method on every rank.");
      }
    }
  });
}

void check_sum(bool under_way, std::size_t width, int bound) {
  if (under_way) {
    throw Error(ErrorCode::usage,
                "a sum was started before the last one ended (one at a time). Poll for its end first.");
  }
  if (width > static_cast<std::size_t>(bound)) {
    throw Error(ErrorCode::usage, "a sum of " + std::to_string(width) + " values was started (" +
                                      std::to_string(bound) + " were bound). Bind a wider gather.");
  }
}

void refuse_restart(int index, char const* before) {
  throw Error(ErrorCode::usage, "message number " + std::to_string(index) +
                                    " was started again before it was " + before +
                                    " (one epoch at a time). Poll for its end first.");
}

}  // namespace hostless
