#include "base/setup_line.hpp"

#include <unistd.h>

#include <cstdio>

#include "base/variable.hpp"

namespace hostless {
namespace {

constexpr char const* progress_variable = "HOSTLESS_PROGRESS";

void put(std::string const& text) {
  // A terminal that is gone is no reason to end.
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

}  // namespace

SetupLine::SetupLine(bool wanted)
    : shown_(wanted && isatty(STDERR_FILENO) != 0 && !is_zero(progress_variable)),
      silent_s_(is_one(progress_variable) ? 0 : 1),  // what is over sooner needs no words
      begin_(Clock::now()) {}

void SetupLine::draw(SetupWatch const& watch) {
  if (!shown_) return;
  double const seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  if (seconds < silent_s_) return;
  SetupWatch::Look const look = watch.look();
  if (look.what == nullptr) return erase();
  put("\r\033[K" + setup_words(look, seconds));
  drawn_ = true;
}

void SetupLine::erase() {
  if (drawn_) put("\r\033[K");
  drawn_ = false;
}

std::string setup_words(SetupWatch::Look const& look, double seconds) {
  char tail[64];
  if (look.all > 0) {
    std::snprintf(tail, sizeof tail, "   %d %%   %.0f s",
                  static_cast<int>(100.0 * static_cast<double>(look.done) / static_cast<double>(look.all)),
                  seconds);
  } else {
    std::snprintf(tail, sizeof tail, "   %.0f s", seconds);
  }
  return look.what + std::string(tail);
}

}  // namespace hostless
