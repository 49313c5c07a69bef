// What callers may do with requests and queues, and what is refused.
#include "hostless/queue/queue.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "queue/communicator_state.hpp"
#include "queue/match.hpp"
#include "queue/queue_state.hpp"

namespace hostless {
namespace {

using queue::CommunicatorState;
using queue::Kind;
using queue::Matched;
using queue::QueueState;
using queue::refuse_misfit;
using queue::RequestState;
using Phase = RequestState::Phase;
using States = std::vector<std::shared_ptr<RequestState>>;

[[noreturn]] void refuse(Refusal why, std::string const& problem, std::string const& what_to_do) {
  throw QueueError(why, problem + " " + what_to_do);
}

RequestState& must_exist(Request const& request) {
  if (!request.exists())
    refuse(Refusal::no_request, "no request (it was never made, or freed).", "Make one with an _init.");
  return *request.state();
}

// A queue goes on when its function has returned: what waits for it would wait for itself.
void refuse_in_function(char const* what) {
  if (QueueState::is_in_function())
    refuse(
        Refusal::in_use,
        std::string(what) + " inside a function of a queue (which goes on when the function has returned).",
        "Return, and call it from where the queue is used.");
}

// All of a call, each a persistent one and there once.
States persistent(std::span<Request* const> requests, char const* doing) {
  States states;
  for (Request const* const request : requests) {
    if (request == nullptr)
      refuse(Refusal::no_request, "a null pointer among the requests.", "Give each request.");
    RequestState& state = must_exist(*request);
    if (!state.is_persistent())
      refuse(Refusal::not_persistent,
             std::string("the request of a match cannot be ") + doing + " (it is complete once).",
             "Wait for it by itself.");
    states.push_back(request->state());
  }
  States sorted = states;
  std::sort(sorted.begin(), sorted.end());
  auto const twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    refuse(Refusal::twice, (*twice)->words() + " is there twice.", "Give each request once.");
  return states;
}

void refuse_closed(RequestState const& state) {
  if (state.phase.load() == Phase::closed)
    refuse(Refusal::no_request, state.words() + " is of a communicator that was closed.", "Free it.");
}

void check_match(RequestState& state) {
  refuse_misfit(state);
  refuse_closed(state);
  Phase const phase = state.phase.load();
  if (phase == Phase::lost)
    refuse(Refusal::already_matched,
           state.words() + " has lost its other side in an earlier match (once and for good).",
           "Free it, and make another request.");
  std::string const taken = phase == Phase::inactive && state.communicator->groups()
                                ? state.communicator->groups()->why_not_matched(state)
                                : "";
  if (!taken.empty()) refuse(Refusal::unsupported, taken, "Free the earlier ones on both ranks first.");
  if (phase != Phase::inactive)
    refuse(Refusal::already_matched,
           state.words() + (phase == Phase::matched ? " is matched already" : " is being matched already") +
               " (once and for good).",
           "Make another request.");
}

std::shared_ptr<RequestState> offered(std::span<Request* const> requests) {
  refuse_in_function("a match");
  States const states = persistent(requests, "matched");
  for (auto const& state : states) check_match(*state);
  auto match = std::make_shared<RequestState>();
  match->kind = Kind::match;
  match->matches = states;
  // A communicator hears of its requests in the order in which they stand here.
  States rest = states;
  while (!rest.empty()) {
    auto const communicator = rest.front()->communicator;
    auto const others = std::stable_partition(
        rest.begin(), rest.end(), [&](auto const& one) { return one->communicator == communicator; });
    States const same(rest.begin(), others);
    rest.erase(rest.begin(), others);
    try {
      communicator->offer(same);
    } catch (...) {  // no match will wait for them
      queue::abandon(states);
      queue::throw_as_error();
    }
  }
  return match;
}

void check_type(QueueState const& queue, RequestState const& state) {
  CommunicatorState const& communicator = *state.communicator;
  auto const refuse_here = [&](std::string const& where, std::string const& what_to_do) {
    refuse(
        Refusal::unsupported,
        state.words() + where + ", on a queue of the type " + name(queue.type) + " (it carries none such).",
        what_to_do);
  };
  if (communicator.gpu() != queue.gpu()) {
    auto const of = [](int gpu) { return gpu < 0 ? std::string("the host") : "GPU " + std::to_string(gpu); };
    refuse_here(" is " + of(communicator.gpu()) + "'s, and the queue's work that of " + of(queue.gpu()),
                "Make the communicator with the GPU of the queue's stream, or both of the host.");
  }
  bool const in_groups = communicator.groups() != nullptr;
  if (in_groups != (queue.type == QueueType::nccl))
    refuse_here(in_groups ? " is carried by NCCL" : " is loaded and stored between GPUs",
                in_groups ? "Make the queue with type nccl." : "Make the queue with type peer.");
  if (in_groups || queue.type == QueueType::automatic || queue.type == QueueType::peer ||
      communicator.queue_type() == name(queue.type))
    return;
  refuse_here(communicator.queue_type() == "threads" ? " is between ranks that are threads"
              : communicator.queue_type() == "mpi"   ? " is between ranks of MPI"
                                                     : " is carried by libfabric",
              "Make the queue with type auto.");
}

// On this queue.
void check_start(std::shared_ptr<QueueState> const& queue, RequestState& state) {
  refuse_misfit(state);
  refuse_closed(state);
  hear_of_other_side(state);
  if (state.phase.load() == Phase::lost)
    refuse(Refusal::not_matched, state.words() + " has lost its other side in its match.", "Free it.");
  if (state.phase.load() != Phase::matched)
    refuse(Refusal::not_matched, state.words() + " is not matched.", "Match it first.");
  check_type(*queue, state);
  if (state.is_started)
    refuse(Refusal::already_started, state.words() + " is started already, and no wait is enqueued since.",
           "Enqueue its wait first.");
  if (state.queue != nullptr && state.queue != queue.get() && state.is_unreached())
    refuse(Refusal::other_queue,
           state.words() + " has a wait on another queue that was not reached (this one may come first).",
           "Wait for that queue first.");
  if (queue->type == QueueType::nccl && !state.communicator->groups()->move_to(queue))
    refuse(Refusal::unsupported,
           state.words() + " on a second queue of its communicator by nccl (its groups have one order).",
           "Wait for the first one, or start it there.");
}

// Their waits are enqueued, or nothing of them is.
void forget_started(QueueState& queue, std::span<std::shared_ptr<RequestState> const> states) {
  if (states.empty()) return;
  for (auto const& state : states) state->is_started = false;
  std::erase_if(queue.started, [](auto const& one) { return !one->is_started; });
}

// What ended the call has left their start out: nobody will wait for it.
void take_back_start(QueueState& queue, std::span<std::shared_ptr<RequestState> const> states) {
  for (auto const& state : states)
    if (state->communicator->gpu() < 0) state->communicator->started().remove(state->messages());
  forget_started(queue, states);
}

// started: by the same call.
void check_wait(QueueState const* queue, RequestState const& state, States const& started) {
  if (std::find_if(started.begin(), started.end(), [&](auto const& one) { return one.get() == &state; }) !=
      started.end())
    return;
  if (!state.is_started)
    refuse(Refusal::not_started, state.words() + " is not started.", "Enqueue its start first.");
  if (state.queue != queue)
    refuse(Refusal::other_queue, state.words() + " was started on another queue.", "Wait for it there.");
}

// Where what may be under way is bounded: also with these. All of them or none, while other threads start theirs.
void count_started(States const& states) {
  std::map<CommunicatorState*, std::size_t> more;
  for (auto const& state : states)
    if (state->communicator->gpu() < 0) more[state->communicator.get()] += state->messages();
  for (auto one = more.begin(); one != more.end(); ++one) {
    auto& started = one->first->started();
    std::size_t const messages = one->second;
    if (started.add(messages)) continue;
    for (auto before = more.begin(); before != one; ++before) before->first->started().remove(before->second);
    refuse(Refusal::too_many,
           std::to_string(messages) + " messages more than the " + std::to_string(started.now()) +
               " that are started and whose waits were not reached (" + std::to_string(started.most()) +
               " may be, as many as HOSTLESS_QUEUE_STARTS says).",
           "Wait for the queue first, or raise the variable.");
  }
}

}  // namespace

// ---- requests

void Request::free() {
  RequestState& state = must_exist(*this);
  if (!state.is_persistent()) {
    if (!state.is_fetched)
      refuse(Refusal::in_use, "a match that was not waited for (it cannot be taken back).",
             "Wait for it first.");
    state_.reset();
    return;
  }
  bool const is_open = state.communicator->is_open();
  if (is_open && (state.is_started || state.is_unreached()))
    refuse(Refusal::in_use,
           state.words() +
               (state.is_started ? " is started and not waited for"
                                 : " has a wait that its queue has not reached") +
               " (the queue uses it).",
           "Enqueue a wait, then wait for the queue.");
  if (is_open && is_abandoned(state)) queue::abandon({state_});
  if (is_open && state.phase.load() == Phase::matching)
    refuse(Refusal::in_use, state.words() + " is being matched (that cannot be taken back).",
           "Wait for the match first.");
  state.communicator->forget(state);
  state_.reset();
}

bool Request::is_matched() const {
  refuse_in_function("the question whether a request is matched");
  RequestState& state = must_exist(*this);
  if (!state.is_persistent()) return look_at(state) == Matched::yes;
  Phase const phase = state.phase.load();
  if (phase == Phase::matching || phase == Phase::matched) state.communicator->listen();
  QueueState::advance_all();
  return state.phase.load() == Phase::matched;
}

namespace {
[[noreturn]] void refuse_host_wait(RequestState const& state, char const* what) {
  refuse(Refusal::in_use,
         state.words() + " cannot be " + what + " by the host (its waits are a queue's work).",
         "Enqueue its wait, then wait for the queue.");
}
}  // namespace

bool Request::test() {
  refuse_in_function("a test");
  RequestState& state = must_exist(*this);
  if (state.is_persistent()) refuse_host_wait(state, "tested");
  Matched const now = look_at(state);
  if (now == Matched::never) end_match(state, Waited::done);
  if (now == Matched::no && is_left_alone(state)) end_match(state, Waited::stopped);
  state.is_fetched = state.is_fetched || now == Matched::yes;
  return now == Matched::yes;
}

void Request::wait(std::function<void()> const& look) {
  refuse_in_function("a wait for a match");
  RequestState& state = must_exist(*this);
  if (state.is_persistent()) refuse_host_wait(state, "waited for");
  state.is_fetched = true;  // also where it throws
  wait_for_match(state, look);
}

void Request::cancel() {
  RequestState& state = must_exist(*this);
  refuse(Refusal::in_use, state.words() + " cannot be cancelled (its other side counts on it).",
         state.is_persistent() ? "Free it when it is idle." : "Wait for it.");
}

RequestStatus Request::status() const { return must_exist(*this).status(); }

void match(std::span<Request* const> requests) { wait_for_match(*offered(requests), {}); }
Request begin_match(std::span<Request* const> requests) { return Request(offered(requests)); }

// ---- queues

Queue::Queue(QueueType type, void* stream) {
  if (type == QueueType::automatic && stream != nullptr) type = QueueType::peer;
  if (stream != nullptr && type != QueueType::peer && type != QueueType::nccl)
    refuse(Refusal::unsupported,
           std::string("a GPU's stream for a queue of the type ") + name(type) + " (its work is the host's).",
           "Give no stream, and enqueue functions, or use peer or nccl.");
  state_ = std::make_shared<QueueState>(type, stream);
}

Queue::~Queue() {
  try {
    state_->drain({});
  } catch (...) {  // a stream that records, or whose GPU has failed; no memory
  }
  for (auto const& state : state_->started) {  // nobody can wait for them any more
    state->lose();
    if (state->communicator->gpu() < 0) state->communicator->started().remove(state->messages());
    state->is_started = false;
  }
}

void Queue::enqueue_start(std::span<Request* const> requests) { enqueue_start_and_wait(requests, {}); }

void Queue::enqueue_start_and_wait(std::span<Request* const> starts, std::span<Request* const> waits) {
  enqueue_step(
      {}, [] {}, starts, waits, [] {});
}

void Queue::enqueue_step(std::span<Request* const> early, std::function<void()> const& between,
                         std::span<Request* const> late, std::span<Request* const> waits,
                         std::function<void()> const& behind) {
  refuse_in_function("a start");
  std::vector<Request*> all(early.begin(), early.end());
  all.insert(all.end(), late.begin(), late.end());
  States states = persistent(all, "started"), awaited = persistent(waits, "waited for");
  for (auto const& state : states) check_start(state_, *state);
  for (auto const& state : awaited) check_wait(state_.get(), *state, states);
  if (state_->type == QueueType::nccl) queue::check_whole_sets(awaited);
  state_->started.reserve(state_->started.size() + states.size());  // before anything counts as started
  count_started(states);
  for (auto const& state : states) {
    state->is_started = true;
    state->queue = state_.get();
    state_->started.push_back(state);
  }
  auto const first_late = states.begin() + static_cast<std::ptrdiff_t>(early.size());
  auto left_out = states.begin();
  bool is_waited_for = false;
  try {
    state_->enqueue_together([&] {
      if (!early.empty()) state_->enqueue_start({states.begin(), first_late});
      left_out = first_late;
      between();
      state_->enqueue_start_and_wait({first_late, states.end()}, awaited);
      left_out = states.end();
      is_waited_for = true;
      behind();
    });
  } catch (...) {
    if (state_->gpu() < 0) left_out = states.begin(), is_waited_for = false;  // nothing of it is in
    take_back_start(*state_, {left_out, states.end()});
    if (is_waited_for) forget_started(*state_, awaited);
    throw;
  }
  forget_started(*state_, awaited);
}

void Queue::enqueue_wait(std::span<Request* const> requests) {
  refuse_in_function("a wait");
  States states = persistent(requests, "waited for");
  for (auto const& state : states) check_wait(state_.get(), *state, {});
  if (state_->type == QueueType::nccl) queue::check_whole_sets(states);
  if (!states.empty()) state_->enqueue_wait(states);
  forget_started(*state_, states);
}

void Queue::enqueue_wait_all() {
  refuse_in_function("a wait");
  if (state_->type == QueueType::nccl) queue::check_whole_sets(state_->started);
  States const states = state_->started;
  if (!states.empty()) state_->enqueue_wait(states);
  forget_started(*state_, states);
}

void Queue::enqueue_function(std::function<void()> work) {
  refuse_in_function("another function");
  if (!work) throw Error(ErrorCode::usage, "an empty function (there is nothing to call). Give one.");
  state_->enqueue_function(std::move(work));
}

void Queue::wait(std::function<void()> const& look) {
  refuse_in_function("a wait for a queue");
  state_->drain(look);
  state_->throw_what_failed();
}

bool Queue::test() {
  refuse_in_function("a test of a queue");
  QueueState::advance_all();
  if (!state_->is_done()) return false;
  state_->throw_what_failed();
  return true;
}

void Queue::set_limit(double seconds) {
  queue::check_limit(seconds);
  state_->set_limit(seconds);
}

bool Queue::is_idle() const { return state_->is_done() && state_->started.empty(); }

}  // namespace hostless
