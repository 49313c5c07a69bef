#include "setup_shown.hpp"

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <system_error>

namespace hostless {
namespace {

constexpr auto between_lines = std::chrono::milliseconds(200);
std::atomic<bool> drawn{false};

}  // namespace

bool setup_line_is_drawn() noexcept { return drawn.load(); }

SetupShown::SetupShown(bool wanted) : watch_(setup_watch()), line_(wanted && watch_ != nullptr) {
  if (!line_.shown()) return;
  // Signals are for the threads that work: the launcher of processes takes them where it waits.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    thread_ = std::thread([this] { draw(); });
  } catch (std::system_error const&) {  // nothing is shown, then
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void SetupShown::draw() {
  std::unique_lock lock(mutex_);
  while (!over_.wait_for(lock, between_lines, [&] { return ended_; })) {
    drawn = true;  // before it is: a handler that comes between erases an empty line
    line_.draw(*watch_);
  }
}

void SetupShown::end() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard const hold(mutex_);
    ended_ = true;
  }
  over_.notify_all();
  thread_.join();  // bounded: the thread draws a line and looks
  line_.erase();
  drawn = false;
}

}  // namespace hostless
