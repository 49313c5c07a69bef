#pragma once
// The match of some requests, while it is waited for.

#include <cstdint>
#include <memory>
#include <vector>

#include "hostless/base/wait.hpp"
#include "queue/request_state.hpp"

namespace hostless::queue {

enum class Matched : std::uint8_t { no, yes, never };

/// Hears what others have said, and moves on what calls move on.
Matched look_at(RequestState& match);
/// Whether somebody whose side is missing has left.
bool is_left_alone(RequestState& match);
/// Ends the match of those of them that are still being matched: their other sides are told.
void abandon(std::vector<std::shared_ptr<RequestState>> const& requests) noexcept;
/// Of one that is to be started: the first time whether its other side was given up since is heard.
void hear_of_other_side(RequestState& state);
/// Of one that is to be freed: whether it is being matched with who has left.
bool is_abandoned(RequestState& one);
/// Blocks. What is missing is told on standard error once it has been waited for as long as a later wait of a
/// solve may take. look and errors: as Request::wait
void wait_for_match(RequestState& match, std::function<void()> const& look);
/// Errors  as Request::wait, always
[[noreturn]] void end_match(RequestState& match, Waited waited);
/// Errors  QueueError mismatch  it does not fit its other side
void refuse_misfit(RequestState const& state);
/// Of what is being handled. Errors  environment  the system lacks something, where that is how it was said
[[noreturn]] void throw_as_error();
/// Errors  usage  no wait ends by such a limit
void check_limit(double seconds);

}  // namespace hostless::queue
