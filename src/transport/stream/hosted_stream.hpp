#pragma once
// Halos and sums by jobs of the host program, for which kernels on the stream ask: one stores a word that the
// host reads, another waits for the answer. Nobody waits for a stream in between, so what is queued may run
// ahead of the host, be recorded in a graph and replayed. The thread that launches and waits does the jobs,
// by starting messages and polling: no other one calls a transport. Where that cannot be, the host waits for
// the stream in every exchange and sum: ranks that share a GPU, of which one's kernel that waits could keep
// another's from it; launches that return when their kernel has ended, as debuggers have them; and where
// HOSTLESS_GPU_HOST_WAITS is 1.

#include <array>
#include <string>

#include "transport/stream/limits.hpp"
#include "transport/stream/requests.hpp"
#include "transport/stream/stream_endpoint.hpp"

namespace hostless::gpu {

struct AwaitCall;

/// `count` numbers between device memory and pinned memory as kernels see it.
struct BroughtPart {
  double const* from = nullptr;
  double* to = nullptr;
  std::int64_t count = 0;
};

class HostedStream : public StreamEndpoint {
 public:
  double const* gather(StreamQueue& queue, double const* mine, int count) override;
  bool host_may_wait() const override { return true; }
  bool is_recorded() const override { return graphs_wait_; }
  void connect(UniqueId const&, std::byte* field) override;
  bool is_connected() const override { return is_connected_; }
  void abort() noexcept override;
  void end_waits() noexcept override;
  Served poll() override;
  std::int64_t bytes() const override { return static_cast<std::int64_t>(everyone_.bytes()); }
  bool guards_hold() const override {
    return everyone_.guards_hold() && asked_.guards_hold() && arrived_.guards_hold() && lost_.guards_hold();
  }

 protected:
  /// Errors  usage  a plan of more rounds than there are jobs
  explicit HostedStream(StreamSetup const& setup);
  /// Carries a round, and waits for it. False: a rank is lost.
  bool exchange(int round) const { return host_.carry(round); }
  /// Once all ranks have met, before anything is queued.
  virtual void try_it() {}
  /// Queue: exchange(round) when all before it is done; and what waits until it was, then brings `parts`.
  void ask_exchange(StreamQueue& queue, int round) { ask(queue, round, {}); }
  void await_exchange(StreamQueue& queue, std::array<BroughtPart, 2> const& parts = {});
  int rank() const { return rank_; }
  std::string const& library() const { return host_.library; }
  bool waits_on_gpu() const override { return kernels_wait_; }
  bool failed() override { return told_.host() != 0; }

 private:
  bool launch_returns(bool recorded);
  AwaitCall await_call(double longest_s) const;
  void ask(StreamQueue& queue, int job, BroughtPart const& said);
  void await_what_is_sent(HOSTLESS_GPU(Stream_t) stream);
  MessageState begin_job(int job);
  bool is_lost() const { return ended_.host() != 0; }
  void clear();

  HostMessaging const& host_;
  int rank_;
  bool is_part_;  // of a composite
  Array<double> everyone_;
  Pinned<double> mine_, all_;
  Mapped<std::uint64_t> request_, answer_;
  Mapped<std::uint32_t> ended_, told_;
  Array<std::uint64_t> asked_, arrived_;
  Array<std::uint32_t> lost_;
  double hertz_;
  Requests requests_;
  bool kernels_wait_ = false, graphs_wait_ = false, is_connected_ = false, is_under_way_ = false;
};

}  // namespace hostless::gpu
