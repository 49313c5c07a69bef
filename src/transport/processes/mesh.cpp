#include "transport/processes/mesh.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "transport/memory_in_setup.hpp"
#include "transport/setup_wait.hpp"

namespace hostless {
namespace {

constexpr int poll_ms = 100;  // the longest sleep before a look at the clock

struct Hello {
  std::uint32_t magic = 0x686f7374;
  std::int32_t rank = 0;
};

struct Letter {
  std::uint32_t kind = 0, turn = 0;
  std::uint64_t bytes = 0;
};

[[noreturn]] void no_socket(char const* doing) {
  throw Error(ErrorCode::environment,
              std::string(doing) + " failed with '" + std::strerror(errno) +
                  "' (ranks meet over sockets). Raise the limit of open files (ulimit -n) "
                  "or use fewer ranks.");
}

Descriptor new_socket() {
  Descriptor made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (made.number() < 0) no_socket("socket()");
  return made;
}

sockaddr_un address_of(std::string const& folder, int rank) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string const path = folder + "/" + std::to_string(rank);
  if (path.size() >= sizeof address.sun_path) {
    throw Error(ErrorCode::environment, path + " is too long for a socket (" +
                                            std::to_string(sizeof address.sun_path - 1) +
                                            " characters are allowed). Set TMPDIR to a shorter folder.");
  }
  path.copy(address.sun_path, path.size());
  return address;
}

sockaddr const* plain(sockaddr_un const& address) { return reinterpret_cast<sockaddr const*>(&address); }

bool would_block(ssize_t moved) {
  return moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

std::string ended_text(int peer) {
  return "rank " + std::to_string(peer) +
         " has ended (nothing goes on without it). See its message, or whether it was killed.";
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (number_ >= 0) close(number_);
    number_ = other.release();
  }
  return *this;
}
Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}
int Descriptor::release() { return std::exchange(number_, -1); }

// One peer's share of a trade: a letter and its bytes each way.
struct Mesh::Traffic {
  Letter out, in;
  std::span<std::byte const> to;
  Bytes from;
  std::size_t sent = 0, got = 0;
  bool send_done() const { return sent == sizeof out + to.size(); }
  bool read_done() const { return got >= sizeof in && got == sizeof in + from.size(); }
};

Mesh::Mesh(int rank, int size, std::string const& folder)
    : rank_(rank), peers_(static_cast<std::size_t>(size)) {
  rendezvous(folder, Countdown(Deadline::after(limits_.first_s)));
}

// Calls the ranks below, is called by the ranks above.
void Mesh::rendezvous(std::string const& folder, Countdown countdown) {
  Descriptor const door = new_socket();
  sockaddr_un const here = address_of(folder, rank_);
  if (bind(door.number(), plain(here), sizeof here) != 0) no_socket("bind()");
  if (listen(door.number(), size()) != 0) no_socket("listen()");
  for (int r = 0; r < rank_; ++r) {
    Descriptor call = new_socket();
    sockaddr_un const there = address_of(folder, r);
    while (connect(call.number(), plain(there), sizeof there) != 0) {  // bounded: O_NONBLOCK
      if (errno != ENOENT && errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR)
        no_socket("connect()");
      if (countdown.is_over()) lose(late_in_setup);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    Hello const hello{Hello{}.magic, rank_};
    if (::send(call.number(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) lose(ended_text(r));
    peers_[static_cast<std::size_t>(r)] = std::move(call);
  }
  for (int expected = rank_ + 1; expected < size(); ++expected) {
    wait_until(door.number(), POLLIN, -1, countdown);
    Descriptor call(
        accept4(door.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));  // bounded: so is the door
    if (call.number() < 0) no_socket("accept()");
    Hello hello{};
    wait_until(call.number(), POLLIN, -1, countdown);
    bool const whole = recv(call.number(), &hello, sizeof hello, 0) == sizeof hello;  // bounded: O_NONBLOCK
    bool const known = hello.magic == Hello{}.magic && hello.rank > rank_ && hello.rank < size();
    if (!whole || !known)
      lose("a process that is no rank called (its greeting is wrong). Start all ranks anew.");
    peers_[static_cast<std::size_t>(hello.rank)] = std::move(call);
  }
  for (Descriptor const& peer : peers_) {
    watched_.push_back({peer.number(), POLLRDHUP, 0});
  }
  gone_.reserve(peers_.size());
}

// The others must not wait for this rank, whatever it does next.
void Mesh::leave() {
  broken_ = true;
  for (Descriptor& peer : peers_) peer = Descriptor();
}

void Mesh::lose(std::string const& text, ErrorCode code) {
  leave();
  throw Error(code, text);
}

void Mesh::wait_until(int descriptor, short events, int peer, Countdown& countdown) {
  for (;;) {
    bool const is_late = countdown.is_over();  // before the last look
    pollfd one{descriptor, events, 0};
    if (poll(&one, 1, poll_ms) > 0) {  // bounded: poll_ms
      if ((one.revents & events) != 0) return;
      lose(ended_text(peer));
    }
    if (is_late) lose(late_in_setup);
  }
}

std::vector<Bytes> Mesh::trade(std::uint32_t kind, std::vector<std::span<std::byte const>> const& to) {
  if (broken_) throw Error(ErrorCode::peer_lost, left_in_setup);
  ++turn_;
  auto const moved = [&] {
    std::vector<Traffic> traffic(peers_.size());
    for (std::size_t r = 0; r < traffic.size(); ++r) {
      traffic[r].out = {kind, turn_, to[r].size()};
      traffic[r].to = to[r];
    }
    move(traffic, kind);
    std::vector<Bytes> from(peers_.size());
    for (std::size_t r = 0; r < from.size(); ++r) {
      if (static_cast<int>(r) == rank_) {
        from[r].assign(to[r].begin(), to[r].end());
      } else {
        from[r] = std::move(traffic[r].from);
      }
    }
    return from;
  };
  return within_memory(moved, [&] { leave(); });
}

// Moves bytes both ways with every peer until all is done; what cannot move now waits for poll().
void Mesh::move(std::vector<Traffic>& traffic, std::uint32_t kind) {
  Countdown countdown(setup_deadline(limits_));
  auto const send_some = [&](Traffic& t, int socket) {
    bool const header = t.sent < sizeof t.out;
    auto const bytes =
        header ? std::as_bytes(std::span(&t.out, 1)).subspan(t.sent) : t.to.subspan(t.sent - sizeof t.out);
    ssize_t const moved = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (moved > 0) t.sent += static_cast<std::size_t>(moved);
    return moved > 0 || would_block(moved);
  };
  auto const read_some = [&](Traffic& t, int socket) {
    bool const header = t.got < sizeof t.in;
    auto const bytes = header ? std::as_writable_bytes(std::span(&t.in, 1)).subspan(t.got)
                              : std::span(t.from).subspan(t.got - sizeof t.in);
    ssize_t const moved = recv(socket, bytes.data(), bytes.size(), 0);  // bounded: O_NONBLOCK
    if (moved > 0) t.got += static_cast<std::size_t>(moved);
    if (header && t.got == sizeof t.in) {
      if (t.in.kind != kind || t.in.turn != turn_) {
        lose("the ranks are in different collectives (kind " + std::to_string(kind) + " here, " +
                 std::to_string(t.in.kind) + " there). All ranks must make the same calls in the same order.",
             ErrorCode::usage);
      }
      t.from.resize(t.in.bytes);
    }
    return moved > 0 || would_block(moved);
  };
  for (std::vector<pollfd> waiting;; waiting.clear()) {
    std::vector<int> who;
    for (int r = 0; r < size(); ++r) {
      Traffic& t = traffic[static_cast<std::size_t>(r)];
      if (r == rank_) continue;
      int const socket = peers_[static_cast<std::size_t>(r)].number();
      if (!t.send_done() && !send_some(t, socket)) lose(ended_text(r));
      if (!t.read_done() && !read_some(t, socket)) lose(ended_text(r));
      short const events = static_cast<short>((t.send_done() ? 0 : POLLOUT) | (t.read_done() ? 0 : POLLIN));
      if (events != 0) waiting.push_back({socket, events, 0});
    }
    if (waiting.empty()) return;
    bool const is_late = countdown.is_over();
    bool const may_move = poll(waiting.data(), waiting.size(), poll_ms) > 0;  // bounded: poll_ms
    if (is_late && !may_move) lose(late_in_setup);
  }
}

Descriptor Mesh::share(Descriptor mine) {
  Countdown countdown(setup_deadline(limits_));
  char mark = 'm';
  iovec content{&mark, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (rank_ == 0) {
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    int const number = mine.number();
    std::memcpy(CMSG_DATA(head), &number, sizeof number);
    for (int r = 1; r < size(); ++r) {
      int const socket = peers_[static_cast<std::size_t>(r)].number();
      wait_until(socket, POLLOUT, r, countdown);
      if (sendmsg(socket, &message, MSG_NOSIGNAL) != 1) lose(ended_text(r));
    }
    return mine;
  }
  int const socket = peers_[0].number();
  wait_until(socket, POLLIN, 0, countdown);
  ssize_t const moved = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);  // bounded: O_NONBLOCK
  cmsghdr const* const head = moved == 1 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (head == nullptr || head->cmsg_type != SCM_RIGHTS) lose(ended_text(0));
  int number = -1;
  std::memcpy(&number, CMSG_DATA(head), sizeof number);
  return Descriptor(number);
}

std::span<int const> Mesh::gone() {
  gone_.clear();
  if (broken_ || poll(watched_.data(), watched_.size(), 0) <= 0) return gone_;  // bounded: it only looks
  for (std::size_t r = 0; r < watched_.size(); ++r) {
    if ((watched_[r].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) gone_.push_back(static_cast<int>(r));
  }
  return gone_;
}

}  // namespace hostless
