#include "queue/match.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <system_error>

#include "queue/communicator_state.hpp"
#include "queue/looks.hpp"
#include "queue/queue_state.hpp"

namespace hostless::queue {
namespace {

using Phase = RequestState::Phase;

// Somebody whose offer is missing has left, and nothing of it is on the way.
bool has_nobody(RequestState& one) {
  if (one.phase.load() != Phase::matching || !one.communicator->has_left(one)) return false;
  one.communicator->listen();
  return one.phase.load() == Phase::matching;
}

// Of all communicators that it is over the least.
double limit_of(RequestState const& match) {
  double least = std::numeric_limits<double>::max();
  for (auto const& one : match.matches) least = std::min(least, one->communicator->match_limit_s());
  return least;
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", seconds);
  return text;
}

// What it waits for, of how many.
std::string missing_in(RequestState const& match) {
  RequestState* first = nullptr;
  std::size_t others = 0;
  for (auto const& one : match.matches) {
    if (one->phase.load() != Phase::matching) continue;
    if (first != nullptr) ++others;
    if (first == nullptr) first = one.get();
  }
  if (first == nullptr) return "nothing";  // it came a moment ago
  return first->communicator->missing(*first) +
         (others == 0 ? "" : ", and for " + std::to_string(others) + " more");
}

void tell_of(RequestState const& match, double waited_s) {
  std::string const limit = seconds_text(limit_of(match));
  std::fprintf(
      stderr,
      "hostless: rank %d has waited for %s for the match of %s. Match its other side there; this one ends "
      "after %s.\n",
      match.matches.front()->communicator->rank(), seconds_text(waited_s).c_str(), missing_in(match).c_str(),
      limit.c_str());
}

// Its other side was withdrawn.
void refuse_given_up(RequestState const& state) {
  if (state.phase.load() != Phase::lost || state.given_up_by < 0) return;
  throw Error(ErrorCode::peer_lost,
              "a match of " + state.words() + " whose other side rank " + std::to_string(state.given_up_by) +
                  " has given up (its match there has ended without this one). Match both sides within the "
                  "limit, and look for the first message of that rank.");
}

}  // namespace

void refuse_misfit(RequestState const& state) {
  if (state.phase.load() == Phase::misfit) throw QueueError(Refusal::mismatch, state.problem);
}

void throw_as_error() {
  try {
    throw;
  } catch (std::system_error const& e) {
    throw Error(ErrorCode::environment,
                std::string("the system refused what a match needs: ") + e.what() +
                    " (its requests are lost). Free them, and what else takes threads or memory.");
  }
}

void check_limit(double seconds) {
  if (!(seconds > 0))
    throw Error(ErrorCode::usage,
                "a limit of " + std::to_string(seconds) + " s (no wait ends in time). Use more than 0.");
}

Matched look_at(RequestState& match) {
  try {
    for (auto const& one : match.matches)
      if (one->phase.load() == Phase::matching) one->communicator->listen();
  } catch (...) {
    throw_as_error();
  }
  QueueState::advance_all();
  Matched all = Matched::yes;
  for (auto const& one : match.matches) {
    Phase const phase = one->phase.load();
    if (phase == Phase::misfit || phase == Phase::lost || phase == Phase::closed) return Matched::never;
    if (phase == Phase::matching) all = Matched::no;
  }
  return all;
}

bool is_left_alone(RequestState& match) {
  return std::any_of(match.matches.begin(), match.matches.end(),
                     [](auto const& one) { return has_nobody(*one); });
}

// Over a library a match may be given up on its other side while it is matched here: before the first start.
void hear_of_other_side(RequestState& state) {
  if (state.queue != nullptr || state.communicator->shares_memory()) return;
  try {
    state.communicator->listen();
  } catch (Error const&) {  // a library that carries no more: the wait says so
  }
}

// A library that carries no more says so by an error.
bool is_abandoned(RequestState& one) {
  if (one.phase.load() != Phase::matching) return false;
  try {
    one.communicator->listen();
    return has_nobody(one);
  } catch (Error const&) {
    return true;
  }
}

void abandon(std::vector<std::shared_ptr<RequestState>> const& requests) noexcept {
  for (auto const& one : requests) one->communicator->abandon(*one);
  for (auto const& one : requests) one->communicator->answer_others(*one);
}

void end_match(RequestState& match, Waited waited) {
  match.is_fetched = true;
  std::string const missing = missing_in(match);
  abandon(match.matches);  // whatever ends it: nobody can wait for the others any more
  for (auto const& one : match.matches) refuse_misfit(*one);
  for (auto const& one : match.matches) refuse_given_up(*one);
  if (waited != Waited::late)
    throw Error(ErrorCode::peer_lost,
                "a rank has left that was to match (its side is missing). See its message.");
  throw Error(
      ErrorCode::peer_lost,
      "a match was not answered in time: " + missing +
          " (the other side calls none for it, or is much slower). Match it there; if it is only slow, "
          "raise HOSTLESS_DEADLINE_SCALE or the limit of the communicator.");
}

void wait_for_match(RequestState& match, std::function<void()> const& look) {
  Looks looks(look);
  Matched now = Matched::no;
  auto const ready = [&] {
    now = look_at(match);
    return now != Matched::no;
  };
  double const quiet_s = WaitLimits::from_environment().later_s;
  Deadline const quiet = Deadline::after(quiet_s);
  bool is_told = false;
  auto const stop = [&] {
    if (!is_told && quiet.passed()) {
      is_told = true;
      tell_of(match, quiet_s);
    }
    looks();
    return is_left_alone(match);
  };
  auto const waited = wait_for(ready, stop, Deadline::after(limit_of(match)));
  if (waited != Waited::done || now == Matched::never) end_match(match, waited);
}

}  // namespace hostless::queue
