#include "preload/items.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstring>
#include <initializer_list>

namespace hostless::preload {
namespace {

bool finds_gpu_runtime() {
  for (char const* name : {"libcuda.so.1", "libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.6",
                           "libamdhip64.so.7", "libze_loader.so.1"}) {
    void* const library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    dlclose(library);
    return true;
  }
  return false;
}

/// Buffers may lie in the memory of a GPU, which MPI knows how to read. The loader is asked again when it has loaded
/// something since: it looks through folders for a library that is not there.
bool has_gpu_runtime() {
  static std::atomic<unsigned long long> asked_at{0};
  static std::atomic<bool> has{false};
  unsigned long long loaded = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        *static_cast<unsigned long long*>(to) = info->dlpi_adds;
        return 1;
      },
      &loaded);
  if (!has && asked_at.exchange(loaded) != loaded) has = finds_gpu_runtime();
  return has;
}

std::byte* start_of(Side const& side, Items const& items, std::size_t k) {
  // Of whole numbers: memory may be MPI_BOTTOM.
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(side.memory) +
                                      side.displacement(k) * items.extent);
}

/// Items of a side in terms of memory that has an address: MPICH packs nothing at address 0, where items of absolute
/// addresses (MPI_BOTTOM) begin.
class Addressed {
 public:
  Addressed(std::byte* from, std::int64_t count, MPI_Datatype type)
      : memory_(from), count_(static_cast<int>(count)), type_(type) {
    if (from != nullptr) return;
    memory_ = &anchor_;
    MPI_Aint const shift = -static_cast<MPI_Aint>(reinterpret_cast<std::intptr_t>(memory_));
    code_ = PMPI_Type_create_hindexed(1, &count_, &shift, type, &type_);
    if (code_ != MPI_SUCCESS) return;
    made_ = true;
    code_ = PMPI_Type_commit(&type_);
    count_ = 1;
  }
  Addressed(Addressed const&) = delete;
  Addressed& operator=(Addressed const&) = delete;
  ~Addressed() {
    if (made_) PMPI_Type_free(&type_);
  }
  int code() const { return code_; }
  std::byte* memory() const { return memory_; }
  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
  std::byte* memory_;
  std::byte anchor_{};
  int count_, code_ = MPI_SUCCESS;
  MPI_Datatype type_;
  bool made_ = false;
};

}  // namespace

Items items_of(MPI_Datatype type) {
  Items items;
  if (type == MPI_DATATYPE_NULL) return items;
  MPI_Count bytes = 0;
  MPI_Aint low = 0, extent = 0;
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  PMPI_Type_size_x(type, &bytes);
  PMPI_Type_get_extent(type, &low, &extent);
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  items.bytes = static_cast<std::int64_t>(bytes);
  items.extent = static_cast<std::int64_t>(extent);
  items.plain =
      combiner == MPI_COMBINER_NAMED && low == 0 && items.bytes == items.extent && !has_gpu_runtime();
  return items;
}

int pack(Side const& side, Items const& items, std::size_t k, std::byte* to, MPI_Comm comm) {
  std::int64_t const count = side.count(k), bytes = count * items.bytes;
  if (bytes == 0) return MPI_SUCCESS;
  std::byte* const from = start_of(side, items, k);
  if (items.plain) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return MPI_SUCCESS;
  }
  Addressed const all(from, count, side.type);
  if (all.code() != MPI_SUCCESS) return all.code();
  int position = 0;
  return PMPI_Pack(all.memory(), all.count(), all.type(), to, static_cast<int>(bytes), &position, comm);
}

int unpack(Side const& side, Items const& items, std::size_t k, std::byte const* from, MPI_Comm comm) {
  std::int64_t const count = side.count(k), bytes = count * items.bytes;
  if (bytes == 0) return MPI_SUCCESS;
  std::byte* const to = start_of(side, items, k);
  if (items.plain) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return MPI_SUCCESS;
  }
  Addressed const all(to, count, side.type);
  if (all.code() != MPI_SUCCESS) return all.code();
  int position = 0;
  return PMPI_Unpack(from, static_cast<int>(bytes), &position, all.memory(), all.count(), all.type(), comm);
}

bool packs_bytes() {
  int const number = 0x01020304;
  int packed[4] = {}, position = 0;
  int const code =
      PMPI_Pack(&number, 1, MPI_INT, packed, static_cast<int>(sizeof packed), &position, MPI_COMM_SELF);
  return code == MPI_SUCCESS && position == static_cast<int>(sizeof number) && packed[0] == number;
}

}  // namespace hostless::preload
