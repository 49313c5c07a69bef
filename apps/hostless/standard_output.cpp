#include "standard_output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hostless {

void keep_standard_streams() {
  for (int const stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    // The lowest free number is this one. Opened the wrong way round, so that using it fails as it did.
    int const how = stream == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", how) < 0) return;  // bounded: the null device
  }
}

int finish_output(int code) {
  constexpr int done = 0, not_converged = 1, lost = 4;
  errno = 0;
  bool const arrived = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (arrived || (code != done && code != not_converged)) return code;
  tell(
      "hostless: standard output cannot be written{}{} (what was to be printed is lost). Give it a place "
      "with room, or name a file.\n",
      errno == 0 ? "" : ": ", errno == 0 ? "" : std::strerror(errno));
  return lost;
}

}  // namespace hostless
