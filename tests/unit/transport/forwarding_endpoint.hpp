#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "hostless/transport/transport.hpp"

namespace hostless::test {

/// Hands everything on to another endpoint; tests override what they watch or alter.
class ForwardingEndpoint : public Endpoint {
 public:
  explicit ForwardingEndpoint(std::unique_ptr<Endpoint> inner) : inner_(std::move(inner)) {}
  void send(int index, std::uint32_t epoch) override { inner_->send(index, epoch); }
  void receive(int index, std::uint32_t epoch) override { inner_->receive(index, epoch); }
  bool sent(int index) override { return inner_->sent(index); }
  bool received(int index) override { return inner_->received(index); }
  void gather(std::span<double const> mine) override { inner_->gather(mine); }
  bool gathered(std::span<double> all) override { return inner_->gathered(all); }
  void all_reduce(std::span<double const> mine) override { inner_->all_reduce(mine); }
  bool all_reduced(std::span<double> sums) override { return inner_->all_reduced(sums); }
  bool peer_left() override { return inner_->peer_left(); }
  void leave() noexcept override { inner_->leave(); }

 private:
  std::unique_ptr<Endpoint> inner_;
};

}  // namespace hostless::test
