#pragma once
// What a solve's phases exchange on a stream: ghosts of a gathered fp64 field, and parts of sums.

#include <vector>

#include "exchange/gpu/item_list.hpp"
#include "transport/stream/stream_endpoint.hpp"

namespace hostless::gpu {

/// Rounds of messages over an endpoint: packed, sent, awaited, unpacked. All ranks call it equally often.
class SolverExchange {
 public:
  /// rounds: those that the endpoint's setup was made from. staging: items that are passed on.
  SolverExchange(StreamEndpoint& endpoint, std::vector<MessageRound> const& rounds, std::int64_t staging);

  /// Queue what fills the ghosts of a gathered field; `field` is its row 0. The second may have the host wait
  /// for what the first has queued: work that needs no ghosts is queued between them.
  void begin_exchange(StreamQueue& queue, double* field);
  void finish_exchange(StreamQueue& queue, double* field);
  void exchange(StreamQueue& queue, double* field) {
    begin_exchange(queue, field);
    finish_exchange(queue, field);
  }
  /// As StreamEndpoint::gather.
  double const* gather(StreamQueue& queue, double const* mine, int count) {
    return endpoint_.gather(queue, mine, count);
  }
  int ranks() const { return endpoint_.ranks(); }
  std::int64_t bytes() const;
  bool guards_hold() const;

 private:
  struct Round {
    ItemList from, to;
  };
  void send(StreamQueue& queue, int round, double* field);
  void land(StreamQueue& queue, int round, double* field);
  void go_on(StreamQueue& queue, double* field);

  StreamEndpoint& endpoint_;
  std::vector<Round> rounds_;
  Array<double> staging_;
};

}  // namespace hostless::gpu
