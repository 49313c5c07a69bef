#include "transport/mpi/mpi_pending.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace hostless::mpi {
namespace {

struct One {
  std::vector<MPI_Request> requests;
  std::shared_ptr<void const> memory;
};
struct All {
  std::mutex mutex;
  std::vector<One> of;
};
All& all() {
  static All* const here = new All;  // outlives whatever ends with the process
  return *here;
}

// Each by itself, because only those that are not persistent become null.
bool is_done(One& one) {
  bool done = true;
  for (MPI_Request& request : one.requests) {
    if (request == MPI_REQUEST_NULL) continue;
    int flag = 0;
    if (MPI_Test(&request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS) flag = 0;
    if (flag != 0 && request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    done = done && flag != 0;
  }
  return done;
}

}  // namespace

void Abandoned::keep(std::vector<MPI_Request> requests, std::shared_ptr<void const> memory) noexcept {
  All& here = all();
  std::lock_guard const lock(here.mutex);
  here.of.push_back({std::move(requests), std::move(memory)});
}

void Abandoned::collect() noexcept {
  All& here = all();
  std::lock_guard const lock(here.mutex);
  here.of.erase(std::remove_if(here.of.begin(), here.of.end(), is_done), here.of.end());
}

}  // namespace hostless::mpi
