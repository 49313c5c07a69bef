#include "transport/processes/mesh.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "own_folder.hpp"

namespace hostless {
namespace {

// Two ranks of a mesh, one in a child.
template <class Body>
int in_child(Body const& body) {
  pid_t const pid = fork();
  if (pid == 0) {
    try {
      body();
    } catch (Error const& e) {
      _exit(e.code() == ErrorCode::usage ? 2 : 5);
    }
    _exit(0);
  }
  return pid;
}

TEST(Mesh, DifferentCollectivesAreAnErrorNotAMuddle) {
  Folder const folder;
  pid_t const child = in_child([&] { Mesh(1, 2, folder.path).trade(2, {{}, {}}); });
  Mesh mesh(0, 2, folder.path);
  try {
    mesh.trade(1, {{}, {}});
    ADD_FAILURE() << "no error";
  } catch (Error const& e) {
    EXPECT_NE(e.code(), ErrorCode::environment) << e.what();
  }
  EXPECT_TRUE(mesh.broken());
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WEXITSTATUS(status) == 2 || WEXITSTATUS(status) == 5);
}

TEST(Mesh, ARankThatNeverComesEndsTheRendezvousAtTheDeadline) {
  setenv("HOSTLESS_DEADLINE_SCALE", "0.0005", 1);
  for (int const rank : {0, 1}) {  // 0 is called, 1 calls
    Folder const folder;
    try {
      Mesh(rank, 2, folder.path);
      ADD_FAILURE() << "no error";
    } catch (Error const& e) {
      EXPECT_EQ(e.code(), ErrorCode::peer_lost) << e.what();
    }
  }
  unsetenv("HOSTLESS_DEADLINE_SCALE");
}

/// A rank 1 of two that says by hand what a rank would: that it comes, and that so many bytes follow.
class RankByHand {
 public:
  explicit RankByHand(std::string const& folder) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (folder + "/0").copy(address.sun_path, sizeof address.sun_path - 1);
    while (connect(socket_, reinterpret_cast<sockaddr const*>(&address), sizeof address) != 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::uint32_t const hello[2] = {0x686f7374, 1};
    EXPECT_EQ(write(socket_, hello, sizeof hello), static_cast<ssize_t>(sizeof hello));
  }
  RankByHand(RankByHand const&) = delete;
  RankByHand& operator=(RankByHand const&) = delete;
  ~RankByHand() { close(socket_); }
  void announce(std::uint32_t kind, std::uint64_t bytes) const {
    struct {
      std::uint32_t kind, turn;
      std::uint64_t bytes;
    } const letter{kind, 1, bytes};
    EXPECT_EQ(write(socket_, &letter, sizeof letter), static_cast<ssize_t>(sizeof letter));
  }
  /// Whether the other one has gone, once what it had said is read; waits a minute for it.
  bool is_left() const {
    timeval const minute{60, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof minute);
    char byte = 0;
    ssize_t got = 0;
    while ((got = recv(socket_, &byte, 1, 0)) > 0) continue;
    return got == 0;
  }

 private:
  int socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

// Else the others would wait for as long as a set-up may take.
TEST(Mesh, ARankWithoutMemoryForWhatComesLeavesTheOthers) {
  constexpr std::uint32_t kind = 1;
  Folder const folder;
  std::atomic<bool> has_failed{false};
  bool is_left = false;
  std::thread other([&] {
    RankByHand const rank(folder.path);
    rank.announce(kind, std::uint64_t{1} << 63);  // which no vector has: sanitizers end who asks for less
    while (!has_failed) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    is_left = rank.is_left();
  });
  Mesh mesh(0, 2, folder.path);
  try {
    mesh.trade(kind, {{}, {}});
    ADD_FAILURE() << "no error";
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), ErrorCode::environment) << e.what();
  } catch (std::exception const& e) {
    ADD_FAILURE() << e.what();
  }
  has_failed = true;
  other.join();
  EXPECT_TRUE(is_left);
  EXPECT_TRUE(mesh.broken());
}

TEST(Mesh, RefusesAFolderThatIsTooLong) { EXPECT_THROW(Mesh(0, 1, std::string(200, 'x')), Error); }

}  // namespace
}  // namespace hostless
