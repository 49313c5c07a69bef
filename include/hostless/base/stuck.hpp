#pragma once

#include <string>

namespace hostless {

/// What a program does about a thread that has not come back a minute (WaitLimits::first_s) after another of
/// its team has failed: a rank or a thread of one inside a function that never returns. A thread cannot be
/// ended, nor can anything be freed that it uses, so the call that started it cannot return either.
///
/// `what` is a sentence for people. Called on one of the other threads, once a team; where it returns, as in
/// a program that has said nothing, the call goes on waiting: it is the caller's own function that it waits
/// for. The command `hostless` ends the process with exit code 4.
using WhenStuck = void (*)(std::string const& what);

/// Of this process, from now on. Before ranks are started.
void when_stuck(WhenStuck handler);

}  // namespace hostless
