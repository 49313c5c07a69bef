#pragma once
// One rank's end of an exchange that kernels of users execute: what both sides of the loader say of it.

#include <cstdint>
#include <memory>
#include <vector>

#include "exchange/kernel_duties.hpp"
#include "hostless/exchange/kernel_view.hpp"
#include "transport/stream/stream_setup.hpp"

namespace hostless::gpu {

struct KernelProblem {
  StreamSetup setup;
  KernelDuties const* duties = nullptr;
  int words = 1;  ///< of an item
  std::int64_t ghosts = 0;
  int owned = -1, ghosts_below = 0;  ///< where ghosts lie around owned items
};

/// Where a rank's words are. Plain data, gathered by the caller.
struct KernelContact {
  int device = 0;
  std::int64_t staged = 0, ghosts = 0, answers = 0;  ///< of one epoch: words, words and answers
  LentMemory window;
};

class KernelWindow {
 public:
  virtual ~KernelWindow() = default;
  virtual KernelContact contact() const = 0;
  virtual void connect(std::vector<KernelContact> const& all) = 0;
  virtual kernel::KernelExchange const& view() const = 0;
  virtual bool lost() const = 0;
  virtual std::int64_t bytes() const = 0;
};

/// Inside a GPU library.
std::unique_ptr<KernelWindow> make_kernel_window(KernelProblem const& problem);

}  // namespace hostless::gpu
