// Two ranks of a program that uses MPI itself. A rank starts a message and goes on without its wait, by mistake, by a call
// that is refused or by an exception; then its queue, its requests and its buffers go. MPI must not use the buffers
// any more. Prints "kept forgotten;" on both ranks. What becomes of the start of rank 0:
//   forgotten   a receive; the wait is forgotten, and the message comes later
//   refused     the same, by a second start that is refused
//   thrown      the same, by an exception between start and wait
//   begun       a long receive of which a part has come, and the rest comes later
//   send        a long send; the wait is forgotten, and the receiver starts later
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hostless/queue/queue.hpp"
#include "hostless/transport/mpi.hpp"

namespace hostless {
namespace {

constexpr std::size_t some = 8000, many = std::size_t{1} << 22;
constexpr auto sent = std::byte{7}, own = std::byte{0x5a};
constexpr auto lateness = std::chrono::milliseconds(400);

void expect(bool holds, char const* what) {
  if (!holds) throw std::runtime_error(what);
}
bool are_all(std::vector<std::byte> const& bytes, std::byte value) {
  return std::all_of(bytes.begin(), bytes.end(), [&](std::byte one) { return one == value; });
}
// A queue's end whose other side may have gone.
void wait_or_lose(Queue& queue) {
  try {
    queue.wait();
  } catch (Error const& e) {
    if (e.code() != ErrorCode::peer_lost) throw;
  }
}
// Each waits for the other, and MPI goes on meanwhile.
void go_together() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);  // bounded: the test ends both ranks
}

struct Mistake {};

// The buffers outlive queue and requests, as they must, and are the caller's again when it returns. `mistake` is what
// follows the start.
void start_and_leave(Communicator& ranks, std::vector<std::byte>& buffer, bool sends,
                     std::function<void(Queue&, Request* const&)> const& mistake) {
  Request mine = sends ? ranks.send_init(buffer, 1, 0) : ranks.receive_init(buffer, 1, 0);
  Request* const one = &mine;
  match({&one, 1});
  Queue queue;
  if (buffer.size() == many) go_together();  // the other side has started
  queue.enqueue_start({&one, 1});
  mistake(queue, one);
}

void as_rank_0(std::unique_ptr<Communicator> ranks, std::string const& what) {
  std::map<std::string, std::function<void(Queue&, Request* const&)>> const mistakes = {
      {"forgotten", [](Queue& queue, Request* const&) { queue.wait(); }},
      {"refused",
       [](Queue& queue, Request* const& one) {
         queue.enqueue_start({&one, 1});
       }},
      {"thrown", [](Queue&, Request* const&) { throw Mistake{}; }},
      {"begun", [](Queue& queue, Request* const&) { queue.wait(); }},
      {"send", [](Queue& queue, Request* const&) { queue.wait(); }}};
  bool const sends = what == "send";
  std::vector<std::byte> buffer(sends || what == "begun" ? many : some, sent);
  bool is_refused = false, is_thrown = false;
  try {
    start_and_leave(*ranks, buffer, sends, mistakes.at(what));
  } catch (QueueError const& e) {
    is_refused = e.why() == Refusal::already_started;
  } catch (Mistake const&) {
    is_thrown = true;
  }
  expect(is_refused == (what == "refused") && is_thrown == (what == "thrown"), "another end than was meant");
  std::fill(buffer.begin(), buffer.end(), own);
  ranks.reset();  // rank 1 hears that nobody will receive what it sends
  for (int k = 0; k < 100; ++k) go_together();
  expect(are_all(buffer, own), "MPI wrote into memory that was given back");
}

void as_rank_1(std::unique_ptr<Communicator> ranks, std::string const& what) {
  bool const receives = what == "send", is_long = receives || what == "begun";
  std::vector<std::byte> buffer(is_long ? many : some, receives ? std::byte{0} : sent);
  {
    Request mine = receives ? ranks->receive_init(buffer, 0, 0) : ranks->send_init(buffer, 0, 0);
    Request* const one = &mine;
    match({&one, 1});
    Queue queue;
    if (what == "begun") queue.enqueue_start({&one, 1});
    if (is_long) go_together();
    std::this_thread::sleep_for(lateness);  // outside MPI
    if (what != "begun") queue.enqueue_start({&one, 1});
    queue.enqueue_wait({&one, 1});
    wait_or_lose(queue);
    if (receives) expect(mine.status().starts == 1, "a message that had been started did not arrive");
  }
  if (receives) expect(are_all(buffer, sent), "the buffer of a send was another's before it had left");
  for (int k = 0; k < 100; ++k) go_together();
}

void run(std::string const& what) {
  auto const transport =
      open_mpi_transport(*mpi_vendor_of_this_process(), static_cast<int>(MPI_Comm_c2f(MPI_COMM_WORLD)));
  auto ranks = std::make_unique<Communicator>(*transport);
  (transport->group().rank() == 0 ? as_rank_0 : as_rank_1)(std::move(ranks), what);
}

}  // namespace
}  // namespace hostless

int main(int count, char** words) {
  int level = 0;
  MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &level);  // so that threads of queues may call it
  try {
    hostless::run(words[1]);
  } catch (std::exception const& e) {
    std::printf("%s\n", e.what());
    std::fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  std::printf("kept forgotten;\n");
  std::fflush(stdout);
  MPI_Finalize();
  return 0;
}
