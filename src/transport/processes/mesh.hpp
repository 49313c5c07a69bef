#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hostless/base/wait.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// A file descriptor with an owner.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int number() const { return number_; }
  int release();

 private:
  int number_;
};

/// One Unix socket between each two ranks. The kernel closes a process's sockets when it dies, however it
/// dies: that is how a loss is noticed at once.
class Mesh {
 public:
  /// Meets the other ranks in a folder that only this user can enter. Collective.
  Mesh(int rank, int size, std::string const& folder);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(peers_.size()); }

  /// Sends to[r] to rank r and returns what each sent here. `kind` says which collective this is: all ranks
  /// must be in the same. Collective. Errors  peer_lost  a rank ended or is late;  usage  kinds differ;
  /// environment  out of memory, which ends it for the others too
  std::vector<Bytes> trade(std::uint32_t kind, std::vector<std::span<std::byte const>> const& to);
  /// Gives rank 0's descriptor to every rank (the others pass an empty one). Collective.
  Descriptor share(Descriptor mine);
  /// Ranks whose process has ended or has closed its mesh, valid until the next call. Never blocks or
  /// allocates.
  std::span<int const> gone();
  /// True after this rank lost another in a collective: the mesh is given up.
  bool broken() const { return broken_; }

 private:
  struct Traffic;
  void rendezvous(std::string const& folder, Countdown countdown);
  void move(std::vector<Traffic>& traffic, std::uint32_t kind);
  void leave();
  [[noreturn]] void lose(std::string const& text, ErrorCode code = ErrorCode::peer_lost);
  void wait_until(int descriptor, short events, int peer, Countdown& countdown);

  int rank_;
  std::vector<Descriptor> peers_;
  std::uint32_t turn_ = 0;
  bool broken_ = false;
  std::vector<pollfd> watched_;
  std::vector<int> gone_;
  WaitLimits limits_ = WaitLimits::from_environment();
};

}  // namespace hostless
