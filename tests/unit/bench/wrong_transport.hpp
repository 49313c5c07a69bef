#pragma once
// What measurements are tried on: transports that are right, and such that are wrong in one way.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/timing.hpp"
#include "hostless/base/error.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless::bench {

enum class Fault { none, late_message, other_message, other_middle, other_sum, silence };

class WrongEndpoint final : public Endpoint {
 public:
  WrongEndpoint(std::unique_ptr<Endpoint> right, Binding binding, Fault fault, int ranks)
      : right_(std::move(right)), binding_(std::move(binding)), fault_(fault), ranks_(ranks) {}
  void send(int index, std::uint32_t epoch) override {
    if (fault_ != Fault::silence) right_->send(index, epoch);
  }
  void receive(int index, std::uint32_t epoch) override { right_->receive(index, epoch); }
  bool sent(int index) override { return right_->sent(index); }
  bool received(int index) override {
    Incoming const& in = binding_.in[static_cast<std::size_t>(index)];
    std::vector<std::byte> const before(in.to, in.to + in.bytes);
    if (!right_->received(index)) return false;
    if (in.bytes == 0) return true;
    if (fault_ == Fault::other_middle) in.to[in.bytes / 2] ^= std::byte{1};
    if (fault_ == Fault::other_message) in.to[in.bytes - 1] = std::byte{0xee};
    if (fault_ == Fault::late_message) std::copy(before.begin(), before.end(), in.to);  // what was there
    return true;
  }
  void gather(std::span<double const> mine) override { right_->gather(mine); }
  bool gathered(std::span<double> all) override {
    if (!right_->gathered(all)) return false;
    if (fault_ == Fault::other_sum) all[0] += 0.5;
    return true;
  }
  void all_reduce(std::span<double const> mine) override {
    if (fault_ != Fault::silence) right_->gather(mine);
  }
  bool all_reduced(std::span<double> sums) override {
    std::vector<double> all(sums.size() * static_cast<std::size_t>(ranks_));
    if (fault_ == Fault::silence || !gathered(all)) return false;
    for (std::size_t k = 0; k < sums.size(); ++k) {
      sums[k] = 0;
      for (std::size_t at = k; at < all.size(); at += sums.size()) sums[k] += all[at];
    }
    return true;
  }
  bool peer_left() override { return right_->peer_left(); }
  void leave() noexcept override { right_->leave(); }

 private:
  std::unique_ptr<Endpoint> right_;
  Binding binding_;
  Fault fault_;
  int ranks_;
};

/// A transport that alters or swallows what passes. It has what looks like a library's sum.
class WrongTransport final : public Transport {
 public:
  WrongTransport(Transport& right, Fault fault) : right_(right), fault_(fault) {}
  Capabilities capabilities() const override {
    Capabilities can = right_.capabilities();
    can.all_reduce = Support::adapted;
    return can;
  }
  Group& group() override { return right_.group(); }
  std::unique_ptr<Endpoint> bind(Binding const& binding) override {
    return std::make_unique<WrongEndpoint>(right_.bind(binding), binding, fault_, group().size());
  }

 private:
  Transport& right_;
  Fault fault_;
};

inline Protocol brief() {
  Protocol protocol;
  protocol.warm_up = 2;
  protocol.steps = 20;
  protocol.repeat = 3;
  protocol.limits = {30, 30};
  return protocol;
}

inline void expect_times(Timing const& timing, Protocol const& protocol) {
  ASSERT_EQ(timing.step_s.size(), static_cast<std::size_t>(protocol.repeat));
  EXPECT_GT(timing.best(), 0);
  EXPECT_LE(timing.best(), timing.median());
  EXPECT_LE(timing.median(), timing.worst());
}

// Runs on threads; what `body` throws must be such an error with these words.
inline void expect_error(int ranks, ErrorCode code, std::string const& words, Fault fault,
                         std::function<void(Transport&)> const& body) {
  try {
    run_with_threads_transport(ranks, [&](Transport& transport) {
      WrongTransport wrong(transport, fault);
      body(wrong);
    });
    FAIL() << "nothing was thrown: " << words;
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
  }
}

}  // namespace hostless::bench
