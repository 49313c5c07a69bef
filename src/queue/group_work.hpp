#pragma once
// A queue whose messages a vendor's library (NCCL) moves in groups on a GPU's stream.

#include <set>

#include "queue/stream_work.hpp"

namespace hostless::queue {

class GroupWork final : public StreamWork {
 public:
  using StreamWork::StreamWork;

 private:
  void start(Requests const&) override;
  void wait(Requests const& requests) override;
  void start_and_wait(Requests const&, Requests const& waits) override { wait(waits); }
  bool host_looks() const override { return true; }
  bool looks_lost() override;
  void let_go() override;

  /// Whose groups are on the stream.
  std::set<std::weak_ptr<CommunicatorState>, std::owner_less<>> used_;
  /// What they use: also of requests that their callers have let go.
  std::set<std::shared_ptr<RequestState>> kept_requests_;
  std::set<std::shared_ptr<gpu::GroupRanks>> kept_ranks_;
  bool has_failed_ = false;  ///< a group was refused by the library, or is one of lost requests
};

}  // namespace hostless::queue
