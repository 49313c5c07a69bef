#pragma once

#include <string>

#include "hostless/base/error.hpp"

namespace hostless {

/// Why a call about requests and queues was refused. Nothing was enqueued, matched or freed. The numbers are
/// those of the C interface.
enum class Refusal : int {
  no_request = 16,       ///< nothing, freed already, or something else
  not_persistent = 17,   ///< the request of a match where a persistent one is wanted
  already_matched = 18,  ///< or being matched: once and for good
  not_matched = 19,
  already_started = 20,  ///< without a wait since
  not_started = 21,
  other_queue = 22,  ///< waited on another queue than it was started on, or started beside an unreached wait
  in_use = 23,    ///< freed, cancelled or waited for by the host while it is enqueued; called in a function
  wildcard = 24,  ///< any source, any tag
  mismatch = 25,  ///< its two sides do not fit: it can only be freed
  unsupported = 26,  ///< by this type of queue
  twice = 27,        ///< in one call
  too_many = 28      ///< started messages: what carries them has room for so many (ofi)
};

/// A refused call about requests or queues.
class QueueError : public Error {
 public:
  QueueError(Refusal why, std::string const& text) : Error(ErrorCode::usage, text), why_(why) {}
  Refusal why() const { return why_; }

 private:
  Refusal why_;
};

}  // namespace hostless
