#pragma once
// NVSHMEM in this process, loaded when it is asked for. It is met once, by all ranks together, and left when
// the process ends: what it does collectively has no deadline of its own, so every such call gets one here,
// and a library that has not kept one is not called again. No GPU is known here: streams are addresses.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transport/stream/stream_setup.hpp"

namespace hostless::gpu::nvshmem {

constexpr int set_signal = 9, add_to_signal = 10;
using StreamAddress = void*;

/// Declared here: its interface has not changed since 3.0. Rank r of the ranks that met is PE r.
struct Functions {
  int (*make_name)(UniqueId*);
  int (*set_name)(int rank, int ranks, UniqueId const*, void* attributes);
  int (*start)(unsigned how, void* attributes);
  void (*finalize)();
  int (*rank)();
  int (*ranks)();
  void* (*allocate)(std::size_t);
  void (*release)(void*);
  void* (*address_of)(void const* here, int rank);
  void (*put)(void* to, void const* from, std::size_t bytes, std::uint64_t* signal, std::uint64_t value,
              int how, int rank, StreamAddress);
  void (*tell)(std::uint64_t* signal, std::uint64_t value, int how, int rank, StreamAddress);
  void (*quiet)(StreamAddress);
  void (*version)(int*, int*, int*);  ///< or null
};

/// Errors  environment  it cannot be loaded
Functions const& functions();
/// With its version.
std::string describe();
/// By which paths it would put, from its environment, its files and its defaults: only ranks that have met
/// can ask it what it has chosen.
std::string how_it_would_carry();
/// Why it cannot be used again in this process; empty: it can.
std::string const& why_given_up();
/// It is not called again, also not at the end of the process.
void give_up(std::string const& why);

/// Runs a call that has no deadline on a thread of its own; `enter` is called there first. False: it has not
/// returned in time, and the library is given up.
bool call_within(double seconds, std::function<void()> const& enter, std::function<void()> const& call,
                 std::string const& what);

/// As those of stream_transports.hpp. Errors  environment  also: it was given up
SymmetricOffer offer(std::int64_t wanted_bytes, int rank);
std::shared_ptr<SymmetricMemory> take(StreamSetup const& setup, std::vector<SymmetricOffer> const& all,
                                      std::function<void()> const& enter);
/// A block whose last user has lost a rank: puts of that time may still come.
void never_again(SymmetricMemory const& memory);

}  // namespace hostless::gpu::nvshmem
