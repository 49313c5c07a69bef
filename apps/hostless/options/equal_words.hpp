#pragma once
// Ranks that mpirun has started, each with a command line of its own: they must ask for the same.

#include <string>
#include <vector>

#include "hostless/transport/transport.hpp"

namespace CLI {
class App;
}

namespace hostless {

/// What a command line says, as ranks compare it: what it is called (the option, or what messages call it) and its
/// words; only what was given. Names of files whose content ranks compare (content_of) are left out: nodes may keep
/// them in different places.
struct GivenWord {
  std::string name;
  std::string text;   ///< as it was given
  std::string value;  ///< what is compared: of a number the same for 1e-8 and 1.0e-8
};
using GivenWords = std::vector<GivenWord>;
GivenWords given_words(CLI::App const& command);

/// Collective, and the first that is: what follows takes for granted that ranks do the same.
/// Errors  usage  a rank was given what rank 0 was not
void require_equal_words(Group& group, GivenWords const& mine);

}  // namespace hostless
