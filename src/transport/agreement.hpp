#pragma once
// What ranks must have been told alike before they begin something together: for faces whose callers may have told each rank
// something else.

#include <optional>
#include <string>

#include "hostless/base/error.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// Before something collective begins: an error of any rank is thrown on all, so that nobody waits for one
/// that has left. Collective.
///
/// problem  why this rank cannot go on
/// same     what all must have been given alike, in words: the call, and what it was given, between ", "
/// flag     any; returned is whether anybody's is set
/// Errors   what `problem` of any rank is; usage  `same` is not: the words of two ranks that differ
/// Cost     one gather of 16 bytes a rank
bool agree(Group& group, std::optional<Error> const& problem, std::string const& same, bool flag);

}  // namespace hostless
