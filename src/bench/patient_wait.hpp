#pragma once

#include "bench/known.hpp"
#include "hostless/base/deadline.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless::bench {

/// Polls of an endpoint that end by a deadline, as those of an exchange do.
class PatientWait {
 public:
  PatientWait(Endpoint& endpoint, WaitLimits limits, char const* doing)
      : endpoint_(endpoint), limits_(limits), doing_(doing) {}
  template <class Ready>
  void operator()(Ready&& ready) {
    if (ready()) return;
    double const seconds = waited_before_ ? limits_.later_s : limits_.first_s;
    waited_before_ = true;
    if (wait_for(
            ready, [&] { return endpoint_.peer_left(); }, Deadline::after(seconds)) == Waited::done)
      return;
    endpoint_.leave();
    lose(doing_);
  }

 private:
  Endpoint& endpoint_;
  WaitLimits limits_;
  char const* doing_;
  bool waited_before_ = false;
};

}  // namespace hostless::bench
