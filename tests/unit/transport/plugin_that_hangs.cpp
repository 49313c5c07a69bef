// A plugin of MPICH's name that never gets loaded: what a library does that waits for a file system or a
// daemon.
#include <unistd.h>

namespace {

struct Hang {
  Hang() {
    for (;;) pause();
  }
} const hang;

}  // namespace
