#include "base/setup_watch.hpp"

#include <algorithm>
#include <cstring>

#include "hostless/base/error.hpp"

namespace hostless {

// Ranks begin a stage one by one: its work is that of all of them.
void SetupWatch::begin(char const* what, std::int64_t all) {
  std::lock_guard const hold(mutex_);
  char const* const now = what_.load();
  if (inside_++ == 0 || now == nullptr || std::strcmp(now, what) != 0) {
    what_ = what;
    done_ = 0;
    all_ = 0;
  }
  all_ += all;
}

void SetupWatch::end() {
  std::lock_guard const hold(mutex_);
  if (--inside_ == 0) what_ = nullptr;
}

SetupWatch::Look SetupWatch::look() const {
  std::lock_guard const hold(mutex_);
  Look now;
  now.what = what_;
  now.all = all_;
  now.done = done_;
  if (now.all > 0) now.done = std::min(now.done, now.all);  // a rank behind the others counts in their stage
  return now;
}

void setup_step(std::int64_t units) {
  SetupWatch* const watch = watch_of_thread;
  if (watch == nullptr) return;
  watch->add(units);
  if (watch->stopped())
    throw Error(ErrorCode::aborted, "the set-up was interrupted (there is no answer yet). Start it again.");
}

}  // namespace hostless
