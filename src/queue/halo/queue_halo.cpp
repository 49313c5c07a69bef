#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/counted.hpp"
#include "hostless/queue/halo.hpp"
#include "queue/communicator_state.hpp"
#include "queue/halo/halo_plan.hpp"
#include "queue/queue_state.hpp"

namespace hostless {
namespace {

using queue::HaloArray;
using queue::HaloHead;
using queue::HaloWork;

std::shared_ptr<std::byte> host_memory_of_halo(std::size_t bytes) {
  constexpr std::align_val_t line{256};
  auto* const block = static_cast<std::byte*>(::operator new(bytes, line));
  std::memset(block, 0, bytes);
  return {block, [](std::byte* b) { ::operator delete(b, line); }};
}

void append(std::vector<Request*>& all, std::vector<Request*> const& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

class QueueHalo::State {
 public:
  State(Communicator& communicator, HaloGrid const& grid, std::vector<HaloField> const& fields,
        HaloOptions const& options)
      : ranks_(communicator.state_), ready_(options.ready && ranks_->groups() == nullptr) {
    plan_ = plan_halo(*ranks_, grid, fields, options);
    ranks_->group().together([&] { make(communicator, options.tag); });
    std::vector<Request*> all;
    for (Set const& set : sets_)
      for (auto const* const some : {&set.receives, &set.sends}) append(all, *some);
    if (ready_) all.push_back(&barrier_);
    if (!all.empty()) match(all);
  }

  State(State const&) = delete;
  State& operator=(State const&) = delete;
  // By nccl the next halo of the same ranks needs them freed; what a queue still has is left to it.
  ~State() {
    if (ready_ && barrier_.exists()) requests_.push_back(std::move(barrier_));
    for (Request& one : requests_) try {
        one.free();
      } catch (...) {  // still in use, or no memory to say so
      }
  }

  void enqueue(Queue& queue, HaloStep const& step, HaloWork out, HaloWork in) {
    if (out == HaloWork::take_out) check_elements();
    Prepared& prepared = prepared_for(step.arrays);
    check_run(queue);
    if (ready_ && !is_in_run_) begin_run(queue);
    Set const& set = sets_[turn_];
    std::vector<Request*> next, first, waits = set.sends;
    if (!ready_) next = set.receives;
    if (ready_ && !step.ends_run) next = sets_[1 - turn_].receives;
    // Receives before the messages are packed (figure 3 of the paper); on a stream beside the waits, a launch less.
    if (ranks_->gpu() < 0) std::swap(first, next);
    append(next, set.sends);
    append(waits, set.receives);
    queue.enqueue_step(
        first, [&] { pass(queue, prepared, out, step.keeps); }, next, waits,
        [&] { pass(queue, prepared, in, step.keeps); });
    is_in_run_ = ready_ && !step.ends_run;
    if (is_in_run_) turn_ = 1 - turn_;
  }

  std::size_t messages() const {
    return plan_.peers.size() -
           static_cast<std::size_t>(std::count(plan_.peers.begin(), plan_.peers.end(), ranks_->rank()));
  }
  std::size_t bytes() const {
    std::size_t all = 0;
    for (std::size_t n = 0; n < plan_.peers.size(); ++n)
      if (plan_.peers[n] != ranks_->rank()) all += plan_.bytes[n];
    return all;
  }

 private:
  // One message a neighbour each way, and where they lie.
  struct Set {
    std::byte *out = nullptr, *in = nullptr;
    std::vector<Request*> sends, receives;
  };

  void make(Communicator& communicator, int tag) {
    sets_.resize(ready_ ? 2 : 1);
    std::size_t const bytes = std::max<std::size_t>(1, 2 * sets_.size() * plan_.set_bytes);
    memory_ =
        ranks_->gpu() < 0 ? host_memory_of_halo(bytes) : gpu::message_library().memory(ranks_->gpu(), bytes);
    requests_.reserve(2 * sets_.size() * plan_.peers.size() + 1);  // addresses stay
    for (std::size_t s = 0; s < sets_.size(); ++s) {
      sets_[s].out = memory_.get() + 2 * s * plan_.set_bytes;
      sets_[s].in = sets_[s].out + plan_.set_bytes;
      for (std::size_t n = 0; n < plan_.peers.size(); ++n)
        make_messages(communicator, sets_[s], n, tag + static_cast<int>(s));
    }
    if (ready_) barrier_ = communicator.barrier_init();
  }
  // A message has its sender's direction as its tag: of a rank on both sides come several.
  void make_messages(Communicator& communicator, Set& set, std::size_t n, int tag) {
    constexpr int sets = 2;
    HaloHead const& head = plan_.pass.head;
    int const direction = head.direction[n], peer = plan_.peers[n];
    int const there = tag + sets * direction, back = tag + sets * queue::opposite_direction(direction);
    std::size_t const first = head.line[n] * queue::halo_line;
    std::span<std::byte> const out(set.out + first, plan_.bytes[n]), in(set.in + first, plan_.bytes[n]);
    keep(set.sends,
         ready_ ? communicator.ready_send_init(out, peer, there) : communicator.send_init(out, peer, there));
    keep(set.receives, communicator.receive_init(in, peer, back));
  }
  void keep(std::vector<Request*>& some, Request request) {
    request.state()->gpu_memory = memory_;  // as long as a queue has it
    requests_.push_back(std::move(request));
    some.push_back(&requests_.back());
  }

  // What passes of some arrays: made once, used by many steps.
  struct Prepared {
    std::vector<void*> arrays;
    std::shared_ptr<queue::HaloJob const> jobs[2][queue::halo_works];  // by set and work
  };

  void check_elements() const {
    for (int f = 0; f < plan_.pass.head.fields; ++f)
      if (plan_.pass.field[f].element == Datatype::byte)
        throw Error(
            ErrorCode::usage,
            "a scatter of field " + std::to_string(f) +
                " (its elements are bytes, which are not added). Give its Datatype, or gather alone.");
  }
  // None: the fields' own.
  Prepared& prepared_for(std::span<void* const> arrays) {
    constexpr std::size_t most = 16;
    for (Prepared& one : prepared_)
      if (std::equal(one.arrays.begin(), one.arrays.end(), arrays.begin(), arrays.end())) return one;
    if (!arrays.empty()) check_arrays(arrays);
    if (prepared_.size() == most) prepared_.erase(prepared_.begin());
    prepared_.push_back({{arrays.begin(), arrays.end()}, {}});
    return prepared_.back();
  }
  void check_arrays(std::span<void* const> arrays) const {
    auto const fields = static_cast<std::size_t>(plan_.pass.head.fields);
    if (arrays.size() != fields)
      throw Error(ErrorCode::usage, counted(arrays.size(), "array") + " for a halo of " +
                                        counted(fields, "field") + " (each has one). Give all, or none.");
    for (std::size_t f = 0; f < fields; ++f) {
      if (arrays[f] == nullptr)
        throw Error(ErrorCode::usage, "no array for field " + std::to_string(f) + " (nullptr). Give one.");
      HaloArray array = plan_.pass.field[f];
      array.cells = static_cast<std::byte*>(arrays[f]);
      queue::HaloProblem const problem = queue::problem_of_array(*ranks_, plan_.pass, array);
      if (problem.is_unsupported) throw QueueError(Refusal::unsupported, problem.text);
      if (!problem.text.empty()) throw Error(ErrorCode::usage, problem.text);
    }
  }
  std::shared_ptr<queue::HaloJob const> job_of(Prepared const& prepared, HaloWork work) const {
    bool const goes_out = work == HaloWork::pack || work == HaloWork::take_out;
    auto job = std::make_shared<queue::HaloJob>(queue::HaloJob{plan_.pass, memory_});
    job->pass.head.work = work;
    job->pass.head.messages = goes_out ? sets_[turn_].out : sets_[turn_].in;
    for (std::size_t f = 0; f < prepared.arrays.size(); ++f) {
      HaloArray& array = job->pass.field[f];
      array.cells = static_cast<std::byte*>(prepared.arrays[f]);
      array.unit = queue::unit_of(array);
    }
    return job;
  }

  void check_run(Queue const& queue) const {
    if (!is_in_run_ || run_.lock() == queue.state_) return;
    if (run_.expired())
      throw QueueError(
          Refusal::other_queue,
          "a step of a halo with ready sends whose queue has gone in the middle of a run (it had "
          "started receives there, which nobody can end). Make another halo.");
    throw QueueError(Refusal::other_queue,
                     "a step of a halo with ready sends on another queue than the step before (which has "
                     "started receives there). End that run first.");
  }
  void begin_run(Queue& queue) {
    turn_ = 0;
    std::vector<Request*> first = sets_[turn_].receives;
    Request* const barrier = &barrier_;
    first.push_back(barrier);
    queue.enqueue_start_and_wait(first, {&barrier, 1});
    is_in_run_ = true;
    run_ = queue.state_;
  }
  void pass(Queue& queue, Prepared& prepared, HaloWork work, std::shared_ptr<void const> const& keeps) const {
    if (plan_.peers.empty()) return;
    auto& job = prepared.jobs[turn_][static_cast<std::size_t>(work)];
    if (job == nullptr) job = job_of(prepared, work);
    queue.state_->enqueue_pass(job, keeps);
  }

  std::shared_ptr<queue::CommunicatorState> ranks_;
  bool ready_;
  queue::HaloPlan plan_;
  std::shared_ptr<std::byte> memory_;
  std::vector<Request> requests_;
  std::vector<Set> sets_;
  Request barrier_;
  std::vector<Prepared> prepared_;  // the last ones
  bool is_in_run_ = false;
  std::weak_ptr<queue::QueueState> run_;  // where the receives of the next step are started
  std::size_t turn_ = 0;
};

QueueHalo::QueueHalo(Communicator& communicator, HaloGrid const& grid, std::vector<HaloField> const& fields,
                     HaloOptions const& options)
    : state_(std::make_unique<State>(communicator, grid, fields, options)) {}
QueueHalo::QueueHalo(QueueHalo&&) noexcept = default;
QueueHalo& QueueHalo::operator=(QueueHalo&&) noexcept = default;
QueueHalo::~QueueHalo() = default;

void QueueHalo::enqueue_gather(Queue& queue, HaloStep const& step) {
  state_->enqueue(queue, step, HaloWork::pack, HaloWork::unpack);
}
void QueueHalo::enqueue_scatter(Queue& queue, HaloStep const& step) {
  state_->enqueue(queue, step, HaloWork::take_out, HaloWork::add);
}
std::size_t QueueHalo::messages() const { return state_->messages(); }
std::size_t QueueHalo::bytes() const { return state_->bytes(); }

}  // namespace hostless
