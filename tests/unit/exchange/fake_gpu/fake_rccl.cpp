// A library with the functions of RCCL that hostless calls, between threads: what it does on a stream is done at once.
// As the vendors' does, it waits for other ranks inside its calls and without a limit, until a test has it let go.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace {

struct Name {
  char name[128];
};
using Between = std::pair<int, int>;  // from, to
struct World {
  int joined = 0, left = 0;
  std::map<Between, std::deque<std::vector<char>>> messages;
};
struct Rank {
  World* world;
  int rank, ranks;
  std::atomic<bool> aborted{false};
};
struct Call {
  Rank* rank;
  int other;
  char const* from;
  char* to;
  std::size_t bytes;
};

std::mutex mutex;
std::map<int, World> worlds;                   // by the number in the name
std::vector<std::unique_ptr<Rank>> all_ranks;  // who waits may look at one that was aborted: they stay
int names = 0;
std::atomic<bool> lets_go{false};
thread_local std::vector<Call> group;

// Until it is so; false: let go, or aborted.
template <class So>
bool wait_until(So const& so, Rank const* rank = nullptr) {
  for (;;) {
    {
      std::lock_guard const lock(mutex);
      if (so()) return true;
    }
    if (lets_go || (rank != nullptr && rank->aborted)) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

bool receive(Call const& call) {
  return wait_until(
      [&] {
        auto& queue = call.rank->world->messages[{call.other, call.rank->rank}];
        if (queue.empty()) return false;
        std::memcpy(call.to, queue.front().data(), call.bytes);
        queue.pop_front();
        return true;
      },
      call.rank);
}

constexpr int fine = 0, failed = 2;

}  // namespace

extern "C" {

void fake_rccl_let_go(bool go) { lets_go = go; }

int ncclGetVersion(int* version) {
  *version = 22000;
  return fine;
}
char const* ncclGetErrorString(int status) { return status == fine ? "no error" : "let go"; }
int ncclGetUniqueId(Name* name) {
  std::lock_guard const lock(mutex);
  *name = {};
  int const number = ++names;
  std::memcpy(name->name, &number, sizeof number);
  return fine;
}
int ncclCommInitRank(Rank** rank, int ranks, Name name, int number) {
  int world = 0;
  std::memcpy(&world, name.name, sizeof world);
  World* here = nullptr;
  {
    std::lock_guard const lock(mutex);
    here = &worlds[world];
    ++here->joined;
  }
  if (!wait_until([&] { return here->joined == ranks; })) return failed;
  std::lock_guard const lock(mutex);
  all_ranks.push_back(std::unique_ptr<Rank>(new Rank{here, number, ranks}));
  *rank = all_ranks.back().get();
  return fine;
}
int ncclCommInitRankConfig(Rank** rank, int ranks, Name name, int number, void*) {
  return ncclCommInitRank(rank, ranks, name, number);
}
int ncclCommGetAsyncError(Rank*, int* status) {
  *status = fine;
  return fine;
}
int ncclCommDestroy(Rank* rank) {
  {
    std::lock_guard const lock(mutex);
    ++rank->world->left;
  }
  bool const all = wait_until([&] { return rank->world->left == rank->ranks; });
  return all ? fine : failed;
}
int ncclCommAbort(Rank* rank) {
  rank->aborted = true;
  return fine;
}
int ncclGroupStart() {
  group.clear();
  return fine;
}
int ncclSend(void const* from, std::size_t bytes, int, int to, Rank* rank, void*) {
  group.push_back({rank, to, static_cast<char const*>(from), nullptr, bytes});
  return fine;
}
int ncclRecv(void* to, std::size_t bytes, int, int from, Rank* rank, void*) {
  group.push_back({rank, from, nullptr, static_cast<char*>(to), bytes});
  return fine;
}
int ncclGroupEnd() {
  for (Call const& call : group) {
    if (call.from == nullptr) continue;
    std::lock_guard const lock(mutex);
    call.rank->world->messages[{call.rank->rank, call.other}].emplace_back(call.from, call.from + call.bytes);
  }
  for (Call const& call : group)
    if (call.to != nullptr && !receive(call)) return failed;
  return fine;
}
int ncclAllGather(void const*, void*, std::size_t, int, Rank*, void*) { return failed; }

}  // extern "C"
