// A library with the functions of NVSHMEM that hostless calls, over shared memory of the host: what it does
// on a stream is done at once. HOSTLESS_FAKE_NVSHMEM=start or allocate: that call does not return.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int most_ranks = 8;
constexpr std::size_t heap_bytes = std::size_t{1} << 20;

struct World {
  std::atomic<int> arrived{0}, round{0};
  alignas(64) unsigned char heap[most_ranks][heap_bytes];
};
struct Name {
  int version;
  char file[124];
};
struct Attributes {  // as version 1 of nvshmemx_init_attr_t
  int version;
  void* communicator;
  int version_of_arguments;
  int padding;
  int version_of_name;
  Name const* name;
  int rank, ranks;
  char reserved[96];
};
static_assert(sizeof(Attributes) == 144 && sizeof(Name) == 128);

World* world = nullptr;
char file[124];
int my_rank = -1, all_ranks = 0;
std::size_t taken = 0;

void barrier() {
  int const round = world->round;
  if (++world->arrived == all_ranks) {
    world->arrived = 0;
    ++world->round;
  }
  while (world->round == round) usleep(100);
}
void hang_if(char const* call) {
  char const* const asked = std::getenv("HOSTLESS_FAKE_NVSHMEM");
  while (asked != nullptr && std::strcmp(asked, call) == 0) sleep(1);
}
unsigned char* there(void const* here, int rank) {
  return world->heap[rank] + (static_cast<unsigned char const*>(here) - world->heap[my_rank]);
}

}  // namespace

extern "C" {

int nvshmemx_get_uniqueid(Name* name) {
  if (name->version != (1 << 16) + 128) return 1;
  std::snprintf(name->file, sizeof name->file, "/hostless-fake-nvshmem-%d", static_cast<int>(getpid()));
  return 0;
}
int nvshmemx_set_attr_uniqueid_args(int rank, int ranks, Name const* name, Attributes* attributes) {
  if (attributes->version != (1 << 16) + 144 || attributes->version_of_arguments != (1 << 16) + 128 ||
      attributes->version_of_name != (1 << 16) + 24)
    return 2;
  attributes->name = name;
  attributes->rank = rank;
  attributes->ranks = ranks;
  return 0;
}
int nvshmemx_hostlib_init_attr(unsigned how, Attributes* attributes) {
  hang_if("start");
  if (how != 8 || attributes->ranks > most_ranks) return 3;
  my_rank = attributes->rank;
  all_ranks = attributes->ranks;
  std::memcpy(file, attributes->name->file, sizeof file);
  int const opened = shm_open(file, O_CREAT | O_RDWR, 0600);
  if (opened < 0 || ftruncate(opened, sizeof(World)) != 0) return 4;
  void* const memory = mmap(nullptr, sizeof(World), PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
  close(opened);
  if (memory == MAP_FAILED) return 5;
  world = static_cast<World*>(memory);
  barrier();
  if (my_rank == 0) shm_unlink(file);
  return 0;
}
void nvshmemx_hostlib_finalize() { barrier(); }
int nvshmem_my_pe() { return my_rank; }
int nvshmem_n_pes() { return all_ranks; }
void* nvshmem_malloc(std::size_t bytes) {
  hang_if("allocate");
  barrier();
  bytes = (bytes + 511) / 512 * 512;
  if (taken + bytes > heap_bytes) return nullptr;
  void* const memory = world->heap[my_rank] + taken;
  taken += bytes;
  return memory;
}
// What is given back is not given away again. All ranks come, with what was theirs.
void nvshmem_free(void* memory) {
  barrier();
  auto const at = static_cast<unsigned char*>(memory) - world->heap[my_rank];
  if (at < 0 || at >= static_cast<std::ptrdiff_t>(taken)) std::abort();
  std::memset(memory, 0xee, 64);  // whoever goes on using it sees that
}
void* nvshmem_ptr(void const* here, int rank) { return there(here, rank); }
void nvshmemx_signal_op_on_stream(std::uint64_t* signal, std::uint64_t value, int how, int rank, void*) {
  auto& word = *reinterpret_cast<std::atomic<std::uint64_t>*>(there(signal, rank));
  if (how == 9) word.store(value);
  if (how == 10) word.fetch_add(value);
}
void nvshmemx_putmem_signal_on_stream(void* to, void const* from, std::size_t bytes, std::uint64_t* signal,
                                      std::uint64_t value, int how, int rank, void* stream) {
  std::memcpy(there(to, rank), from, bytes);
  nvshmemx_signal_op_on_stream(signal, value, how, rank, stream);
}
void nvshmemx_quiet_on_stream(void*) {}
void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch) {
  *major = 3;
  *minor = 98;
  *patch = 99;
}

}  // extern "C"
