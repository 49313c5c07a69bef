#pragma once
// Halos of grids as Python holds them.

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hostless/queue/halo.hpp"
#include "kept.hpp"

namespace hostless::python {

/// What a rank says of its halo.
struct HaloWords {
  HaloGrid grid;
  std::vector<HaloField> fields;
  HaloOptions options;
};

/// A QueueHalo with its arrays, which live as long as it, and as long as a queue has a step of it.
class HeldHalo {
 public:
  /// kept: the arrays, and what else it needs
  HeldHalo(std::unique_ptr<QueueHalo> made, nanobind::object kept);
  ~HeldHalo() { let_go(); }
  HeldHalo(HeldHalo const&) = delete;
  HeldHalo& operator=(HeldHalo const&) = delete;

  /// While it lives the halo is at work here.
  /// Errors  usage  closed, of another process, or at work in another thread
  class Use {
   public:
    explicit Use(HeldHalo& halo);
    ~Use() { halo_.busy_ = false; }
    Use(Use const&) = delete;
    Use& operator=(Use const&) = delete;

   private:
    HeldHalo& halo_;
  };
  /// Not before a Use, nor without the GIL: what the step keeps.
  HaloStep step(std::vector<void*> const& arrays, bool ends_run, nanobind::object others) const;
  QueueHalo& halo() { return *halo_; }

  /// What queues have of it goes on.
  void close();
  bool exists() const { return halo_ != nullptr; }
  void let_go() noexcept;
  std::size_t messages() const { return messages_; }
  std::size_t bytes() const { return bytes_; }
  /// Nothing where a queue has them too.
  nanobind::handle kept() const { return kept_.use_count() == 1 ? kept_.get() : nullptr; }

 private:
  std::unique_ptr<QueueHalo> halo_;
  PythonReference kept_;
  std::size_t messages_, bytes_;
  std::atomic<bool> busy_{false};
  long const process_;
};

}  // namespace hostless::python
