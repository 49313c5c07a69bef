#pragma once
// Launches a persistent kernel until its text has ended, and speaks with it while it runs.

#include <functional>

#include "solve/gpu/instance.hpp"

namespace hostless::gpu {

class Persistent {
 public:
  /// Errors  usage  the kernel does not fit on this GPU
  Persistent(Arguments& arguments, Instance const& instance, int device);
  /// Launches again after every pause of its own. Blocks; asks `stop` a thousand times a second.
  void run(Arguments& arguments, std::function<bool()> const& stop,
           std::function<void(std::int64_t, double)> const& progress, Cost& cost);

 private:
  void launch(Arguments& arguments, std::function<bool()> const& stop,
              std::function<void(std::int64_t, double)> const& progress, Cost& cost);

  Instance const& instance_;
  Stream stream_;
  Event begin_, end_;
  Array<unsigned char> words_;
  Array<std::uint32_t> epoch_;
  Array<double> spare_;
  Mapped<Orders> orders_;
  Mapped<Progress> progress_;
};

}  // namespace hostless::gpu
