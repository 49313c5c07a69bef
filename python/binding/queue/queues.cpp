#include "queues.hpp"

#include <unistd.h>

#include <exception>
#include <thread>
#include <utility>

namespace nb = nanobind;

namespace hostless::python {
namespace {

std::vector<Request*> all_of(std::vector<HeldRequest*> const& requests) {
  std::vector<Request*> all;
  all.reserve(requests.size());
  for (HeldRequest* const one : requests) all.push_back(one == nullptr ? nullptr : &one->checked());
  return all;
}

}  // namespace

std::unique_ptr<HeldRequest> begin_match(std::vector<HeldRequest*> const& requests) {
  auto const all = all_of(requests);
  Request match;
  {
    Away const away;
    match = hostless::begin_match(all);
  }
  return std::make_unique<HeldRequest>(std::move(match));
}

HeldQueue::HeldQueue(std::string const& type, std::uintptr_t stream, nb::object kept)
    : stream_(keep(std::move(kept))), process_(getpid()) {
  Away const away;
  queue_ = std::make_unique<Queue>(queue_type_from(type.c_str()), reinterpret_cast<void*>(stream));
}

HeldQueue::~HeldQueue() {
  if (process_ != getpid()) {  // of the parent, whose threads did not come along
    static_cast<void>(queue_.release());
    return;
  }
  if (!queue_) return;
  // Its last reference may go in one of its own functions, for whose return it waits.
  if (is_in_function()) {
    try {
      std::thread([queue = std::move(queue_), stream = std::move(stream_)]() mutable {
        queue.reset();
      }).detach();
    } catch (std::exception const&) {  // no thread: it stays
      static_cast<void>(queue_.release());
    }
    return;
  }
  {
    nb::gil_scoped_release const release;
    queue_.reset();
  }
  stream_.reset();
  drop_unkept();
}

// Without the GIL, which a function may need that a call waits for; inside a function the library refuses.
template <class Call>
auto HeldQueue::use(Call const& call) {
  struct Busy {
    explicit Busy(std::atomic<bool>* flag_) : flag(flag_) {}
    ~Busy() {
      if (flag != nullptr) *flag = false;
    }
    Busy(Busy const&) = delete;
    Busy& operator=(Busy const&) = delete;
    std::atomic<bool>* flag;
  };
  if (process_ != getpid())
    refuse("a queue of another process (a fork takes none along). Make it after the fork.");
  bool const is_inside = is_in_function();
  if (!is_inside) {
    drop_unkept();
    if (busy_.exchange(true))
      refuse(
          "the queue is at work in another thread (one at a time calls about it). Wait for that thread, or "
          "make a queue for each.");
  }
  Busy const busy(is_inside ? nullptr : &busy_);
  if (!queue_) refuse("the queue is closed (it does no work any more). Make a new hostless.Queue.");
  Away const away;
  return call(*queue_);
}

void HeldQueue::enqueue_start(std::vector<HeldRequest*> const& requests) {
  auto const all = all_of(requests);
  use([&](Queue& queue) { queue.enqueue_start(all); });
}

void HeldQueue::enqueue_wait(std::vector<HeldRequest*> const& requests) {
  auto const all = all_of(requests);
  use([&](Queue& queue) { queue.enqueue_wait(all); });
}

void HeldQueue::enqueue_start_and_wait(std::vector<HeldRequest*> const& starts,
                                       std::vector<HeldRequest*> const& waits) {
  auto const first = all_of(starts), then = all_of(waits);
  use([&](Queue& queue) { queue.enqueue_start_and_wait(first, then); });
}

void HeldQueue::enqueue_wait_all() {
  use([](Queue& queue) { queue.enqueue_wait_all(); });
}

void HeldQueue::enqueue_function(nb::object function) {
  PythonReference const kept = keep(std::move(function));
  use([&](Queue& queue) { queue.enqueue_function([kept] { call_function(kept.get()); }); });
}

template <class Enqueue>
void HeldQueue::enqueue_step(HeldHalo& halo, std::vector<std::uintptr_t> const& arrays, bool ends_run,
                             nb::object others, Enqueue const& enqueue) {
  refuse_in_function("a step of a halo");
  HeldHalo::Use const used(halo);
  std::vector<void*> addresses;
  addresses.reserve(arrays.size());
  for (std::uintptr_t const address : arrays) addresses.push_back(reinterpret_cast<void*>(address));
  HaloStep const step = halo.step(addresses, ends_run, std::move(others));
  use([&](Queue& queue) { enqueue(halo.halo(), queue, step); });
}

void HeldQueue::enqueue_gather(HeldHalo& halo, std::vector<std::uintptr_t> const& arrays, bool ends_run,
                               nb::object others) {
  enqueue_step(halo, arrays, ends_run, std::move(others),
               [](QueueHalo& of, Queue& queue, HaloStep const& step) { of.enqueue_gather(queue, step); });
}

void HeldQueue::enqueue_scatter(HeldHalo& halo, std::vector<std::uintptr_t> const& arrays, bool ends_run,
                                nb::object others) {
  enqueue_step(halo, arrays, ends_run, std::move(others),
               [](QueueHalo& of, Queue& queue, HaloStep const& step) { of.enqueue_scatter(queue, step); });
}

void HeldQueue::wait() {
  auto const look = look_of_caller();
  use([&](Queue& queue) { queue.wait(look); });
}

bool HeldQueue::test() {
  return use([](Queue& queue) { return queue.test(); });
}

bool HeldQueue::is_idle() {
  return use([](Queue& queue) { return queue.is_idle(); });
}

void HeldQueue::set_limit(double seconds) {
  use([&](Queue& queue) { queue.set_limit(seconds); });
}

void HeldQueue::close() {
  refuse_in_function("the end of a queue");
  if (!queue_) return;
  use([this](Queue&) { queue_.reset(); });
  stream_.reset();
  drop_unkept();
}

}  // namespace hostless::python
