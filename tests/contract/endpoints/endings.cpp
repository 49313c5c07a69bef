// What every transport promises of ranks that leave, are silent or fail alone.
#include <algorithm>
#include <string>
#include <vector>

#include "endpoints/party.hpp"
#include "hostless/base/wait.hpp"
#include "transport_contract_parts.hpp"

namespace hostless::contract {

// A message that nobody received before its endpoint went away must not turn up in the next one.
void leave_case(Transport& t) {
  int const ranks = t.group().size(), me = t.group().rank();
  {
    Party party(t, ring(ranks, 4));
    Endpoint& e = *party.endpoint;
    e.send(0, 1);
    expect(!e.peer_left(), "nobody left yet");
    t.group().barrier();
    int const leaver = ranks / 2;
    if (me == leaver) {
      e.leave();
    } else {
      auto const waited = wait_for([&] { return e.peer_left(); }, [] { return false; }, Deadline::after(240));
      expect(waited == Waited::done, "the others see that a rank left");
      expect(e.peer_left(), "and go on seeing it");
    }
    t.group().barrier();  // set-up goes on: only the endpoint was left
  }
  {
    Party unread(t, ring(ranks, 4));
    unread.endpoint->send(0, 1);
    t.group().barrier();
  }
  Party party(t, ring(ranks, 4));
  expect(!party.endpoint->peer_left(), "a new endpoint knows nothing of the old one");
  for (std::uint32_t epoch = 1; epoch <= 5; ++epoch) {
    party.start(epoch + 40);
    party.finish(epoch + 40);
    party.gather(epoch, 2);
  }
}

// What a rank sent before it left can be received behind its word that it leaves.
void last_words_case(Transport& t) {
  int const ranks = t.group().size(), me = t.group().rank();
  Links const links = ring(ranks, 4);
  {
    Party party(t, links);
    Endpoint& e = *party.endpoint;
    int const leaver = ranks / 2;
    party.start(1);
    if (me == leaver) {
      e.leave();
    } else {
      auto const told = wait_for([&] { return e.peer_left(); }, [] { return false; }, Deadline::after(240));
      expect(told == Waited::done, "the others see that a rank left");
      auto const came = wait_for([&] { return e.received(0); }, [] { return false; }, Deadline::after(240));
      expect(came == Waited::done, "what was sent before is received");
      expect(e.received(0), "and stays received");
      party.expect_values(1);
    }
    t.group().barrier();
  }
  Party party(t, links);
  party.start(2);
  party.finish(2);
}

// HOSTLESS_DEADLINE_SCALE is so small here that a set-up wait ends after a second or two.
void silent_case(Transport& t) {
  Group& g = t.group();
  g.barrier();
  if (g.rank() == g.size() - 1) {
    nap(std::max(1.8, 15 * WaitLimits::from_environment().first_s));  // half as long again as the others wait
    return;
  }
  double const waited = seconds_of(
      [&] { expect_error(ErrorCode::peer_lost, "a rank that does not arrive", [&] { g.barrier(); }); });
  // Unscaled it would be 600 s; a machine that is shared may be late.
  expect(waited > 0.25 && waited < 240, "the wait ends by its deadline, not after " + std::to_string(waited));
  expect_error(ErrorCode::peer_lost, "the group is over", [&] { g.barrier(); });
}

// The scale is 1 here: only being told can end the wait in time.
void alone_case(Transport& t) {
  Group& g = t.group();
  Party party(t, ring(g.size(), 3));
  g.barrier();
  if (g.rank() == g.size() - 1) throw Error(ErrorCode::bad_input, "on one rank only.");
  double const waited = seconds_of([&] {
    if (g.rank() == 0) {
      expect_error(ErrorCode::peer_lost, "one rank fails alone",
                   [&] { g.exchange(std::vector<Bytes>(static_cast<std::size_t>(g.size()))); });
    } else {
      auto const left =
          wait_for([&] { return party.endpoint->peer_left(); }, [] { return false; }, Deadline::after(240));
      expect(left == Waited::done, "an endpoint hears of it as well");
    }
  });
  expect(waited < 300, "the others learn it at once, not after " + std::to_string(waited));
  throw Error(ErrorCode::peer_lost, "as it should be");
}

}  // namespace hostless::contract
