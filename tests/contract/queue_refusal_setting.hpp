#pragma once
// What rows of right and wrong use call with.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>

#include "api/guarded.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/queue.h"
#include "queue_home.hpp"

namespace hostless::test {

using R = hostless_request*;

// Of each of two ranks: what rows call with. After every row the two matched pairs must work as before it.
struct Setting {
  explicit Setting(Transport& t) : rank(t.group().rank()), other(rank ^ 1) {
    transport.transport = &t;
    if (queue_home().gpu() >= 0) need(hostless_requests_on_gpu(&transport, queue_home().gpu()));
    need(hostless_queue_init(&queue, name(queue_home().type()), queue_home().stream(0)));
    need(hostless_queue_init(&second, name(queue_home().type()), queue_home().stream(1)));
    need(hostless_send_init(out, short_bytes, HOSTLESS_DATA_BYTE, other, 1, &transport, &send));
    need(hostless_recv_init(in, short_bytes, HOSTLESS_DATA_BYTE, other, 1, &transport, &receive));
    need(hostless_send_init(long_out.data(), long_out.size(), HOSTLESS_DATA_BYTE, other, 2, &transport,
                            &long_send));
    need(hostless_recv_init(long_in.data(), long_in.size(), HOSTLESS_DATA_BYTE, other, 2, &transport,
                            &long_receive));
    R const all[] = {send, receive, long_send, long_receive};
    need(hostless_matchall(4, all));
    need(hostless_send_init(out, 1, HOSTLESS_DATA_BYTE, other, 3, &transport, &unmatched));
    // Under match for as long as its other side, of this rank too, is not offered.
    need(hostless_recv_init(in, 1, HOSTLESS_DATA_BYTE, rank, 4, &transport, &under_match));
    need(hostless_imatch(under_match, &match_of));
    need(hostless_send_init(out, 1, HOSTLESS_DATA_BYTE, other, 5, &transport, &freed));
    R gone = freed;
    need(hostless_request_free(&gone));
    foreign = reinterpret_cast<R>(&rank);
  }
  static void need(int code) {
    if (code != HOSTLESS_OK) throw std::runtime_error(std::string("setting: ") + hostless_last_error());
  }
  // Both pairs once more; false: not as it should be.
  bool works() {
    for (std::size_t k = 0; k < short_bytes; ++k) out[k] = static_cast<unsigned char>(rank + k + round);
    std::fill(long_out.begin(), long_out.end(), static_cast<unsigned char>(rank + round));
    R const receives[] = {receive, long_receive}, sends[] = {send, long_send},
            all[] = {long_send, receive, send, long_receive};
    bool fine = hostless_enqueue_startall(queue, 2, receives) == 0 &&
                hostless_enqueue_startall(queue, 2, sends) == 0 &&
                hostless_enqueue_waitall(queue, 4, all) == 0 && hostless_queue_wait(queue) == 0 &&
                hostless_queue_wait(second) == 0;
    ++round;
    for (R const one : all) {
      hostless_request_status status;
      fine = fine && hostless_request_get_status(one, &status) == 0 && status.starts == round &&
             status.lost == 0;
    }
    for (std::size_t k = 0; k < short_bytes; ++k)
      fine = fine && in[k] == static_cast<unsigned char>(other + k + round - 1);
    for (unsigned char const b : long_in) fine = fine && b == static_cast<unsigned char>(other + round - 1);
    int matched = 1;
    return fine && hostless_is_matched(unmatched, &matched) == 0 && matched == 0 &&
           hostless_is_matched(under_match, &matched) == 0 && matched == 0;
  }

  int rank, other;
  hostless_transport transport;
  hostless_queue *queue = nullptr, *second = nullptr;
  static constexpr std::size_t short_bytes = 64, long_bytes = 100000;
  unsigned char* const out = queue_home().array<unsigned char>(short_bytes).data();
  unsigned char* const in = queue_home().array<unsigned char>(short_bytes).data();
  std::span<unsigned char> const long_out = queue_home().array<unsigned char>(long_bytes);
  std::span<unsigned char> const long_in = queue_home().array<unsigned char>(long_bytes);
  R send = nullptr, receive = nullptr, long_send = nullptr, long_receive = nullptr;
  R unmatched = nullptr, under_match = nullptr, match_of = nullptr, freed = nullptr, foreign = nullptr;
  std::uint64_t round = 0;
};

// `send` and `receive` started on `queue`; `then` is called, then they are waited for there.
template <class Then>
int while_started(Setting& s, Then const& then) {
  R const both[] = {s.receive, s.send};
  Setting::need(hostless_enqueue_startall(s.queue, 2, both));
  int const code = then();
  Setting::need(hostless_enqueue_waitall(s.queue, 2, both));
  Setting::need(hostless_queue_wait(s.queue));
  ++s.round;  // of these two; the long ones follow
  R const others[] = {s.long_receive, s.long_send};
  Setting::need(hostless_enqueue_startall(s.queue, 2, others));
  Setting::need(hostless_enqueue_wait_started(s.queue));
  Setting::need(hostless_queue_wait(s.queue));
  return code;
}
// The same with waits that the queue has not reached when `then` is called.
template <class Then>
int while_unreached(Setting& s, Then const& then) {
  std::atomic<bool> goes_on{false};
  auto const hold = [](void* flag) {
    while (!static_cast<std::atomic<bool>*>(flag)->load()) Backoff::give_core_away();
  };
  // Over MPI without a thread the function is called at once, and would hold this thread.
  bool const held = s.transport.transport->capabilities().threads_as_ranks;
  if (!held) goes_on.store(true);
  Setting::need(hostless_enqueue_function(s.queue, hold, &goes_on));
  R const both[] = {s.receive, s.send}, others[] = {s.long_receive, s.long_send};
  Setting::need(hostless_enqueue_startall(s.queue, 2, both));
  Setting::need(hostless_enqueue_startall(s.queue, 2, others));
  Setting::need(hostless_enqueue_wait_started(s.queue));
  int const code = held ? then() : -1;
  goes_on.store(true);
  Setting::need(hostless_queue_wait(s.queue));
  ++s.round;
  return code;
}

inline int start_two(Setting& s, hostless_queue* q, R a, R b) {
  static_cast<void>(s);
  R const both[] = {a, b};
  return hostless_enqueue_startall(q, 2, both);
}
inline int wait_two(hostless_queue* q, R a, R b) {
  R const both[] = {a, b};
  return hostless_enqueue_waitall(q, 2, both);
}
inline int start_and_wait(hostless_queue* q, std::initializer_list<R> starts,
                          std::initializer_list<R> waits) {
  return hostless_enqueue_start_and_wait(q, starts.size(), starts.begin(), waits.size(), waits.begin());
}
inline int match_two(R a, R b) {
  R const both[] = {a, b};
  return hostless_matchall(2, both);
}

}  // namespace hostless::test
