#pragma once
// One message of a request, on this side, once it is matched.

#include <memory>

#include "queue/message_text.hpp"
#include "queue/offer.hpp"

namespace hostless::queue {

class Part {
 public:
  virtual ~Part() = default;
  /// Never blocks; the last one is done.
  virtual void start() = 0;
  virtual Progress poll() = 0;
  /// This side goes: nobody touches its buffer afterwards, the other side is told. Before destruction.
  virtual void leave() noexcept = 0;
};

/// Both offers were told and heard; `mine` has this side's memory, `other` the other's.
std::unique_ptr<Part> open_part(PointToPoint& point, Offer& mine, Offer const& other);
/// The same where streams start and wait.
std::unique_ptr<gpu::MessageEnd> open_end(gpu::MessageLibrary& library, Offer const& mine,
                                          Offer const& other);

}  // namespace hostless::queue
