#pragma once
// What rows of right and wrong use call with.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "api/guarded.hpp"
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

}  // namespace hostless::test
