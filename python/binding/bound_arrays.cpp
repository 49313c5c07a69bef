#include <chrono>
#include <cstring>
#include <optional>

#include "exchanges.hpp"
#include "hostless/base/error.hpp"
#include "hostless/base/wait.hpp"

namespace nb = nanobind;

namespace hostless::python {
namespace {

constexpr auto between_looks = std::chrono::milliseconds(100);

/// Holds arrays for whoever may still read or write them, perhaps longer than the interpreter is there.
std::shared_ptr<void> owner_of(nb::object kept) {
  return {kept.release().ptr(), [](PyObject* held) {
            if (Py_IsInitialized() == 0) return;  // the process ends, and its memory with it
            nb::gil_scoped_acquire const acquire;
            Py_DECREF(held);
          }};
}

Element element_from(std::string const& text) {
  if (text == "f32") return Element::f32;
  if (text == "f64") return Element::f64;
  if (text == "i32") return Element::i32;
  if (text == "i64") return Element::i64;
  throw Error(ErrorCode::usage, "unknown element '" + text + "'. Use f32, f64, i32 or i64.");
}

std::byte* memory_at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

}  // namespace

BoundArrays::BoundArrays(std::shared_ptr<PlannedExchange> plan, std::vector<FieldWords> const& fields,
                         BindWords const& words, nb::object kept)
    : plan_(std::move(plan)), words_(words), kept_(kept) {
  Ranks& ranks = plan_->ranks();
  ranks.check_usable();
  // Where nobody comes late, this object alone holds the arrays, and the garbage collector sees it.
  std::shared_ptr<void> owner;
  if (!on_gpu() && ranks.transport().capabilities().late_access) owner = owner_of(std::move(kept));
  {
    Ranks::Use const use(ranks);
    bind(fields, std::move(owner));
  }
  ranks.add(this);
}

BoundArrays::~BoundArrays() {
  Ranks& ranks = plan_->ranks();
  if (!ranks.is_here()) {  // of the parent, whose threads did not come along
    static_cast<void>(fill_.release());
    static_cast<void>(sum_.release());
    static_cast<void>(gpu_.release());
    return;
  }
  ranks.remove(this);
  nb::gil_scoped_release const release;
  end();
}

std::vector<Field> BoundArrays::fields_of(std::vector<FieldWords> const& words) const {
  std::vector<Field> all;
  bool const around = plan_->plan().receive == 0;
  for (FieldWords const& one : words) {
    std::byte* const owned = memory_at(one.owned);
    all.push_back(around ? Field::around(owned, one.item_bytes)
                         : Field::apart(owned, memory_at(one.ghosts), one.item_bytes));
  }
  return all;
}

std::vector<SumField> BoundArrays::sum_fields_of(std::vector<FieldWords> const& words) {
  std::vector<SumField> all;
  ExchangePlan const& plan = plan_->plan();
  for (FieldWords const& one : words) {
    std::byte* const owned = memory_at(one.owned);
    std::byte const* ghosts = memory_at(one.ghosts);
    if (plan.receive == 0) {
      auto const below = static_cast<std::size_t>(plan.ghosts_below) * one.item_bytes;
      auto const all_of_them = static_cast<std::size_t>(plan.ghosts) * one.item_bytes;
      gathered_.push_back({owned - below, owned + static_cast<std::size_t>(plan.owned) * one.item_bytes,
                           below, all_of_them - below, std::make_unique<std::byte[]>(all_of_them)});
      ghosts = gathered_.back().together.get();
    }
    all.push_back({ghosts, owned, element_from(one.element), one.values});
  }
  return all;
}

// On the ranks' thread, without the GIL.
void BoundArrays::bind(std::vector<FieldWords> const& fields, std::shared_ptr<void> owner) {
  Transport& transport = plan_->ranks().transport();
  WaitLimits const limits{words_.first_s, words_.later_s};
  GpuExchangeOptions gpu;
  std::optional<ReversePlan> reverse;
  std::vector<SumField> sums;
  transport.group().together([&] {
    if (on_gpu()) gpu = {gpu_transport_from(words_.gpu_transport.c_str()), limits, words_.device};
    if (on_gpu() && words_.adds && plan_->plan().receive == 0)
      throw Error(
          ErrorCode::usage,
          "ghosts around owned items in the memory of a GPU are to be added (kernels read them side by "
          "side). Make the plan without around.");
    if (!words_.adds) return;
    reverse = plan_->reverse();
    sums = sum_fields_of(fields);
  });
  ExchangeOptions host;
  host.limits = limits;
  // What lies around owned items is sent from a copy here, which goes with this object.
  if (gathered_.empty()) host.owner = std::move(owner);
  if (on_gpu() && reverse) {
    gpu_ = std::make_unique<GpuExchange>(transport, *reverse, sums, gpu);
  } else if (on_gpu()) {
    gpu_ = std::make_unique<GpuExchange>(transport, plan_->plan(), fields_of(fields), gpu);
  } else if (reverse) {
    sum_ = std::make_unique<ReverseExchange>(transport, *reverse, sums, host);
  } else {
    fill_ = std::make_unique<Exchange>(transport, plan_->plan(), fields_of(fields), host);
  }
}

void BoundArrays::check_open() const {
  if (closed())
    throw Error(ErrorCode::usage, "the exchange is closed (its arrays are free). Make a new one.");
}

void BoundArrays::require_ranks() {
  lost_ = lost_ || (fill_ && fill_->lost()) || (sum_ && sum_->lost()) || (gpu_ && gpu_->lost());
  if (lost_)
    throw Error(
        ErrorCode::peer_lost,
        "a rank was lost in an exchange of ghosts (it has left, died or been silent for longer than the "
        "limit). Make a new plan with the ranks that live.");
}

// What is queued may find out that a rank is lost: it is so from then on.
template <class Call>
void BoundArrays::queue(Call const& call) {
  try {
    call();
  } catch (Error const& e) {
    lost_ = lost_ || e.code() == ErrorCode::peer_lost;
    throw;
  }
}

void BoundArrays::start(std::uintptr_t stream) {
  Ranks::Use const use(plan_->ranks());
  check_open();
  for (Gathered const& one : gathered_) {
    if (one.bytes_below != 0) std::memcpy(one.together.get(), one.below, one.bytes_below);
    if (one.bytes_above != 0) std::memcpy(one.together.get() + one.bytes_below, one.above, one.bytes_above);
  }
  if (fill_) fill_->start();
  if (sum_) sum_->start();
  if (gpu_) queue([&] { gpu_->start(memory_at(stream)); });
  under_way_ = true;
  require_ranks();
}

void BoundArrays::finish(std::uintptr_t stream) {
  if (!on_gpu()) return wait();
  Ranks::Use const use(plan_->ranks());
  check_open();
  queue([&] { gpu_->finish(memory_at(stream)); });
  require_ranks();
}

void BoundArrays::enqueue(std::uintptr_t stream) {
  if (!on_gpu()) {
    start(stream);
    return wait();
  }
  Ranks::Use const use(plan_->ranks());
  check_open();
  queue([&] { gpu_->enqueue(memory_at(stream)); });
  under_way_ = true;
  require_ranks();
}

bool BoundArrays::advance() {
  bool const complete = fill_ ? fill_->test() : sum_ ? sum_->test() : gpu_->test();
  if (complete) under_way_ = false;
  return complete;
}

bool BoundArrays::test() {
  Ranks::Use const use(plan_->ranks());
  check_open();
  if (advance()) return true;
  require_ranks();
  return false;
}

// The host's exchanges know how long they have waited; those of a GPU are waited for here.
void BoundArrays::wait() {
  Ranks::Use const use(plan_->ranks());
  check_open();
  Countdown countdown(Deadline::after(waited_before_ ? words_.later_s : words_.first_s));
  auto looked = Clock::now();
  for (Backoff backoff; !advance(); backoff.pause()) {
    require_ranks();
    if (!backoff.look()) continue;
    if (gpu_ && countdown.is_over() && !advance()) gpu_->leave();
    if (Clock::now() - looked < between_looks) continue;
    looked = Clock::now();
    plan_->ranks().look();
  }
  waited_before_ = true;
}

void BoundArrays::close() {
  if (closed() || !plan_->ranks().is_here()) return;
  {
    Ranks::Use const use(plan_->ranks(), true);
    end();
  }
  plan_->ranks().remove(this);
}

void BoundArrays::leave() {
  if (closed()) return;
  Ranks::Use const use(plan_->ranks(), true);
  give_up();
}

void BoundArrays::give_up() noexcept {
  lost_ = true;
  if (fill_) fill_->leave();
  if (sum_) sum_->leave();
  if (gpu_) gpu_->leave();
}

// An exchange that is given up while the others wait for it: they are told. What is on a GPU goes on without
// the host, and is waited for.
void BoundArrays::end() noexcept {
  try {
    if (under_way_ && !gpu_ && !closed() && !advance()) give_up();
  } catch (...) {  // of a transport that has broken off
  }
  fill_.reset();
  sum_.reset();
  gpu_.reset();
  if (!kept_.is_valid()) return;
  nb::gil_scoped_acquire const acquire;
  kept_.reset();
}

GpuExchange const& BoundArrays::gpu() const {
  check_open();
  if (!gpu_)
    throw Error(ErrorCode::usage,
                "an exchange of the processor was asked for what a GPU's knows. Pass arrays of a GPU.");
  return *gpu_;
}

}  // namespace hostless::python
