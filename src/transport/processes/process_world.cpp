// Ranks are processes of one machine. They meet over sockets and then share memory: a memfd, which has no
// name that a killed process could leave behind.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "hostless/transport/launcher.hpp"
#include "transport/host_transport.hpp"
#include "transport/processes/mesh.hpp"
#include "transport/processes/processes_here.hpp"
#include "transport/zone/zone.hpp"

namespace hostless {
namespace {

enum Kind : std::uint32_t { kind_barrier = 1, kind_gather = 2, kind_exchange = 3 };

class SocketGroup final : public Group {
 public:
  explicit SocketGroup(std::shared_ptr<Mesh> mesh) : mesh_(std::move(mesh)) {}
  int rank() const override { return mesh_->rank(); }
  int size() const override { return mesh_->size(); }

  void barrier() override { mesh_->trade(kind_barrier, to_all({})); }

  void all_gather_blocks(std::span<std::byte const> mine, std::span<std::byte> all) override {
    check_room(mine.size(), all.size());
    auto const blocks = mesh_->trade(kind_gather, to_all(mine));
    for (std::size_t r = 0; r < blocks.size(); ++r) {
      if (blocks[r].size() != mine.size()) {
        throw Error(ErrorCode::usage, "all_gather_blocks got " + std::to_string(mine.size()) +
                                          " bytes on rank " + std::to_string(rank()) + " and " +
                                          std::to_string(blocks[r].size()) + " on rank " + std::to_string(r) +
                                          " (blocks are of one size). Use all_gather_bytes.");
      }
      if (!mine.empty()) std::memcpy(all.data() + r * mine.size(), blocks[r].data(), mine.size());
    }
  }

  std::vector<Bytes> exchange(std::vector<Bytes> to) override {
    check_buffers(to.size());
    return mesh_->trade(kind_exchange, {to.begin(), to.end()});
  }

 private:
  std::vector<std::span<std::byte const>> to_all(std::span<std::byte const> block) const {
    return std::vector<std::span<std::byte const>>(static_cast<std::size_t>(size()), block);
  }
  std::shared_ptr<Mesh> mesh_;
};

class ProcessZone final : public ZoneWorld {
 public:
  ProcessZone(std::shared_ptr<Mesh> mesh, Group& group) : mesh_(std::move(mesh)), group_(group) {}

  std::shared_ptr<std::byte> allocate(std::size_t bytes) override {
    Descriptor file;
    group_.together([&] {
      if (group_.rank() != 0) return;
      file = Descriptor(memfd_create("hostless", MFD_CLOEXEC));
      if (file.number() < 0 || ftruncate(file.number(), static_cast<off_t>(bytes)) != 0) no_memory(bytes);
    });
    Descriptor const shared = mesh_->share(std::move(file));
    std::shared_ptr<std::byte> memory;
    group_.together([&] {
      void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shared.number(), 0);
      if (at == MAP_FAILED) no_memory(bytes);
      memory = {static_cast<std::byte*>(at), [bytes](std::byte* p) { munmap(p, bytes); }};
    });
    return memory;
  }
  bool rank_lost(RankArea const* areas) override {
    if (mesh_->broken()) return true;
    for (int const rank : mesh_->gone()) {
      if (areas[rank].ended.load(std::memory_order_acquire) == 0) return true;
    }
    return false;
  }

 private:
  [[noreturn]] static void no_memory(std::size_t bytes) {
    throw Error(ErrorCode::environment, std::to_string(bytes) +
                                            " bytes of shared memory cannot be had: " + std::strerror(errno) +
                                            " (ranks exchange through them). Use the threads transport.");
  }
  std::shared_ptr<Mesh> mesh_;
  Group& group_;
};

class ProcessTransport final : public Transport {
 public:
  explicit ProcessTransport(std::shared_ptr<Mesh> const& mesh) : group_(mesh), zone_(mesh, group_) {}
  Capabilities capabilities() const override { return processes_capabilities(); }
  Group& group() override { return group_; }
  std::unique_ptr<Endpoint> bind(Binding const& binding) override {
    return bind_zone(group_, zone_, binding);
  }

 private:
  SocketGroup group_;
  ProcessZone zone_;
};

int number_in(char const* variable) {
  char const* const text = std::getenv(variable);
  int value = -1;
  if (text != nullptr) {
    char const* const end = text + std::strlen(text);
    auto const [stop, problem] = std::from_chars(text, end, value);
    if (problem != std::errc() || stop != end) value = -1;
  }
  if (value < 0) {
    throw Error(ErrorCode::usage,
                std::string(variable) + " is '" + (text == nullptr ? "" : text) +
                    "' (it tells a process which rank it is). Start ranks with the launcher.");
  }
  return value;
}

std::shared_ptr<Mesh> mesh_of_this_process() {
  int const rank = number_in("HOSTLESS_RANK"), size = number_in("HOSTLESS_SIZE");
  char const* const folder = std::getenv("HOSTLESS_RENDEZVOUS");
  if (rank >= size || folder == nullptr) {
    throw Error(ErrorCode::usage,
                "rank " + std::to_string(rank) + " of " + std::to_string(size) + " in '" +
                    (folder == nullptr ? "" : folder) +
                    "' is no place to meet (HOSTLESS_RANK, HOSTLESS_SIZE and HOSTLESS_RENDEZVOUS "
                    "say where). Start ranks with the launcher.");
  }
  return std::make_shared<Mesh>(rank, size, folder);
}

}  // namespace

Rendezvous::Rendezvous() {
  char const* const temporary = std::getenv("TMPDIR");
  path_ = std::string(temporary == nullptr || *temporary == '\0' ? "/tmp" : temporary) + "/hostless-XXXXXX";
  if (mkdtemp(path_.data()) != nullptr) return;
  throw Error(ErrorCode::environment,
              "no folder can be made at " + path_ + ": " + std::strerror(errno) +
                  " (the ranks cannot be started). Set TMPDIR to a folder that can be written.");
}
Rendezvous::~Rendezvous() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

bool started_by_launcher() {
  return std::getenv("HOSTLESS_RANK") != nullptr && std::getenv("HOSTLESS_SIZE") != nullptr &&
         std::getenv("HOSTLESS_RENDEZVOUS") != nullptr;
}

std::unique_ptr<Group> open_socket_group() { return std::make_unique<SocketGroup>(mesh_of_this_process()); }

Capabilities processes_capabilities() {
  Capabilities c;
  c.transport = "processes";
  c.host = c.graph = c.kernel = c.gather = c.host_callback = Support::native;
  c.processes_as_ranks = c.bounded_waits = c.survives_peer_loss = true;
  c.note = "ranks are processes of one machine, started by hostless itself, with shared memory between them";
  return c;
}

std::unique_ptr<Transport> open_processes_transport() {
  return std::make_unique<ProcessTransport>(mesh_of_this_process());
}
std::unique_ptr<Transport> open_processes_transport(int rank, int size, std::string const& folder) {
  return std::make_unique<ProcessTransport>(std::make_shared<Mesh>(rank, size, folder));
}

HostTransport processes_transport() {
  HostTransport of;
  of.name = "processes";
  of.capabilities = processes_capabilities();
  of.start = [](int ranks, std::vector<std::string> const& command) {
    Launch job;
    job.ranks = ranks;
    job.command = command;
    return launch(job);
  };
  of.open = open_processes_transport;
  return of;
}

}  // namespace hostless
