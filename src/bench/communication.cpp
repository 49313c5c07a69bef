#include "bench/communication.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "hostless/base/wait.hpp"
#include "hostless/plan/routes.hpp"

namespace hostless::bench {
namespace {

[[noreturn]] void lose(char const* doing) {
  throw Error(ErrorCode::peer_lost, fmt::format("a rank was lost {} (nothing more can be timed).", doing));
}

Error wrong(std::string const& what) {
  return Error(ErrorCode::environment,
               what + " (the transport does not keep its promise). Report it with `hostless doctor`.");
}

void check_ping_pong(PingPong const& what, int ranks) {
  auto const is_rank = [&](int rank) { return rank >= 0 && rank < ranks; };
  if (!is_rank(what.first) || !is_rank(what.second) || what.first == what.second)
    throw Error(ErrorCode::usage, fmt::format("ranks {} and {} as a pair among {} ranks (two different ones "
                                              "answer each other). Use more ranks, or another pair.",
                                              what.first, what.second, ranks));
  for (std::size_t const bytes : what.bytes)
    if (bytes == 0) throw Error(ErrorCode::usage, "messages of 0 bytes (they bring nothing). Use 1 or more.");
}

/// One of the two ranks: message k of the plan has bytes[k] bytes, there and back.
class Player {
 public:
  Player(Transport& transport, PingPong const& what, WaitLimits limits)
      : begins_(transport.group().rank() == what.first), limits_(limits) {
    Binding binding;
    int const rank = transport.group().rank();
    if (begins_ || rank == what.second) {
      int const other = begins_ ? what.second : what.first;
      for (std::size_t k = 0; k < what.bytes.size(); ++k) {
        out_.emplace_back(what.bytes[k]);
        in_.emplace_back(what.bytes[k]);
        int const there = static_cast<int>(2 * k), back = there + 1;
        binding.out.push_back({begins_ ? there : back, other, out_[k].data(), what.bytes[k]});
        binding.in.push_back({begins_ ? back : there, other, in_[k].data(), what.bytes[k]});
      }
    }
    binding.memory = messages_;
    endpoint_ = transport.bind(binding);
  }
  bool plays() const { return !out_.empty(); }

  /// There and back. Each message waits for the answer to the one before, so its target is free.
  void step(std::size_t k) {
    ++epoch_;
    endpoint_->receive(static_cast<int>(k), epoch_);
    if (begins_) send(k, epoch_);
    await([&] { return endpoint_->received(static_cast<int>(k)); });
    if (marks(in_[k]) != marks_of(epoch_, in_[k].size()))
      throw wrong(fmt::format("message {} of {} bytes brought another one's mark", epoch_, in_[k].size()));
    if (!begins_) send(k, epoch_);
    await([&] { return endpoint_->sent(static_cast<int>(k)); });
  }

 private:
  using Marks = std::array<unsigned char, 2>;
  // Neighbours in time differ, and a message of one byte has one mark.
  static Marks marks_of(std::uint32_t epoch, std::size_t bytes) {
    auto const first = static_cast<unsigned char>(epoch % 251),
               last = static_cast<unsigned char>(first ^ 0x5a);
    return bytes == 1 ? Marks{last, last} : Marks{first, last};
  }
  static Marks marks(std::vector<std::byte> const& message) {
    return {static_cast<unsigned char>(message.front()), static_cast<unsigned char>(message.back())};
  }
  void send(std::size_t k, std::uint32_t epoch) {
    Marks const mark = marks_of(epoch, out_[k].size());
    out_[k].front() = static_cast<std::byte>(mark[0]);
    out_[k].back() = static_cast<std::byte>(mark[1]);
    endpoint_->send(static_cast<int>(k), epoch);
  }
  template <class Ready>
  void await(Ready&& ready) {
    if (ready()) return;
    double const seconds = waited_before_ ? limits_.later_s : limits_.first_s;
    waited_before_ = true;
    if (wait_for(
            ready, [&] { return endpoint_->peer_left(); }, Deadline::after(seconds)) == Waited::done)
      return;
    endpoint_->leave();
    lose("while two ranks answered each other");
  }

  bool begins_, waited_before_ = false;
  WaitLimits limits_;
  struct Messages {
    std::vector<std::vector<std::byte>> out, in;
  };
  std::shared_ptr<Messages> messages_ = std::make_shared<Messages>();  // a late one may come after a loss
  std::vector<std::vector<std::byte>>&out_ = messages_->out, &in_ = messages_->in;
  std::unique_ptr<Endpoint> endpoint_;
  std::uint32_t epoch_ = 0;
};

/// Sums of known values through an Exchange; each rank gives its number and one.
class KnownSums {
 public:
  KnownSums(Exchange& exchange, ExchangePlan const& plan, int values) : exchange_(exchange) {
    for (int k = 0; k < values; ++k) {
      mine_.push_back(static_cast<double>((plan.rank + 1) * (k + 1)));
      expected_.push_back(static_cast<double>(std::int64_t{plan.ranks} * (plan.ranks + 1) / 2 * (k + 1)));
    }
    totals_.resize(mine_.size());
  }
  void step() {
    exchange_.begin_sum(mine_);
    if (!exchange_.finish_sum(totals_)) lose("in a sum over all ranks");
    if (totals_ != expected_)
      throw wrong(fmt::format("a sum over ranks is {} instead of {}", totals_[0], expected_[0]));
  }

 private:
  Exchange& exchange_;
  std::vector<double> mine_, expected_, totals_;
};

// A plan without items: sums are all that its exchange can do.
ExchangePlan plan_of_sums(Group const& group) {
  Pattern nothing;
  nothing.first = {0};
  std::vector<Pattern> const patterns(static_cast<std::size_t>(group.size()), nothing);
  return make_plan(Route::direct, patterns, NodeMap::blocks(group.size(), group.size()), group.rank());
}

}  // namespace

int steps_of(std::size_t bytes, int asked) {
  constexpr std::size_t most_bytes = std::size_t{64} << 20, least = 8;
  return static_cast<int>(std::min(static_cast<std::size_t>(asked), std::max(least, most_bytes / bytes)));
}

std::vector<PingPongTiming> ping_pong(Transport& transport, PingPong const& what, Protocol const& protocol) {
  Group& group = transport.group();
  group.together([&] { check_ping_pong(what, group.size()); });
  Player player(transport, what, protocol.limits);
  std::vector<PingPongTiming> all;
  for (std::size_t k = 0; k < what.bytes.size(); ++k) {
    Protocol mine = protocol;
    mine.steps = steps_of(what.bytes[k], protocol.steps);
    auto const step = [&] {
      if (player.plays()) player.step(k);
    };
    PingPongTiming& timing = all.emplace_back();
    timing.bytes = what.bytes[k];
    timing.steps = mine.steps;
    timing.one_way = time_steps(group, mine, step);
    for (double& seconds : timing.one_way.step_s) seconds /= 2;
  }
  return all;
}

HaloTiming halo(Transport& transport, ExchangePlan const& plan, Protocol const& protocol) {
  Group& group = transport.group();
  auto const owner =
      std::make_shared<std::vector<double>>(static_cast<std::size_t>(plan.owned + plan.ghosts), -1.0);
  std::vector<double>& vector = *owner;
  double* const own = vector.data() + plan.ghosts_below;
  Exchange exchange(transport, plan, own, Reduction::ordered, protocol.limits, owner);
  KnownSums sums(exchange, plan, 1);
  auto const step = [&] {
    exchange.start();
    if (!exchange.wait()) lose("in an exchange");
    sums.step();
  };
  HaloTiming timing;
  timing.step = time_steps(group, protocol, step);
  for (int round = 1; round <= 4; ++round) {  // both parities of epochs, twice
    std::fill_n(own, plan.owned, round);
    step();
    for (double const value : vector)
      if (value != round) throw wrong(fmt::format("a ghost is {} instead of {}", value, round));
  }
  timing.sum_alone = time_steps(group, protocol, [&] { sums.step(); });
  return timing;
}

Timing sum(Transport& transport, int values, Reduction reduction, Protocol const& protocol) {
  Group& group = transport.group();
  ExchangePlan const plan = plan_of_sums(group);
  group.together([&] {
    if (values < 1 || values > Exchange::widest_sum)
      throw Error(ErrorCode::usage,
                  fmt::format("sums of {} values (one carries 1 to {}).", values, Exchange::widest_sum));
    Capabilities const can = transport.capabilities();
    if (reduction == Reduction::fast && can.all_reduce == Support::absent)
      throw Error(ErrorCode::usage,
                  fmt::format("the {} transport has no library all-reduce (its gather is the fast way). Use "
                              "reduction ordered.",
                              can.transport));
  });
  Exchange exchange(transport, plan, nullptr, reduction, protocol.limits);
  KnownSums sums(exchange, plan, values);
  return time_steps(group, protocol, [&] { sums.step(); });
}

}  // namespace hostless::bench
