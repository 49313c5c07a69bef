// Loaded into MPICH's launcher, which makes a session of each rank. Linux gives each session as much of a processor as all
// others (sched_autogroup), and who yields does so to its own session alone: ranks that share a processor spin for whole time
// slices while the one they wait for is not there. Groups of processes, which the launcher signals, stay as they are.
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

pid_t setsid(void) {
  char const* const name = program_invocation_short_name;
  if (strncmp(name, "hydra", 5) != 0 && strncmp(name, "mpiexec", 7) != 0) return (pid_t)syscall(SYS_setsid);
  return setpgid(0, 0) == 0 ? getpid() : -1;
}
