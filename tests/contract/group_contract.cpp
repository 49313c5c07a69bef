// What every group of ranks promises for setting something up.
#include <algorithm>
#include <random>

#include "transport_contract_parts.hpp"

namespace hostless::contract {
namespace {

Bytes bytes_of(std::string const& text) {
  Bytes bytes(text.size());
  std::transform(text.begin(), text.end(), bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

std::vector<std::uint32_t> parcel(int source, int target, std::size_t count) {
  std::vector<std::uint32_t> values(count);
  for (std::size_t k = 0; k < count; ++k) {
    values[k] = static_cast<std::uint32_t>(k * 2654435761u + static_cast<std::size_t>(source * 64 + target));
  }
  return values;
}

}  // namespace

void group_case(Transport& t) {
  Group& g = t.group();
  int const ranks = g.size(), me = g.rank();
  for (int round = 0; round < 30; ++round) {
    auto const all = g.all_gather(std::int64_t{1000} * me + round);
    for (int r = 0; r < ranks; ++r) {
      expect(all[static_cast<std::size_t>(r)] == 1000 * r + round, "all_gather in rank order");
    }
    expect(g.sum(me + 1) == ranks * (ranks + 1) / 2, "sum");
    expect(g.max(me) == ranks - 1 && g.min(me - round) == -round, "max and min");
    expect(g.any(me == ranks - 1) && !g.any(false), "any");
    std::string const word = "from " + std::to_string(round % ranks);
    expect(g.broadcast(me == round % ranks ? bytes_of(word) : Bytes{}, round % ranks) == bytes_of(word),
           "broadcast");
    auto const texts = g.all_gather_bytes(bytes_of(std::string(static_cast<std::size_t>(me), 'x')));
    for (int r = 0; r < ranks; ++r) {
      expect(texts[static_cast<std::size_t>(r)].size() == static_cast<std::size_t>(r), "all_gather_bytes");
    }
    g.barrier();
  }
  expect_error(ErrorCode::usage, "exchange with a buffer too many",
               [&] { g.exchange(std::vector<Bytes>(static_cast<std::size_t>(ranks) + 1)); });
  std::byte const one{};
  std::vector<std::byte> room(static_cast<std::size_t>(ranks) + 1);
  expect_error(ErrorCode::usage, "all_gather_blocks with the wrong room", [&] {
    g.all_gather_blocks({&one, 1}, room);
  });
}

void exchange_case(Transport& t) {
  Group& g = t.group();
  auto const count = [&](int source, int target, unsigned round) {
    std::mt19937 random(static_cast<unsigned>(source * 64 + target) * 100 + round);
    return random() % 3 == 0 ? 0 : static_cast<std::size_t>(random() % 30000);
  };
  for (unsigned round = 0; round < 10; ++round) {
    std::vector<std::vector<std::uint32_t>> to;
    for (int r = 0; r < g.size(); ++r) to.push_back(parcel(g.rank(), r, count(g.rank(), r, round)));
    auto const from = g.exchange_values(to);
    for (int r = 0; r < g.size(); ++r) {
      expect(from[static_cast<std::size_t>(r)] == parcel(r, g.rank(), count(r, g.rank(), round)),
             "exchange from rank " + std::to_string(r));
    }
  }
}

// 5 MB to the next rank: more than any buffer between two ranks holds, and than one piece.
void big_exchange_case(Transport& t) {
  Group& g = t.group();
  int const next = (g.rank() + 1) % g.size(), before = (g.rank() + g.size() - 1) % g.size();
  std::size_t const count = 1250001;
  std::vector<std::vector<std::uint32_t>> to(static_cast<std::size_t>(g.size()));
  to[static_cast<std::size_t>(next)] = parcel(g.rank(), next, count);
  auto const from = g.exchange_values(to);
  expect(from[static_cast<std::size_t>(before)] == parcel(before, g.rank(), count), "a large parcel");
  std::vector<std::uint32_t> const mine = parcel(g.rank(), 0, count);
  std::vector<std::uint32_t> all(count * static_cast<std::size_t>(g.size()));
  g.all_gather_blocks(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  auto const last = std::span(all).last(count);
  auto const expected = parcel(g.size() - 1, 0, count);
  expect(std::equal(last.begin(), last.end(), expected.begin()), "a large gathered block");
}

void together_case(Transport& t) {
  Group& g = t.group();
  g.together([] {});
  auto const text = expect_error(ErrorCode::bad_input, "one rank's error is everybody's", [&] {
    g.together([&] {
      if (g.rank() == g.size() / 2) throw Error(ErrorCode::bad_input, "A.mtx:3: rubbish.");
    });
  });
  expect(text == "A.mtx:3: rubbish.", "its text too: " + text);
  auto const lowest = expect_error(ErrorCode::usage, "the lowest rank speaks", [&] {
    g.together([&] { throw Error(ErrorCode::usage, "rank " + std::to_string(g.rank())); });
  });
  expect(lowest == "rank 0", "the lowest rank speaks, not " + lowest);
  expect_error(ErrorCode::environment, "out of memory", [&] { g.together([] { throw std::bad_alloc(); }); });
  auto const foreign = expect_error(ErrorCode::environment, "an exception that is not ours", [&] {
    g.together([&] {
      if (g.rank() == g.size() - 1) throw std::out_of_range("at()");
    });
  });
  expect(foreign == "at()", "its text too: " + foreign);
  expect_error(ErrorCode::environment, "something that is no exception",
               [&] { g.together([] { throw 42; }); });
  g.barrier();
}

}  // namespace hostless::contract
