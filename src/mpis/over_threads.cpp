// MPIS_... and what a program needs around it where ranks are threads.
#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#define HOSTLESS_MPIS_LIBRARY  // whose main is the program's
#include "api/guarded.hpp"
#include "base/variable.hpp"
#include "hostless/base/environment.hpp"
#include "mpis/flavour.hpp"

namespace hostless::mpis {
namespace {

thread_local hostless_transport* of_this_rank = nullptr;
thread_local int gpu_of_this_rank = -1;

struct Infos {
  std::mutex mutex;
  std::map<MPI_Info, std::map<std::string, std::string>> all;
  MPI_Info next = MPI_INFO_NULL;
};
Infos& infos() {
  static Infos* const here = new Infos;
  return *here;
}

struct Words {
  int count;
  char** word;
  int gpus;  ///< whose streams do the work; 0: the host does
};

int run_rank(hostless_transport* transport, void* user) {
  of_this_rank = transport;
  Words const& words = *static_cast<Words*>(user);
  if (int const gpus = words.gpus; gpus > 0) {
    gpu_of_this_rank = hostless_rank(transport) % gpus;
    if (int const code = hostless_requests_on_gpu(transport, gpu_of_this_rank); code != HOSTLESS_OK) {
      std::fprintf(stderr, "hostless: %s\n", hostless_last_error());
      return code;
    }
    // Before anybody waits.
    int const code = MPI_Barrier(MPI_COMM_WORLD);  // bounded: Group::barrier
    if (code != MPI_SUCCESS) return code;
  }
  return hostless_mpis_main(words.count, words.word);
}

int run_all(int count, char** words) {
  constexpr std::int64_t ranks = 2;
  if (int const code = hostless::c_interface::guarded(hostless::check_queue_environment);
      code != HOSTLESS_OK) {
    std::fprintf(stderr, "hostless: %s\n", hostless_last_error());
    return code;
  }
  auto const number = [](char const* variable, std::int64_t otherwise) {
    return static_cast<int>(std::min<std::int64_t>(count_of(variable, otherwise), INT_MAX));
  };
  Words given{count, words, number("HOSTLESS_MPIS_GPUS", 0)};
  int const wanted = number("HOSTLESS_MPIS_RANKS", ranks);
  int const code = hostless_run_threads(wanted, run_rank, &given);
  if (code != 0) std::fprintf(stderr, "hostless: %s\n", hostless_last_error());
  return code;
}

}  // namespace

hostless_transport* transport_of(MPI_Comm comm) {
  if (comm == MPI_COMM_WORLD && of_this_rank != nullptr) return of_this_rank;
  hostless::c_interface::failed(MPI_ERR_OTHER,
                                comm == MPI_COMM_WORLD
                                    ? "MPI_COMM_WORLD of a thread that is no rank, or after MPI_Finalize."
                                    : "a communicator that is none (there is MPI_COMM_WORLD).");
  return nullptr;
}
std::size_t packed_bytes(MPI_Datatype datatype) { return static_cast<std::size_t>(datatype) / 16; }
int datatype_of(MPI_Datatype datatype) { return datatype % 16 <= HOSTLESS_DATA_BYTE ? datatype % 16 : -1; }
int reduction_of(MPI_Op op) { return op >= MPI_SUM && op <= MPI_MAX ? op : -1; }
int gpu_of_rank() { return gpu_of_this_rank; }
void write_bytes(MPI_Status& status, std::size_t bytes) { status.bytes = bytes; }
bool is_started() { return of_this_rank != nullptr; }
int begin(int*, char***, int* provided) {
  *provided = MPI_THREAD_MULTIPLE;
  return of_this_rank != nullptr ? MPI_SUCCESS : MPI_ERR_OTHER;
}

}  // namespace hostless::mpis

using namespace hostless::mpis;

extern "C" {

int MPI_Init(int* argc, char*** argv) { return MPIS_Init(argc, argv); }
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return MPIS_Init_thread(argc, argv, required, provided);
}
// What a rank has sent is there, so it says that it leaves, as over MPI: whoever waits for what it has not is
// told. Then all end together.
int MPI_Finalize(void) {
  if (transport_of(MPI_COMM_WORLD) == nullptr) return MPI_ERR_OTHER;
  auto const left = hostless::c_interface::guarded([] {
    auto& mine = of_this_rank->communicator;
    if (!mine) mine = std::make_unique<hostless::Communicator>(*of_this_rank->transport);
    mine.reset();
  });
  if (left != HOSTLESS_OK) return MPI_ERR_OTHER;
  int const code = MPI_Barrier(MPI_COMM_WORLD);  // bounded: Group::barrier
  of_this_rank = nullptr;
  return code;
}
int MPI_Comm_rank(MPI_Comm comm, int* rank) {
  *rank = hostless_rank(transport_of(comm));
  return *rank < 0 ? MPI_ERR_OTHER : MPI_SUCCESS;
}
int MPI_Comm_size(MPI_Comm comm, int* size) {
  *size = hostless_size(transport_of(comm));
  return *size < 0 ? MPI_ERR_OTHER : MPI_SUCCESS;
}
int MPI_Barrier(MPI_Comm comm) {  // bounded: Group::barrier
  hostless_transport* const transport = transport_of(comm);
  if (transport == nullptr) return MPI_ERR_OTHER;
  return hostless::c_interface::guarded([&] { transport->transport->group().barrier(); }) == HOSTLESS_OK
             ? MPI_SUCCESS
             : MPI_ERR_OTHER;
}
int MPI_Abort(MPI_Comm, int code) { std::_Exit(code); }
double MPI_Wtime(void) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
int MPI_Type_size(MPI_Datatype datatype, int* size) {
  *size = static_cast<int>(packed_bytes(datatype));
  return MPI_SUCCESS;
}
int MPI_Get_count(MPI_Status const* status, MPI_Datatype datatype, int* count) {
  std::size_t const one = packed_bytes(datatype);
  bool const is_whole = one != 0 && status->bytes % one == 0 && status->bytes / one <= INT_MAX;
  *count = is_whole ? static_cast<int>(status->bytes / one) : MPI_UNDEFINED;
  return MPI_SUCCESS;
}
int MPI_Info_create(MPI_Info* info) {
  Infos& here = infos();
  std::lock_guard const lock(here.mutex);
  *info = ++here.next;
  here.all[*info];
  return MPI_SUCCESS;
}
int MPI_Info_set(MPI_Info info, char const* key, char const* value) {
  Infos& here = infos();
  std::lock_guard const lock(here.mutex);
  auto const found = here.all.find(info);
  if (found == here.all.end()) return MPI_ERR_OTHER;
  found->second[key] = value;
  return MPI_SUCCESS;
}
int MPI_Info_get(MPI_Info info, char const* key, int most, char* value, int* is_there) {
  Infos& here = infos();
  std::lock_guard const lock(here.mutex);
  auto const found = here.all.find(info);
  if (found == here.all.end()) return MPI_ERR_OTHER;
  auto const pair = found->second.find(key);
  *is_there = pair != found->second.end() ? 1 : 0;
  if (*is_there != 0) value[pair->second.copy(value, static_cast<std::size_t>(most))] = '\0';
  return MPI_SUCCESS;
}
int MPI_Info_free(MPI_Info* info) {
  Infos& here = infos();
  std::lock_guard const lock(here.mutex);
  here.all.erase(*info);
  *info = MPI_INFO_NULL;
  return MPI_SUCCESS;
}

}  // extern "C"

int main(int count, char** words) { return run_all(count, words); }
