#include "bench/communication.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>

#include "base/counted.hpp"
#include "bench/known.hpp"
#include "bench/patient_wait.hpp"
#include "hostless/plan/routes.hpp"

namespace hostless::bench {
namespace {

/// One of the two ranks: message k of the plan has bytes[k] bytes, there and back.
class Player {
 public:
  Player(Transport& transport, PingPong const& what, WaitLimits limits)
      : begins_(transport.group().rank() == what.first), memory_(what.memory) {
    Binding binding;
    int const rank = transport.group().rank();
    if (begins_ || rank == what.second) {
      int const other = begins_ ? what.second : what.first;
      for (std::size_t k = 0; k < what.bytes.size(); ++k) {
        out_.emplace_back(what.bytes[k]);
        in_.emplace_back(what.bytes[k]);
        int const there = static_cast<int>(2 * k), back = there + 1;
        std::byte *from = out_[k].data(), *to = in_[k].data();
        if (memory_ != nullptr) from = sent_.emplace_back(memory_->take(what.bytes[k]));
        if (memory_ != nullptr) to = come_.emplace_back(memory_->take(what.bytes[k]));
        binding.out.push_back({begins_ ? there : back, other, from, what.bytes[k]});
        binding.in.push_back({begins_ ? back : there, other, to, what.bytes[k]});
      }
    }
    binding.memory = messages_;
    endpoint_ = transport.bind(binding);
    await_.emplace(*endpoint_, limits, "while two ranks answered each other");
  }
  bool plays() const { return !out_.empty(); }

  /// There and back. Each message waits for the answer to the one before, so its target is free.
  void step(std::size_t k) {
    bool const is_marked = memory_ == nullptr;  // a copy to a GPU takes longer than a message
    exchange(
        k,
        [&] {
          if (is_marked) mark(k);
        },
        [&] {
          if (is_marked && marks(in_[k]) != marks_of(epoch_, in_[k].size()))
            throw wrong(
                fmt::format("message {} of {} bytes brought another one's mark", epoch_, in_[k].size()));
        });
  }
  /// The same with bytes that are all of this message alone, each of which is looked at.
  void prove(std::size_t k) {
    exchange(
        k,
        [&] {
          fill_known(out_[k], seed_of(begins_));
          if (memory_ != nullptr) memory_->put(sent_[k], out_[k].data(), out_[k].size());
        },
        [&] {
          if (memory_ != nullptr) memory_->get(in_[k].data(), come_[k], in_[k].size());
          std::size_t const at = first_unknown(in_[k], seed_of(!begins_));
          if (at < in_[k].size())
            throw wrong(
                fmt::format("message {} of {} bytes came with another byte {}", epoch_, in_[k].size(), at));
        });
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
  void mark(std::size_t k) {
    Marks const marks = marks_of(epoch_, out_[k].size());
    out_[k].front() = static_cast<std::byte>(marks[0]);
    out_[k].back() = static_cast<std::byte>(marks[1]);
  }
  std::uint64_t seed_of(bool of_who_begins) const {
    return mixed(std::uint64_t{epoch_} << 1 | (of_who_begins ? 1u : 0u));
  }
  template <class Fill, class Look>
  void exchange(std::size_t k, Fill const& fill, Look const& look) {
    int const index = static_cast<int>(k);
    auto const send = [&] {
      fill();
      endpoint_->send(index, epoch_);
    };
    ++epoch_;
    endpoint_->receive(index, epoch_);
    if (begins_) send();
    (*await_)([&] { return endpoint_->received(index); });
    look();
    if (!begins_) send();
    (*await_)([&] { return endpoint_->sent(index); });
  }

  bool begins_;
  gpu::Workbench* memory_;
  std::vector<std::byte*> sent_, come_;  // of its memory
  struct Messages {
    std::vector<std::vector<std::byte>> out, in;
  };
  std::shared_ptr<Messages> messages_ = std::make_shared<Messages>();  // a late one may come after a loss
  std::vector<std::vector<std::byte>>&out_ = messages_->out, &in_ = messages_->in;
  std::unique_ptr<Endpoint> endpoint_;
  std::optional<PatientWait> await_;
  std::uint32_t epoch_ = 0;
};

// A plan without items: sums are all that its exchange can do.
ExchangePlan plan_of_sums(Group const& group) {
  Pattern nothing;
  nothing.first = {0};
  std::vector<Pattern> const patterns(static_cast<std::size_t>(group.size()), nothing);
  return make_plan(Route::direct, patterns, NodeMap::blocks(group.size(), group.size()), group.rank());
}

void require_library_sum(Transport& transport) {
  Capabilities const can = transport.capabilities();
  if (can.all_reduce == Support::absent)
    throw Error(ErrorCode::usage,
                fmt::format("the {} transport has no library all-reduce (its gather is the fast way). Use "
                            "reduction ordered.",
                            can.transport));
}

}  // namespace

void check_ping_pong(PingPong const& what, int ranks) {
  auto const is_rank = [&](int rank) { return rank >= 0 && rank < ranks; };
  if (!is_rank(what.first) || !is_rank(what.second) || what.first == what.second)
    throw Error(ErrorCode::usage, fmt::format("ranks {} and {} as a pair among {} (two different ones "
                                              "answer each other). Use more ranks, or another pair.",
                                              what.first, what.second, counted(ranks, "rank")));
  for (std::size_t const bytes : what.bytes)
    if (bytes == 0) throw Error(ErrorCode::usage, "messages of 0 bytes (they bring nothing). Use 1 or more.");
}

void check_sum_width(int values) {
  if (values < 1 || values > widest_sum)
    throw Error(ErrorCode::usage,
                fmt::format("sums of {} (1 to {} are timed).", counted(values, "value"), widest_sum));
}

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
    for (int round = 0; round < 4 && player.plays(); ++round) player.prove(k);  // both parities, twice
  }
  return all;
}

Timing sum(Transport& transport, int values, Reduction reduction, Protocol const& protocol) {
  Group& group = transport.group();
  ExchangePlan const plan = plan_of_sums(group);
  group.together([&] {
    check_sum_width(values);
    if (reduction == Reduction::fast) require_library_sum(transport);
  });
  Exchange exchange(transport, plan, nullptr, reduction, protocol.limits);
  KnownSums sums(group.rank(), group.size(), values);
  return time_steps(group, protocol, [&] { sums.step(exchange); });
}

Timing library_sum(Transport& transport, int values, Protocol const& protocol) {
  Group& group = transport.group();
  group.together([&] {
    check_sum_width(values);
    require_library_sum(transport);
  });
  Binding binding;
  binding.gather_width = values;
  auto const endpoint = transport.bind(binding);
  PatientWait wait(*endpoint, protocol.limits, "in a sum of the library over all ranks");
  KnownSums sums(group.rank(), group.size(), values);
  return time_steps(group, protocol, [&] {
    endpoint->all_reduce(sums.mine());
    wait([&] { return endpoint->all_reduced(sums.totals()); });
    sums.check();
  });
}

}  // namespace hostless::bench
