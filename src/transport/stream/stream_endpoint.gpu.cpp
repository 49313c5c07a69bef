#include "transport/stream/stream_endpoint.hpp"

#include "hostless/base/wait.hpp"

namespace hostless::gpu {

StreamEndpoint::Served StreamEndpoint::serve() {
  Served served = poll();
  for (Backoff backoff; served == Served::under_way; served = poll()) backoff.pause();
  return served;
}

bool StreamEndpoint::wait(Stream const& stream) {
  double const limit_s = next_limit_s();
  if (!waits_on_gpu()) {
    stream.wait();
    return true;
  }
  Countdown countdown(Deadline::after(limit_s));
  constexpr int polls_between_looks = 64, requests_a_poll = 16;  // to ask the driver takes a microsecond
  for (int polls = 1; !stream.done(); ++polls) {
    for (int k = 0; k < requests_a_poll; ++k) {
      Served const served = serve();
      if (served == Served::lost) return false;
      if (served == Served::something)
        countdown = Countdown(Deadline::after(later_s_));  // it may have waited until now
    }
    if (polls % polls_between_looks != 0) continue;
    if (failed()) return false;
    if (countdown.is_over()) return stream.done() && !failed();
    Backoff::give_core_away();
  }
  return !failed();  // what waited may have given up by itself
}

}  // namespace hostless::gpu
