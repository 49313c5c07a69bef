#pragma once
// Ranks that live as long as a matrix does, each on a thread of its own, and the Python thread that waits for
// them.

#include <atomic>
#include <condition_variable>  // bounded: see Crew::run and Crew::serve
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "away.hpp"
#include "base/setup_watch.hpp"
#include "base/thread_team.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless::python {

/// Runs jobs on ranks: threads of this process with the threads transport between them, or the one rank that
/// this process is of an MPI communicator.
///
/// One job at a time, started by `run` on the thread that holds the GIL. What a job has to say to Python it
/// says by `ask`: everything of Python happens on the thread that called `run`.
class ThreadTeam {
 public:
  using Job = std::function<void(Transport&)>;
  /// at_end  called on every rank when it leaves: what needs the transport must be destroyed there
  ThreadTeam(int ranks, Job at_end);
  /// The transport is opened on the team's thread; it must be one rank's.
  ThreadTeam(std::function<std::unique_ptr<Transport>()> open, Job at_end);
  ~ThreadTeam() { close(); }
  ThreadTeam(ThreadTeam const&) = delete;
  ThreadTeam& operator=(ThreadTeam const&) = delete;

  /// Runs `job` on every rank without the GIL and returns when all have ended. Looks for signals ten times a
  /// second and sets `stop()` when one has raised an exception in Python, which is thrown at the end.
  ///
  /// Errors  what a call of `ask` or a signal raised; else that of the rank which was the cause, after which
  ///         the team is gone where its ranks can no longer be sure of each other;
  ///         usage  closed, in another process (after a fork), or while another thread's job runs
  ///
  /// watch  of a job that is a set-up: shown on a terminal, and asked to end as `stop()` says
  void run(Job const& job, SetupWatch* watch = nullptr);
  /// What `run` refuses before it begins. Errors  usage  as there
  void check_usable() const;
  /// Called by one rank inside a job: `call` runs with the GIL on the thread that waits in `run`. False where
  /// it raised, now or before: the job should come to its end.
  ///
  /// to_the_end  something else that was raised does not keep it from being called: what the job has under way
  ///             needs its answer
  bool ask(std::function<void()> call, bool to_the_end = false);
  /// Whether such a call has raised in this job, so that what it has under way is not what it should be.
  bool function_failed() const { return function_failed_.load(std::memory_order_relaxed); }
  /// True when the job should come to its end; any thread may look, at any time.
  bool stop() const {
    return stop_.load(std::memory_order_relaxed) ||
           (ends_early_.load(std::memory_order_relaxed) && ending.load(std::memory_order_relaxed));
  }
  /// What was raised in Python, in words; empty: nothing. Any thread may ask.
  std::string why_stopped() const;
  /// Ends the ranks; nothing can be run any more. Not while a job runs.
  void close() noexcept;
  /// leaving  an exception has taken this rank from the others: a transport of processes gives them a second to
  ///          come to its end, then tells them
  /// Errors   usage  another thread's job runs
  void close_unless_running(bool leaving);
  bool closed() const { return closing_; }
  /// False in a process that was forked from the one with the ranks: there nothing may be destroyed, since
  /// locks and waits of threads that did not come along would never end.
  bool is_here() const;

 private:
  void begin(std::function<void()> live);
  void serve(Transport& transport);
  void watch(std::unique_lock<std::mutex>& lock);
  void answer(std::unique_lock<std::mutex>& lock);
  [[noreturn]] void fail();

  Job at_end_;
  int ranks_;
  long const process_;
  mutable std::mutex mutex_;
  std::condition_variable to_ranks_, to_caller_;  // bounded: woken by `close` and by the end of every rank
  Job const* job_ = nullptr;
  std::uint64_t turn_ = 0;
  int working_ = 0;
  bool closing_ = false, leaving_ = false, ended_ = false, running_ = false;
  struct Question {
    std::function<void()> call;
    bool to_the_end = false, answered = false;
  };
  Question* asked_ = nullptr;
  std::vector<std::exception_ptr> failed_;
  std::exception_ptr raised_;  // in Python
  std::string why_ended_, why_stopped_;
  std::atomic<bool> stop_{false}, ends_early_{true};  // the job was begun before the interpreter's end
  std::atomic<bool> function_failed_{false};
  SetupWatch* watch_ = nullptr;  // of the job, where it is a set-up
  Thread thread_;                // last: everything else is there before it starts
};

}  // namespace hostless::python
