#include "thread_team.hpp"

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <chrono>
#include <system_error>
#include <utility>

#include "away.hpp"
#include "base/setup_line.hpp"
#include "hostless/base/error.hpp"

namespace nb = nanobind;

namespace hostless::python {
namespace {

constexpr auto between_looks = std::chrono::milliseconds(100);

bool is_lost(std::exception_ptr const& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (Error const& e) {
    return e.code() == ErrorCode::peer_lost;
  } catch (...) {
    return false;
  }
}

std::string text_of(std::exception_ptr const& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (std::exception const& e) {
    return e.what();
  } catch (...) {
    return "an unknown error.";
  }
}

// "ValueError: no such thing", with the GIL.
std::string words_of(nb::python_error const& error) {
  try {
    std::string const kind = nb::cast<std::string>(error.type().attr("__name__")),
                      text = nb::cast<std::string>(nb::str(error.value()));
    return text.empty() ? kind : kind + ": " + text;
  } catch (std::exception const&) {  // its own __str__ raises
    return "an exception";
  }
}

// Whether ranks may go on after it: errors of this library are raised on all ranks alike, but for a lost one,
// and where one rank alone raises one the others lose it at their deadline.
bool is_of_all(std::exception_ptr const& failed) {
  try {
    std::rethrow_exception(failed);
  } catch (Error const& e) {
    return e.code() != ErrorCode::peer_lost;
  } catch (...) {
    return false;
  }
}

}  // namespace

ThreadTeam::ThreadTeam(int ranks, Job at_end)
    : at_end_(std::move(at_end)), ranks_(ranks), process_(getpid()) {
  begin([this] { run_with_threads_transport(ranks_, [this](Transport& transport) { serve(transport); }); });
}

ThreadTeam::ThreadTeam(std::function<std::unique_ptr<Transport>()> open, Job at_end)
    : at_end_(std::move(at_end)), ranks_(1), process_(getpid()) {
  begin([this, open_it = std::move(open)] {
    auto const transport = open_it();
    serve(*transport);
    if (leaving_)  // the transport sees it pass by, as it would see one of C++
      throw Error(ErrorCode::aborted, "an exception of Python's has left the ranks.");
  });
}

// `live` is the life of all ranks; why it ended is what later jobs are told.
void ThreadTeam::begin(std::function<void()> live) {
  check_not_ended();
  thread_ = Thread([this, live = std::move(live)] {
    std::exception_ptr failed;
    try {
      live();
    } catch (...) {
      failed = std::current_exception();
    }
    std::lock_guard const hold(mutex_);
    if (failed) why_ended_ = text_of(failed);
    if (failed && failed_.empty()) failed_.push_back(failed);
    ended_ = true;
    to_caller_.notify_all();
  });
}

// A rank's life: jobs in turn, until the team is closed or a job leaves its ranks unsure of each other.
void ThreadTeam::serve(Transport& transport) {
  struct AtEnd {
    ThreadTeam& team;
    Transport& transport;
    ~AtEnd() {
      if (team.at_end_) team.at_end_(transport);
    }
  } const at_end{*this, transport};
  transport.group().barrier();  // where a thread could not be started, nobody is left waiting for jobs
  for (std::uint64_t turn = 1;; ++turn) {
    Job const* job = nullptr;
    {
      std::unique_lock lock(mutex_);
      to_ranks_.wait(lock, [&] { return closing_ || turn_ >= turn; });  // bounded: close() ends it
      if (turn_ < turn) return;
      job = job_;
    }
    std::exception_ptr failed;
    try {
      WatchedBy const watched(watch_);
      (*job)(transport);
    } catch (...) {
      failed = std::current_exception();
    }
    std::lock_guard const hold(mutex_);
    if (failed) failed_.push_back(failed);
    if (--working_ == 0) to_caller_.notify_all();
    if (failed && !is_of_all(failed)) std::rethrow_exception(failed);
  }
}

bool ThreadTeam::is_here() const { return process_ == getpid(); }

void ThreadTeam::check_usable() const {
  auto refuse = [](char const* text) { throw Error(ErrorCode::usage, text); };
  if (!is_here())
    refuse("a matrix of another process (its threads did not come along with fork). Make it after the fork.");
  check_not_ended();
  if (closing_) refuse("the matrix is closed (its ranks have ended). Make a new hostless.Matrix.");
  if (running_)
    refuse(
        "the matrix is at work in another thread, or calls this callback (its ranks do one thing at a time). "
        "Wait for it, or make a matrix for each.");
}

std::string ThreadTeam::why_stopped() const {
  std::lock_guard const hold(mutex_);
  return why_stopped_;
}

void ThreadTeam::run(Job const& job, SetupWatch* watch) {
  check_usable();
  running_ = true;
  struct Running {
    bool& flag;
    ~Running() { flag = false; }
  } const running{running_};
  ends_early_ = !ending;
  Away const away;
  std::unique_lock lock(mutex_);
  raised_ = nullptr;
  why_stopped_.clear();
  stop_.store(false);
  function_failed_.store(false);
  if (!ended_) {
    job_ = &job;
    watch_ = watch;
    failed_.clear();
    working_ = ranks_;
    ++turn_;
    to_ranks_.notify_all();
    this->watch(lock);
    job_ = nullptr;
    watch_ = nullptr;
  }
  if (raised_) std::rethrow_exception(std::exchange(raised_, nullptr));
  if (!failed_.empty()) fail();
  if (ended_) throw Error(ErrorCode::peer_lost, "the ranks of this matrix have ended: " + why_ended_);
}

// Waits for the ranks; answers what they ask.
void ThreadTeam::watch(std::unique_lock<std::mutex>& lock) {
  SetupLine line(watch_ != nullptr);
  for (;;) {
    to_caller_.wait_for(lock, between_looks, [&] { return working_ == 0 || ended_ || asked_ != nullptr; });
    if (asked_ != nullptr) {
      answer(lock);
    } else if (working_ == 0 || ended_) {
      return;
    } else {
      if (watch_ != nullptr) line.draw(*watch_);
      if (watch_ != nullptr && ends_early_ && ending) watch_->stop();
      if (raised_) continue;
      Question look{[] {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
      }};
      asked_ = &look;
      answer(lock);
    }
  }
}

void ThreadTeam::answer(std::unique_lock<std::mutex>& lock) {
  Question& question = *asked_;
  bool const calls = !raised_ || (question.to_the_end && !function_failed_);
  std::exception_ptr raised;
  std::string why;
  lock.unlock();
  if (calls) {
    Back const back;
    try {
      question.call();
    } catch (abi::__forced_unwind&) {  // the interpreter went while a function of the user was at work
      stay();
    } catch (nb::python_error const& error) {
      raised = std::current_exception();
      why = words_of(error);
    } catch (...) {
      raised = std::current_exception();
      why = text_of(raised);
    }
  }
  if (!is_here()) {  // a function of the user has forked; whoever had the lock is not in this child
    lock.release();
    if (raised) std::rethrow_exception(raised);
    check_usable();
  }
  lock.lock();
  question.answered = calls && !raised;
  if (question.to_the_end && !question.answered) function_failed_.store(true);
  if (raised && !raised_) {
    raised_ = raised;
    why_stopped_ = std::move(why);
    stop_.store(true);
    if (watch_ != nullptr) watch_->stop();
  }
  asked_ = nullptr;
  to_ranks_.notify_all();
}

bool ThreadTeam::ask(std::function<void()> call, bool to_the_end) {
  Question question{std::move(call), to_the_end};
  std::unique_lock lock(mutex_);
  to_ranks_.wait(lock, [&] { return asked_ == nullptr; });  // bounded: the caller answers ten times a second
  if (raised_ && !to_the_end) return false;
  asked_ = &question;
  to_caller_.notify_all();
  to_ranks_.wait(lock, [&] { return asked_ != &question; });  // bounded: as long as the user's function takes
  return question.answered;
}

// Of several ranks the one that does not merely miss another one.
void ThreadTeam::fail() {
  std::exception_ptr chosen = failed_.front();
  for (auto const& one : failed_) {
    if (!is_lost(one)) {
      chosen = one;
      break;
    }
  }
  std::rethrow_exception(chosen);
}

void ThreadTeam::close_unless_running(bool leaving) {
  if (running_ && is_here())
    throw Error(ErrorCode::usage,
                "the matrix is at work in another thread (its ranks cannot end). Close it afterwards.");
  if (is_here()) {
    std::lock_guard const hold(mutex_);
    leaving_ = leaving;
  }
  close();
}

void ThreadTeam::close() noexcept {
  if (!is_here()) return;  // the threads are the parent's
  {
    std::lock_guard const hold(mutex_);
    closing_ = true;
  }
  to_ranks_.notify_all();
  if (thread_.joinable())
    thread_.join();  // bounded: ranks hear closing_; what a function of the user takes is the user's
}

}  // namespace hostless::python
