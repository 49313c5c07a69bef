// Transports in the C interface.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/guarded.hpp"
#include "base/processors.hpp"
#include "hostless/transport/composite.hpp"
#include "hostless/transport/mpi.hpp"

using namespace hostless::c_interface;

namespace {

void open_over_mpi(char const* vendor, int fortran_communicator, hostless_transport** transport,
                   bool by_reach) {
  clear(transport);
  need(transport, "transport is NULL.");
  need(vendor, "vendor is NULL. Use openmpi or mpich.");
  bool const openmpi = std::strcmp(vendor, "openmpi") == 0;
  if (!openmpi && std::strcmp(vendor, "mpich") != 0)
    misused(fmt::format("unknown MPI vendor '{}'. Use openmpi or mpich.", vendor));
  auto made = std::make_unique<hostless_transport>();
  made->owned = hostless::open_mpi_transport(
      openmpi ? hostless::MpiVendor::openmpi : hostless::MpiVendor::mpich, fortran_communicator);
  if (by_reach) made->owned = hostless::open_composite_transport(std::move(made->owned));
  made->transport = made->owned.get();
  *transport = made.release();
}

}  // namespace

extern "C" {

char const* hostless_last_error(void) { return last_error().c_str(); }

int hostless_open_single(hostless_transport** transport) {
  return guarded([&] {
    clear(transport);
    need(transport, "transport is NULL.");
    auto made = std::make_unique<hostless_transport>();
    made->owned = hostless::single_transport();
    made->transport = made->owned.get();
    *transport = made.release();
  });
}

int hostless_open_mpi(char const* vendor, int fortran_communicator, hostless_transport** transport) {
  return guarded([&] { open_over_mpi(vendor, fortran_communicator, transport, false); });
}

int hostless_open_composite(char const* vendor, int fortran_communicator, hostless_transport** transport) {
  return guarded([&] { open_over_mpi(vendor, fortran_communicator, transport, true); });
}

// One that hostless_run_threads lends is its own.
void hostless_close(hostless_transport* transport) {
  if (transport != nullptr && transport->owned) delete transport;
}

int hostless_run_threads(int ranks, int (*body)(hostless_transport*, void*), void* user) {
  int result = 0;
  int const code = guarded([&] {
    need(reinterpret_cast<void const*>(body), "body is NULL.");
    if (ranks > hostless::most_workers)
      misused(fmt::format("{} ranks (at most {} threads of one machine are started). Use fewer, or MPI.",
                          ranks, hostless::most_workers));
    std::vector<int> codes(static_cast<std::size_t>(std::max(ranks, 1)), 0);
    std::vector<std::string> said(codes.size());  // errors of the bodies' threads, which end
    auto collect = [&] {
      for (std::size_t r = 0; r < codes.size() && result == 0; ++r) {
        result = codes[r];
        if (result != 0)
          failed(result, fmt::format("the body of rank {} returned {}{}{}", r, result,
                                     said[r].empty() ? "." : ": ", said[r])
                             .c_str());
      }
    };
    try {
      hostless::run_with_threads_transport(ranks, [&](hostless::Transport& t) {
        hostless_transport handle;
        handle.transport = &t;
        auto const rank = static_cast<std::size_t>(t.group().rank());
        last_error().clear();  // of what this thread did before
        int& mine = codes[rank];
        mine = body(&handle, user);
        if (mine != 0) said[rank] = last_error();
        if (mine != 0) throw hostless::Error(hostless::ErrorCode::aborted, "a rank's body failed.");
      });
    } catch (hostless::Error const& e) {
      collect();
      if (e.code() != hostless::ErrorCode::aborted) throw;
    }
    collect();
  });
  return code != HOSTLESS_OK ? code : result;
}

int hostless_rank(hostless_transport const* transport) {
  return transport == nullptr ? -1 : transport->transport->group().rank();
}
int hostless_size(hostless_transport const* transport) {
  return transport == nullptr ? -1 : transport->transport->group().size();
}

}  // extern "C"
