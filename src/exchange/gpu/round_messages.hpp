#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hostless/base/wait.hpp"
#include "hostless/transport/transport.hpp"
#include "transport/stream/stream_setup.hpp"

namespace hostless {

/// The host's side of an exchange whose messages go between buffers of GPUs: messages of a transport of the
/// host that takes such memory, sums in the host's memory.
class RoundMessages {
 public:
  /// What is passed outlives it.
  RoundMessages(Transport& transport, std::vector<gpu::StreamRound> const& rounds, WaitLimits limits);
  /// Who says that the transport takes device memory (takes_device_memory).
  void name_library(std::string const& who) { calls_.library = who; }
  /// of_round[k]: what goes out of round k and what comes in, packed. Collective over the transport's group;
  /// again after a rank was lost.
  /// Errors  as Transport::bind
  void bind(std::vector<gpu::StreamBuffers> const& of_round);
  gpu::HostMessaging const& calls() const { return calls_; }
  /// Tells the others that this rank carries nothing any more.
  void leave() noexcept;

 private:
  struct Round {
    std::vector<int> out, in;  ///< indices of the binding
  };
  /// Credits to those of whom a round has something, and that get nothing in it.
  template <class Id>
  void credit_what_goes_one_way(Binding& binding, std::size_t round, Id const& id);
  double limit_s();
  void start(int round);
  gpu::MessageState test();
  bool is_complete();
  bool gather(double const* mine, int count, double* all);

  Transport& transport_;
  std::vector<gpu::StreamRound> const& messages_;
  WaitLimits limits_;
  std::vector<Round> rounds_;
  std::unique_ptr<Endpoint> endpoint_;
  std::uint32_t epoch_ = 0;
  Round const* under_way_ = nullptr;  ///< the one under way
  Silence silence_;
  bool is_first_ = true, is_lost_ = false;
  gpu::HostMessaging calls_;
};

}  // namespace hostless
