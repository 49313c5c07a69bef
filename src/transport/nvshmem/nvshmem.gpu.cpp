#include "transport/nvshmem/nvshmem.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "device/loaded_library.hpp"
#include "hostless/base/deadline.hpp"
#include "hostless/base/error.hpp"
#include "transport/stream/stragglers.hpp"

namespace hostless::gpu::nvshmem {
namespace {

constexpr char const* library_file = "libnvshmem_host.so.3";
constexpr unsigned by_name = 1u << 3;  // ranks find each other by a name that rank 0 has made

/// The first version of its attributes, which later ones take.
struct Attributes {
  int version = (1 << 16) + 144;
  void* communicator = nullptr;
  struct {
    int version = (1 << 16) + 128;
    struct {
      int version = (1 << 16) + 24;
      UniqueId* name = nullptr;
      int rank = -1, ranks = -1;
    } of_name;
    char reserved[96] = {};
  } arguments;
};
static_assert(sizeof(Attributes) == 144);
constexpr int version_of_name = (1 << 16) + sizeof(UniqueId);  // its first four bytes

[[noreturn]] void fail(std::string const& what, std::string const& why) {
  throw Error(ErrorCode::environment,
              "GPU transport nvshmem: " + what + " (" + why + "). Use --gpu-transport nccl, peer or host.");
}

Functions load_functions() {
  LoadedLibrary const library(library_file,
                              LoadedLibrary::of_transport("nvshmem", "NVSHMEM", "nccl, peer or host", "3"));
  using Of = Functions;
  Of functions{};
  library.need_all(functions, std::pair(&Of::make_name, "nvshmemx_get_uniqueid"),
                   std::pair(&Of::set_name, "nvshmemx_set_attr_uniqueid_args"),
                   std::pair(&Of::start, "nvshmemx_hostlib_init_attr"),
                   std::pair(&Of::finalize, "nvshmemx_hostlib_finalize"),
                   std::pair(&Of::rank, "nvshmem_my_pe"), std::pair(&Of::ranks, "nvshmem_n_pes"),
                   std::pair(&Of::allocate, "nvshmem_malloc"), std::pair(&Of::release, "nvshmem_free"),
                   std::pair(&Of::address_of, "nvshmem_ptr"),
                   std::pair(&Of::put, "nvshmemx_putmem_signal_on_stream"),
                   std::pair(&Of::tell, "nvshmemx_signal_op_on_stream"),
                   std::pair(&Of::quiet, "nvshmemx_quiet_on_stream"));
  library.find(functions.version, "nvshmemx_vendor_get_version_info");
  return functions;
}

struct Block {
  std::byte* base = nullptr;
  std::int64_t bytes = 0;
  bool used = false;
};

/// Of this process, whose one rank calls everything.
struct Process {
  bool has_met = false;
  int rank = -1, ranks = 0;
  double patience_s = 0;
  std::function<void()> enter;
  std::vector<Block> blocks;  // equally many and equally large on every rank
  std::string given_up;
};
Process& process() {
  static Process* const one = new Process;  // finalize_at_exit comes after destructors of statics
  return *one;
}

// All ranks come here at about the same time, or one of them was killed and the deadline ends it.
void finalize_at_exit() {
  Process& here = process();
  if (!here.has_met || !here.given_up.empty()) return;
  static_cast<void>(call_within(
      here.patience_s, here.enter, [] { functions().finalize(); }, "its end did not come"));
}

void require() {
  if (!why_given_up().empty())
    fail("it cannot be used again in this process", why_given_up() + "; start the program again to use it");
}

void join(StreamSetup const& setup, UniqueId const& name, std::function<void()> const& enter) {
  Process& here = process();
  struct Start {  // outlives the call
    alignas(8) UniqueId name;
    Attributes attributes;
    std::atomic<int> status{-1}, rank{-1}, ranks{-1};
  };
  auto const start = std::make_shared<Start>();
  start->name = name;
  int const rank = setup.rank, ranks = setup.ranks;
  bool const in_time = call_within(
      setup.first_s, enter,
      [start, rank, ranks] {
        Functions const& use = functions();
        int status = use.set_name(rank, ranks, &start->name, &start->attributes);
        if (status == 0) status = use.start(by_name, &start->attributes);
        if (status == 0) {
          start->rank = use.rank();
          start->ranks = use.ranks();
        }
        start->status = status;
      },
      "its ranks did not meet");
  if (!in_time) fail("its ranks did not meet", "not within the deadline; NVSHMEM_DEBUG=WARN says why");
  if (start->status != 0 || start->rank != rank || start->ranks != ranks) {
    give_up("its ranks did not meet");
    fail("its ranks did not meet",
         "status " + std::to_string(start->status.load()) + "; NVSHMEM_DEBUG=WARN says why");
  }
  here.has_met = true;
  here.rank = rank;
  here.ranks = ranks;
  here.enter = enter;
  std::atexit(finalize_at_exit);
}

class Lease final : public SymmetricMemory {
 public:
  explicit Lease(std::size_t index) : index_(index) { process().blocks[index].used = true; }
  Lease(Lease const&) = delete;
  Lease& operator=(Lease const&) = delete;
  ~Lease() override { process().blocks[index_].used = is_soiled; }
  std::byte* here() const override { return process().blocks[index_].base; }
  std::byte* of(int rank) const override {
    return static_cast<std::byte*>(functions().address_of(here(), rank));
  }
  std::int64_t bytes() const override { return process().blocks[index_].bytes; }
  mutable bool is_soiled = false;

 private:
  std::size_t index_;
};

// The first one that no rank uses and that is large enough; the same on all of them.
std::size_t free_block(std::vector<SymmetricOffer> const& all, std::int64_t bytes) {
  std::size_t const blocks = process().blocks.size();
  for (std::size_t k = 0; k < blocks; ++k) {
    if (std::all_of(all.begin(), all.end(),
                    [&](SymmetricOffer const& offer) { return offer.free_bytes[k] >= bytes; }))
      return k;
  }
  return blocks;
}

// Of a new one: a further one, or where there may be no more the first that no rank uses; the same on all of
// them.
std::size_t index_of_new(std::vector<SymmetricOffer> const& all) {
  std::size_t const blocks = process().blocks.size();
  if (blocks < most_symmetric_blocks) return blocks;
  std::size_t const unused = free_block(all, 1);
  if (unused == blocks)
    fail("no more memory",
         std::to_string(most_symmetric_blocks) + " solvers and exchanges have some; let others end first");
  return unused;
}

std::size_t allocate(StreamSetup const& setup, std::vector<SymmetricOffer> const& all, std::int64_t bytes,
                     std::function<void()> const& enter) {
  std::vector<Block>& blocks = process().blocks;
  std::size_t const index = index_of_new(all);
  auto const base = std::make_shared<std::atomic<void*>>(nullptr);
  void* const before = index < blocks.size() ? blocks[index].base : nullptr;
  bool const in_time = call_within(
      setup.first_s, enter,
      [base, before, bytes] {
        if (before != nullptr) functions().release(before);
        base->store(functions().allocate(static_cast<std::size_t>(bytes)));
      },
      "memory was not allocated");
  if (!in_time) fail("memory was not allocated", "not within the deadline");
  if (index == blocks.size()) blocks.emplace_back();
  blocks[index] = {static_cast<std::byte*>(base->load()), bytes, true};
  if (base->load() == nullptr)  // it stays, as on ranks that have got theirs
    fail("no memory of " + std::to_string(bytes) + " bytes on every rank",
         "NVSHMEM_SYMMETRIC_SIZE may be too small");
  return index;
}

}  // namespace

Functions const& functions() {
  static Functions const loaded = load_functions();
  return loaded;
}

std::string describe() {
  int major = 0, minor = 0, patch = 0;
  if (functions().version == nullptr) return "NVSHMEM";
  functions().version(&major, &minor, &patch);
  return "NVSHMEM " + std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

namespace {

std::string asked_for(char const* variable, std::string const& otherwise) {
  char const* const text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : text;
}
bool is_asked_for(char const* variable) {
  std::string const text = asked_for(variable, "0");
  return text != "0" && text != "false" && text != "no" && text != "n";
}
std::string upper(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return text;
}

// Of the library's folder, whatever number follows: it loads one between nodes.
bool has_file_of(std::string const& transport) {
  std::string const begin = "nvshmem_transport_" + transport + ".so";
  std::error_code none;
  auto const folder = std::filesystem::path(LoadedLibrary::path_of(functions().start)).parent_path();
  for (auto const& one : std::filesystem::directory_iterator(folder, none))
    if (one.path().filename().string().starts_with(begin)) return true;
  return false;
}

}  // namespace

std::string how_it_would_carry() {
  static_cast<void>(functions());
  std::string text = is_asked_for("NVSHMEM_DISABLE_P2P")
                         ? "inside a node not by P2P (NVSHMEM_DISABLE_P2P says so)"
                         : "inside a node P2P, stores over NVLink or PCIe, where GPUs reach each other";
  std::string transport = asked_for("NVSHMEM_REMOTE_TRANSPORT", "");
  std::string why = transport.empty() ? "its default" : "NVSHMEM_REMOTE_TRANSPORT says so";
  if (transport.empty()) transport = "ibrc";
  if (is_asked_for("NVSHMEM_IB_ENABLE_IBGDA")) {
    transport = "ibgda";
    why = "NVSHMEM_IB_ENABLE_IBGDA says so";
  }
  if (transport == "none") {
    text += "; between nodes nothing (" + why + ")";
  } else {
    text += "; between nodes " + upper(transport) + " (" + why + "; its file is " +
            (has_file_of(transport) ? "" : "not ") + "beside the library)";
  }
  return text +
         ". A put is a whole message with its signal, queued on the stream; symmetric memory is mapped in "
         "steps "
         "of " +
         asked_for("NVSHMEM_CUMEM_GRANULARITY", "512 MiB (its default)") +
         ". What it has chosen it tells only ranks that have met (NVSHMEM_DEBUG=INFO)";
}

std::string const& why_given_up() { return process().given_up; }
void give_up(std::string const& why) {
  if (process().given_up.empty()) process().given_up = why;
}

bool call_within(double seconds, std::function<void()> const& enter, std::function<void()> const& call,
                 std::string const& what) {
  bool const in_time = gpu::call_within(seconds, [enter, call] {
    enter();
    call();
  });
  if (!in_time) give_up(what + " within the deadline");
  return in_time;
}

SymmetricOffer offer(std::int64_t wanted_bytes, int rank) {
  Functions const& use = functions();
  require();
  Process const& here = process();
  SymmetricOffer offer;
  offer.wanted_bytes = wanted_bytes;
  offer.has_met = here.has_met ? 1 : 0;
  for (std::size_t k = 0; k < here.blocks.size(); ++k)
    offer.free_bytes[k] = here.blocks[k].used ? 0 : here.blocks[k].bytes;
  if (rank == 0 && !here.has_met) {
    std::memcpy(offer.unique_id.name, &version_of_name, sizeof version_of_name);
    if (use.make_name(&offer.unique_id) != 0) fail("no unique id was made", "NVSHMEM_DEBUG=WARN says why");
  }
  return offer;
}

std::shared_ptr<SymmetricMemory> take(StreamSetup const& setup, std::vector<SymmetricOffer> const& all,
                                      std::function<void()> const& enter) {
  Process& here = process();
  here.patience_s = setup.deadline_s;
  bool const met = std::all_of(all.begin(), all.end(), [](auto const& one) { return one.has_met != 0; });
  bool const is_first =
      std::none_of(all.begin(), all.end(), [](auto const& one) { return one.has_met != 0; });
  if ((!met && !is_first) || (met && (here.rank != setup.rank || here.ranks != setup.ranks)))
    throw Error(
        ErrorCode::usage,
        "GPU transport nvshmem with other ranks than before (it meets once a process). Use as many as "
        "in its first solve, or --gpu-transport nccl, peer or host.");
  if (is_first) join(setup, all[0].unique_id, enter);
  std::int64_t bytes = 0;
  for (SymmetricOffer const& one : all) bytes = std::max(bytes, one.wanted_bytes);
  std::size_t block = free_block(all, bytes);
  if (block == here.blocks.size()) block = allocate(setup, all, bytes, enter);
  return std::make_shared<Lease>(block);
}

void never_again(SymmetricMemory const& memory) { static_cast<Lease const&>(memory).is_soiled = true; }

}  // namespace hostless::gpu::nvshmem
