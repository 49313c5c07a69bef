#pragma once

#include <string>

#include "base/setup_watch.hpp"
#include "hostless/base/deadline.hpp"

namespace hostless {

/// What a set-up is at, as one line of a terminal that is rewritten: only where standard error is one, only
/// when the set-up has taken a second, not with HOSTLESS_PROGRESS=0. Nothing of it stays.
class SetupLine {
 public:
  explicit SetupLine(bool wanted);
  ~SetupLine() { erase(); }
  SetupLine(SetupLine const&) = delete;
  SetupLine& operator=(SetupLine const&) = delete;
  bool shown() const { return shown_; }
  /// Call it several times a second.
  void draw(SetupWatch const& watch);
  void erase();

 private:
  bool shown_, drawn_ = false;
  double silent_s_;
  Clock::time_point begin_;
};

/// The line's words. seconds  since the set-up began
std::string setup_words(SetupWatch::Look const& look, double seconds);

}  // namespace hostless
