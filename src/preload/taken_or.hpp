#pragma once
// What each of MPI's names does here.

#include <exception>
#include <new>

#include "preload/communicator.hpp"

namespace hostless::preload {

/// Whether there is a communicator and buffers to look at; else MPI says what is wrong.
inline bool is_plausible(Call const& call) {
  auto const is_right = [](Side const& side) {
    bool const in_place = side.memory == MPI_IN_PLACE;
    return !in_place && side.counts.equal >= 0 && (side.type != MPI_DATATYPE_NULL || side.counts.equal == 0);
  };
  return call.comm != MPI_COMM_NULL && is_right(call.send) && is_right(call.receive);
}

/// Carries the call, or hands it on and counts why. No exception crosses into MPI's names.
template <class HandOn>
int taken_or(Call const& call, HandOn const& hand_on) noexcept {
  Reason reason = Reason::mpi_refuses;
  if (is_plausible(call)) {
    Communicator* communicator = nullptr;
    try {
      int code = MPI_SUCCESS;
      communicator = communicator_of(call.comm);
      auto const is_handed_on =
          communicator == nullptr ? std::optional(Reason::mpi_refuses) : communicator->carry(call, code);
      if (!is_handed_on) return code;
      reason = *is_handed_on;
    } catch (std::exception const& error) {  // other ranks may have gone on with the call
      if (communicator != nullptr) communicator->leave();
      return fail(call.comm, error.what());
    }
  }
  report().handed_on(call.name, reason);
  return hand_on();
}

/// Once, where the environment says.
void write_report();

}  // namespace hostless::preload
