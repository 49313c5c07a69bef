#include "hostless/exchange/patterns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "hostless/base/error.hpp"
#include "plan/index.hpp"

namespace hostless {
namespace {

constexpr std::int64_t most_items = std::numeric_limits<std::int32_t>::max();

[[noreturn]] void refuse_items(std::string const& what) {
  throw Error(ErrorCode::usage,
              what + " (every item has one owner, every ghost one place). Correct what the ranks pass.");
}

/// Who owns an item, and as which of its own.
struct Home {
  std::int64_t number = 0;
  std::int32_t rank = 0, item = 0;
};

/// The order of a list that tells its numbers apart.
template <class T>
std::vector<std::int32_t> sorted_order(std::span<T const> numbers) {
  std::vector<std::int32_t> order(numbers.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = static_cast<std::int32_t>(k);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return std::pair(numbers[at(a)], a) < std::pair(numbers[at(b)], b);
  });
  return order;
}

void require_numbers(Rank rank, char const* what, std::span<std::int64_t const> numbers) {
  if (static_cast<std::int64_t>(numbers.size()) > most_items)
    refuse_items(fmt::format("rank {}: {} {} items, at most {} fit", rank, numbers.size(), what, most_items));
  for (std::size_t k = 0; k < numbers.size(); ++k)
    if (numbers[k] < 0)
      refuse_items(
          fmt::format("rank {}: {}[{}] is {}, which is no number of an item", rank, what, k, numbers[k]));
  auto const order = sorted_order(numbers);
  for (std::size_t k = 1; k < order.size(); ++k)
    if (numbers[at(order[k])] == numbers[at(order[k - 1])])
      refuse_items(fmt::format("rank {}: {}[{}] and {}[{}] are both item {}", rank, what, order[k - 1], what,
                               order[k], numbers[at(order[k])]));
}

/// Where the part of all numbers that a rank looks after has its items.
class Directory {
 public:
  /// Collective.
  Directory(Group& group, std::span<std::int64_t const> owned) : group_(group) {
    std::vector<std::vector<Home>> told(at(group.size()));
    for (std::size_t i = 0; i < owned.size(); ++i)
      told[at(keeper(owned[i]))].push_back({owned[i], group.rank(), static_cast<std::int32_t>(i)});
    for (auto const& list : group.exchange_values(told))
      homes_.insert(homes_.end(), list.begin(), list.end());
    group.together([&] {
      std::sort(homes_.begin(), homes_.end(), [](Home const& a, Home const& b) {
        return std::pair(a.number, a.rank) < std::pair(b.number, b.rank);
      });
      for (std::size_t k = 1; k < homes_.size(); ++k)
        if (homes_[k].number == homes_[k - 1].number)
          refuse_items(fmt::format("item {} is owned by rank {} and by rank {}", homes_[k].number,
                                   homes_[k - 1].rank, homes_[k].rank));
    });
  }

  /// Collective. [numbers] the home of each; rank -1: nobody's.
  std::vector<Home> find(std::span<std::int64_t const> numbers) const {
    std::vector<std::vector<std::int64_t>> asked(at(group_.size()));
    for (std::int64_t const number : numbers) asked[at(keeper(number))].push_back(number);
    auto const heard = group_.exchange_values(asked);
    std::vector<std::vector<Home>> answers(heard.size());
    for (std::size_t r = 0; r < heard.size(); ++r)
      for (std::int64_t const number : heard[r]) answers[r].push_back(look_up(number));
    auto const told = group_.exchange_values(answers);
    std::vector<std::size_t> next(told.size(), 0);
    std::vector<Home> found;
    for (std::int64_t const number : numbers) {
      auto const from = at(keeper(number));
      found.push_back(told[from][next[from]++]);
    }
    return found;
  }

 private:
  Rank keeper(std::int64_t number) const { return static_cast<Rank>(number % group_.size()); }
  Home look_up(std::int64_t number) const {
    auto const home = std::lower_bound(homes_.begin(), homes_.end(), number,
                                       [](Home const& h, std::int64_t n) { return h.number < n; });
    return home == homes_.end() || home->number != number ? Home{number, -1, 0} : *home;
  }
  Group& group_;
  std::vector<Home> homes_;
};

/// This rank's pattern: asked[r] are the own items that rank r reads, each once.
Pattern pattern_of(std::int64_t owned, std::vector<std::vector<std::int32_t>> const& asked,
                   std::vector<std::int32_t> position) {
  std::vector<std::pair<std::int32_t, Rank>> readers;
  for (std::size_t r = 0; r < asked.size(); ++r)
    for (std::int32_t const item : asked[r]) readers.emplace_back(item, static_cast<Rank>(r));
  std::sort(readers.begin(), readers.end());
  Pattern pattern;
  pattern.owned = owned;
  pattern.first.push_back(0);
  for (std::size_t k = 0; k < readers.size(); ++k) {
    pattern.receiver.push_back(readers[k].second);
    if (k + 1 < readers.size() && readers[k + 1].first == readers[k].first) continue;
    pattern.item.push_back(readers[k].first);
    pattern.first.push_back(static_cast<std::int64_t>(pattern.receiver.size()));
  }
  pattern.position = std::move(position);
  return pattern;
}

template <class T>
void append(Bytes& bytes, std::vector<T> const& values) {
  auto const count = static_cast<std::int64_t>(values.size());
  auto const add = [&](void const* from, std::size_t size) {
    auto const* const begin = static_cast<std::byte const*>(from);
    bytes.insert(bytes.end(), begin, begin + size);
  };
  add(&count, sizeof count);
  if (count > 0) add(values.data(), values.size() * sizeof(T));
}

template <class T>
std::vector<T> taken(Bytes const& bytes, std::size_t& next) {
  std::int64_t count = 0;
  std::memcpy(&count, bytes.data() + next, sizeof count);
  std::vector<T> values(at(count));
  if (count > 0) std::memcpy(values.data(), bytes.data() + next + sizeof count, values.size() * sizeof(T));
  next += sizeof count + values.size() * sizeof(T);
  return values;
}

std::vector<Pattern> of_all_ranks(Group& group, Pattern const& mine) {
  Bytes bytes;
  append(bytes, std::vector<std::int64_t>{mine.owned});
  append(bytes, mine.item);
  append(bytes, mine.first);
  append(bytes, mine.receiver);
  append(bytes, mine.position);
  std::vector<Pattern> patterns;
  for (Bytes const& one : group.all_gather_bytes(bytes)) {
    std::size_t next = 0;
    Pattern pattern;
    pattern.owned = taken<std::int64_t>(one, next).at(0);
    pattern.item = taken<std::int32_t>(one, next);
    pattern.first = taken<std::int64_t>(one, next);
    pattern.receiver = taken<Rank>(one, next);
    pattern.position = taken<std::int32_t>(one, next);
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

void require_lists(Group const& group, std::int64_t owned, std::vector<std::vector<std::int32_t>> const& send,
                   std::vector<std::vector<std::int32_t>> const& receive) {
  Rank const me = group.rank();
  if (send.size() != at(group.size()) || receive.size() != at(group.size()))
    refuse_items(fmt::format("rank {}: {} send lists and {} receive lists for {} ranks", me, send.size(),
                             receive.size(), group.size()));
  if (owned < 0 || owned > most_items)
    refuse_items(fmt::format("rank {}: {} owned items are not in [0, {}]", me, owned, most_items));
  for (std::size_t r = 0; r < send.size(); ++r) {
    auto const order = sorted_order(std::span<std::int32_t const>(send[r]));
    for (std::size_t k = 0; k < order.size(); ++k) {
      std::int32_t const item = send[r][at(order[k])];
      if (item < 0 || item >= owned)
        refuse_items(fmt::format("rank {}: send[{}][{}] is {}, not below the {} owned items", me, r, order[k],
                                 item, owned));
      if (k > 0 && item == send[r][at(order[k - 1])])
        refuse_items(fmt::format("rank {}: send[{}] has item {} twice", me, r, item));
    }
  }
  std::size_t ghosts = 0;
  for (auto const& list : receive) ghosts += list.size();
  std::vector<char> taken_before(ghosts, 0);
  for (std::size_t r = 0; r < receive.size(); ++r)
    for (std::size_t k = 0; k < receive[r].size(); ++k) {
      std::int32_t const ghost = receive[r][k];
      if (ghost < 0 || at(ghost) >= ghosts)
        refuse_items(
            fmt::format("rank {}: receive[{}][{}] is {}, not below the {} ghosts", me, r, k, ghost, ghosts));
      if (taken_before[at(ghost)]++ != 0)
        refuse_items(
            fmt::format("rank {}: receive[{}][{}] is ghost {}, which is received before", me, r, k, ghost));
    }
}

}  // namespace

std::vector<Pattern> patterns_of_ghosts(Group& group, std::span<std::int64_t const> owned,
                                        std::span<std::int64_t const> ghosts) {
  group.together([&] {
    require_numbers(group.rank(), "owned", owned);
    require_numbers(group.rank(), "ghosts", ghosts);
  });
  auto const homes = Directory(group, owned).find(ghosts);
  group.together([&] {
    for (std::size_t g = 0; g < homes.size(); ++g)
      if (homes[g].rank < 0)
        refuse_items(
            fmt::format("rank {}: ghosts[{}] is item {}, which no rank owns", group.rank(), g, ghosts[g]));
  });
  std::vector<std::int32_t> position(homes.size());
  for (std::size_t g = 0; g < position.size(); ++g) position[g] = static_cast<std::int32_t>(g);
  std::sort(position.begin(), position.end(), [&](std::int32_t a, std::int32_t b) {
    return std::pair(homes[at(a)].rank, homes[at(a)].item) < std::pair(homes[at(b)].rank, homes[at(b)].item);
  });
  std::vector<std::vector<std::int32_t>> wanted(at(group.size()));
  for (Home const& home : homes) wanted[at(home.rank)].push_back(home.item);
  auto const asked = group.exchange_values(wanted);
  return of_all_ranks(group, pattern_of(static_cast<std::int64_t>(owned.size()), asked, std::move(position)));
}

std::vector<Pattern> patterns_of_lists(Group& group, std::int64_t owned,
                                       std::vector<std::vector<std::int32_t>> const& send,
                                       std::vector<std::vector<std::int32_t>> const& receive) {
  group.together([&] { require_lists(group, owned, send, receive); });
  auto const come = group.exchange_values(send);
  group.together([&] {
    for (std::size_t r = 0; r < come.size(); ++r)
      if (come[r].size() != receive[r].size())
        refuse_items(fmt::format("rank {} sends {} items to rank {}, which receives {}", r, come[r].size(),
                                 group.rank(), receive[r].size()));
  });
  std::vector<std::int32_t> position;
  for (std::size_t r = 0; r < come.size(); ++r)
    for (std::int32_t const k : sorted_order(std::span<std::int32_t const>(come[r])))
      position.push_back(receive[r][at(k)]);
  return of_all_ranks(group, pattern_of(owned, send, std::move(position)));
}

}  // namespace hostless
