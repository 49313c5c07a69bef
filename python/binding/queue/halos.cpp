#include "halos.hpp"

#include <unistd.h>

#include <utility>

#include "../away.hpp"
#include "queues.hpp"

namespace nb = nanobind;

namespace hostless::python {
HeldHalo::HeldHalo(std::unique_ptr<QueueHalo> made, nb::object kept)
    : halo_(std::move(made)),
      kept_(keep(std::move(kept))),
      messages_(halo_->messages()),
      bytes_(halo_->bytes()),
      process_(getpid()) {}

HeldHalo::Use::Use(HeldHalo& halo) : halo_(halo) {
  if (halo.process_ != getpid())
    refuse("a halo of another process (a fork takes none along). Make it after the fork.");
  if (halo.busy_.exchange(true))
    refuse(
        "the halo is at work in another thread (one at a time calls about it). Wait for that thread, or make "
        "a halo for each.");
  if (halo.exists()) return;
  halo.busy_ = false;
  refuse("the halo is closed (its messages have gone). Make a new hostless.QueueHalo.");
}

HaloStep HeldHalo::step(std::vector<void*> const& arrays, bool ends_run, nb::object others) const {
  return {arrays, ends_run, others.is_none() ? kept_ : keep(std::move(others))};
}

void HeldHalo::close() {
  refuse_in_function("the end of a halo");
  if (!exists()) return;
  {
    Use const use(*this);
    auto gone = std::move(halo_);  // with the GIL: another thread may ask whether it exists
    Away const away;
    gone.reset();
  }
  kept_.reset();
  drop_unkept();
}

void HeldHalo::let_go() noexcept {
  if (process_ != getpid()) {  // of the parent, whose threads did not come along
    static_cast<void>(halo_.release());
    static_cast<void>(new PythonReference(std::move(kept_)));
    return;
  }
  {
    nb::gil_scoped_release const release;
    halo_.reset();
  }
  kept_.reset();
  drop_unkept();
}

}  // namespace hostless::python
