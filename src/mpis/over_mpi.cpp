// MPIS_... over an MPI.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "api/guarded.hpp"
#include "hostless/base/environment.hpp"
#include "mpis/flavour.hpp"

namespace hostless::mpis {
namespace {

#if defined(OMPI_MAJOR_VERSION)
constexpr char const* vendor = "openmpi";
#else
constexpr char const* vendor = "mpich";
#endif

// Transports by communicator: an attribute, so that the end of one is that of the other.
int close_one(MPI_Comm, int, void* transport, void*) {
  hostless_close(static_cast<hostless_transport*>(transport));
  return MPI_SUCCESS;
}
int keyval() {
  static int const key = [] {
    int made = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, close_one, &made, nullptr);
    return made;
  }();
  return key;
}
// MPI_COMM_WORLD has no end of its own: MPI_Finalize ends the attributes of MPI_COMM_SELF first.
int close_world(MPI_Comm, int, void*, void*) {
  MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval());
  return MPI_SUCCESS;
}

bool is_named(MPI_Datatype datatype) {
  int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
  MPI_Type_get_envelope(datatype, &integers, &addresses, &types, &combiner);
  return combiner == MPI_COMBINER_NAMED;
}

// Whether MPI packs an element, which lies in as many bytes as it has, as it lies: they may have another order, or
// be there twice beside a gap. Byte k is its own place, one byte of this number a round.
bool is_packed_in_order(MPI_Datatype datatype, std::size_t bytes) {
  MPI_Datatype committed = MPI_DATATYPE_NULL;  // the caller's need not be
  if (MPI_Type_dup(datatype, &committed) != MPI_SUCCESS) return false;
  bool in_order = MPI_Type_commit(&committed) == MPI_SUCCESS;
  std::vector<unsigned char> lies(bytes), packed(bytes);
  for (int shift = 0; in_order && shift < 32 && (bytes - 1) >> shift != 0; shift += 8) {
    for (std::size_t k = 0; k < bytes; ++k) lies[k] = static_cast<unsigned char>(k >> shift);
    std::fill(packed.begin(), packed.end(), static_cast<unsigned char>(0));
    int at = 0;
    in_order = MPI_Pack(lies.data(), 1, committed, packed.data(), static_cast<int>(bytes), &at,
                        MPI_COMM_SELF) == MPI_SUCCESS &&
               static_cast<std::size_t>(at) == bytes && packed == lies;
  }
  MPI_Type_free(&committed);
  return in_order;
}

}  // namespace

hostless_transport* transport_of(MPI_Comm comm) {
  void* found = nullptr;
  int is_there = 0;
  MPI_Comm_get_attr(comm, keyval(), static_cast<void*>(&found), &is_there);
  if (is_there != 0) return static_cast<hostless_transport*>(found);
  hostless_transport* made = nullptr;
  if (hostless_open_mpi(vendor, static_cast<int>(MPI_Comm_c2f(comm)), &made) != HOSTLESS_OK) return nullptr;
  MPI_Comm_set_attr(comm, keyval(), made);
  return made;
}

std::size_t packed_bytes(MPI_Datatype datatype) {
  if (datatype == MPI_DATATYPE_NULL) return 0;
  int size = 0;
  MPI_Aint low = 0, extent = 0, true_low = 0, true_extent = 0;
  if (MPI_Type_size(datatype, &size) != MPI_SUCCESS ||
      MPI_Type_get_extent(datatype, &low, &extent) != MPI_SUCCESS ||
      MPI_Type_get_true_extent(datatype, &true_low, &true_extent) != MPI_SUCCESS)
    return 0;
  if (size <= 0 || low != 0 || true_low != 0 || extent != size || true_extent != size) return 0;
  auto const bytes = static_cast<std::size_t>(size);
  return is_named(datatype) || is_packed_in_order(datatype, bytes) ? bytes : 0;
}

int datatype_of(MPI_Datatype datatype) {
  std::pair<MPI_Datatype, int> const known[] = {
      {MPI_FLOAT, HOSTLESS_DATA_F32},   {MPI_DOUBLE, HOSTLESS_DATA_F64}, {MPI_INT, HOSTLESS_DATA_I32},
      {MPI_INT32_T, HOSTLESS_DATA_I32}, {MPI_LONG, HOSTLESS_DATA_I64},   {MPI_LONG_LONG, HOSTLESS_DATA_I64},
      {MPI_INT64_T, HOSTLESS_DATA_I64}, {MPI_BYTE, HOSTLESS_DATA_BYTE},  {MPI_UINT8_T, HOSTLESS_DATA_BYTE}};
  static_assert(sizeof(int) == 4 && sizeof(long) == 8 && sizeof(long long) == 8);
  for (auto const& [of_mpi, ours] : known)
    if (of_mpi == datatype) return ours;
  return -1;
}

int reduction_of(MPI_Op op) {
  std::pair<MPI_Op, int> const known[] = {{MPI_SUM, HOSTLESS_SUM},
                                          {MPI_PROD, HOSTLESS_PRODUCT},
                                          {MPI_MIN, HOSTLESS_MINIMUM},
                                          {MPI_MAX, HOSTLESS_MAXIMUM}};
  for (auto const& [of_mpi, ours] : known)
    if (of_mpi == op) return ours;
  return -1;
}

int gpu_of_rank() { return -1; }

void write_bytes(MPI_Status& status, std::size_t bytes) {
  // As MPI_Get_count has it: MPI_UNDEFINED where an int does not hold them.
  MPI_Status_set_elements_x(&status, MPI_BYTE, static_cast<MPI_Count>(bytes));
  MPI_Status_set_cancelled(&status, 0);
}

bool is_started() {
  int started = 0, ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  return started != 0 && ended == 0;
}

int begin(int* argc, char*** argv, int* provided) {
  constexpr int leave_what_is_set = 0;
  setenv("HOSTLESS_QUEUE_PROGRESS", "thread", leave_what_is_set);
  int const code = MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, provided);
  if (code != MPI_SUCCESS) return code;
  int ends_world = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, close_world, &ends_world, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, ends_world, nullptr);
  if (c_interface::guarded(check_queue_environment) == HOSTLESS_OK && transport_of(MPI_COMM_WORLD) != nullptr)
    return MPI_SUCCESS;
  // Few programs look at what MPI_Init returns.
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::fprintf(stderr, "hostless: %s\n", hostless_last_error());
  return MPI_ERR_OTHER;
}

}  // namespace hostless::mpis
