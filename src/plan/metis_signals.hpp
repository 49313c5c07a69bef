#pragma once

namespace hostless {

/// METIS sets handlers of SIGTERM and SIGABRT, more than once a call, which jump to where METIS began: into
/// nowhere on any other thread. So its thread may not set them: the kernel answers EPERM, which METIS does
/// not look at. SIGABRT, which it raises where there is no memory, has a handler of ours meanwhile: on
/// METIS's thread it ends the call, on every other it is the program's own. SIGTERM stays as it is; METIS's
/// thread has it blocked.
///
/// One at a time, made and destroyed on a thread that may set handlers. Where the kernel filters no system
/// calls METIS's handlers are taken away as soon as they are seen (`take_away`).
class MetisSignals {
 public:
  MetisSignals();
  /// The program's handler of SIGABRT is back, unless it has set another meanwhile.
  ~MetisSignals();
  MetisSignals(MetisSignals const&) = delete;
  MetisSignals& operator=(MetisSignals const&) = delete;

  /// On METIS's thread, of which nothing else is asked afterwards. False: METIS has given up for want of
  /// memory, and has let go of what it had. No frame of `work` holds what must be destroyed.
  static bool run(void (*work)(void*), void* argument);

  /// Whether METIS is known to set no handlers. On the thread of the constructor, as take_away.
  static bool are_forbidden();
  static void take_away();
  /// In a forked child, which has no METIS: the program's handlers are back.
  static void forget_in_child();
};

}  // namespace hostless
