#include "bench/bursts.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <set>

#include "base/counted.hpp"
#include "bench/known.hpp"
#include "bench/patient_wait.hpp"

namespace hostless::bench {
namespace {

void check(Burst const& burst, int ranks) {
  std::set<int> seen;
  for (auto const& [first, second] : burst.pairs)
    for (int rank : {first, second})
      if (rank < 0 || rank >= ranks || !seen.insert(rank).second)
        throw Error(ErrorCode::usage,
                    fmt::format("rank {} in two pairs or not among {} (each plays once). Use other pairs.",
                                rank, counted(ranks, "rank")));
  if (burst.bytes == 0 || burst.messages < 1 || burst.pairs.empty())
    throw Error(ErrorCode::usage,
                fmt::format("{}, {} of {} (there is nothing to time). Use 1 or more.",
                            counted(burst.pairs.size(), "pair"), counted(burst.messages, "message"),
                            counted(burst.bytes, "byte")));
}

/// One rank's part of a burst.
class Side {
 public:
  Side(Transport& transport, Burst const& burst, WaitLimits limits) : count_(burst.messages) {
    int const rank = transport.group().rank();
    Binding binding;
    for (std::size_t p = 0; p < burst.pairs.size(); ++p) {
      auto const [first, second] = burst.pairs[p];
      if (rank != first && rank != second) continue;
      begins_ = rank == first;
      plays_ = true;
      bind_pair(binding, static_cast<int>(p), begins_ ? second : first, burst.bytes);
    }
    binding.memory = messages_;
    endpoint_ = transport.bind(binding);
    await_.emplace(*endpoint_, limits, "while ranks answered each other's messages");
  }

  /// There and back; `whole`: every byte is filled and compared, else the first.
  void step(bool whole) {
    if (!plays_) return;
    ++epoch_;
    for (int k = 0; k < count_; ++k) endpoint_->receive(k, epoch_);
    if (begins_) send(whole);
    for (int k = 0; k < count_; ++k) (*await_)([&] { return endpoint_->received(k); });
    look(whole);
    if (!begins_) send(whole);
    for (int k = 0; k < count_; ++k) (*await_)([&] { return endpoint_->sent(k); });
  }

 private:
  struct Messages {
    std::vector<std::vector<std::byte>> out, in;
  };

  void bind_pair(Binding& binding, int pair, int other, std::size_t bytes) {
    for (int k = 0; k < count_; ++k) {
      auto& out = messages_->out.emplace_back(bytes);
      auto& in = messages_->in.emplace_back(bytes);
      int const there = 2 * (pair * count_ + k), back = there + 1;
      binding.out.push_back({begins_ ? there : back, other, out.data(), bytes});
      binding.in.push_back({begins_ ? back : there, other, in.data(), bytes});
    }
  }
  std::uint64_t seed(int message, bool of_who_begins) const {
    return mixed((std::uint64_t{epoch_} << 20 | static_cast<std::uint64_t>(message)) << 1 |
                 (of_who_begins ? 1u : 0u));
  }
  void send(bool whole) {
    for (int k = 0; k < count_; ++k) {
      auto& out = messages_->out[static_cast<std::size_t>(k)];
      if (whole) {
        fill_known(out, seed(k, begins_));
      } else {
        out.front() = static_cast<std::byte>(epoch_ + static_cast<std::uint32_t>(k));
      }
      endpoint_->send(k, epoch_);
    }
  }
  void look(bool whole) const {
    for (int k = 0; k < count_; ++k) {
      auto const& in = messages_->in[static_cast<std::size_t>(k)];
      bool const right = whole ? first_unknown(in, seed(k, !begins_)) == in.size()
                               : in.front() == static_cast<std::byte>(epoch_ + static_cast<std::uint32_t>(k));
      if (!right) throw wrong(fmt::format("message {} of {} bytes brought something else", k, in.size()));
    }
  }

  int count_;
  bool begins_ = false, plays_ = false;
  std::shared_ptr<Messages> messages_ = std::make_shared<Messages>();
  std::unique_ptr<Endpoint> endpoint_;
  std::optional<PatientWait> await_;
  std::uint32_t epoch_ = 0;
};

}  // namespace

Timing time_burst(Transport& transport, Burst const& burst, double seconds, WaitLimits const& limits) {
  Group& group = transport.group();
  group.together([&] { check(burst, group.size()); });
  Side side(transport, burst, limits);
  Protocol protocol;
  protocol.limits = limits;
  protocol.warm_up = 2;
  protocol.steps = 4;
  protocol.repeat = 1;
  double const step_s = time_steps(group, protocol, [&] { side.step(false); }).best();
  protocol.repeat = 5;
  constexpr double most = 20000;
  protocol.steps =
      static_cast<int>(std::clamp(seconds / (protocol.repeat * std::max(step_s, 1e-7)), 1.0, most));
  Timing timing = time_steps(group, protocol, [&] { side.step(false); });
  for (double& step : timing.step_s) step /= 2;
  for (int round = 0; round < 2; ++round) side.step(true);
  return timing;
}

}  // namespace hostless::bench
