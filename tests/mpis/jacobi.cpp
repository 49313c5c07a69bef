// A Jacobi iteration on a ring of ranks, three times: by MPI's non-blocking calls, by a StreamHalo as in
// figures 2 and 3 of Bridges et al., with what they leave out, and with all steps enqueued before the first.
// docs/howto/from-gpu-aware-mpi.md shows parts of it, word for word (test_page.py).
#include <cstdio>
#include <functional>
#include <vector>

#include "hostless/queue.h"
#include "stream-triggering.h"

namespace {

constexpr int cells = 2000, steps = 200;

struct Line {
  explicit Line(int rank) : now(cells + 2), next(cells + 2) {
    for (int k = 0; k < cells; ++k)
      now[static_cast<std::size_t>(k) + 1] = (rank * cells + k) % 17 == 0 ? 1.0 : 0.0;
  }
  void step() {
    for (std::size_t k = 1; k <= cells; ++k) next[k] = 0.5 * (now[k - 1] + now[k + 1]);
    now.swap(next);
  }
  std::vector<double> now, next;  // [ghost, cells, ghost]
};

void before(Line& line, int left, int right, MPI_Comm comm) {
  // [before
  for (int step = 0; step < steps; ++step) {
    MPI_Request requests[4];
    MPI_Irecv(&line.now[0], 1, MPI_DOUBLE, left, 0, comm, &requests[0]);
    MPI_Irecv(&line.now[cells + 1], 1, MPI_DOUBLE, right, 1, comm, &requests[1]);
    MPI_Isend(&line.now[cells], 1, MPI_DOUBLE, right, 0, comm, &requests[2]);
    MPI_Isend(&line.now[1], 1, MPI_DOUBLE, left, 1, comm, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);  // bounded: a test's own
    line.step();
  }
  // before]
}

// [stream halo
class StreamHalo {
 public:
  StreamHalo(int left, int right, MPI_Comm comm) {
    MPIS_Queue_init(&queue_, THREAD, nullptr);
    int const neighbour[2] = {left, right};
    for (int n = 0; n < 2; ++n) {
      MPIS_Recv_init(&ghost_[n], sizeof(double), MPI_BYTE, neighbour[n], 1 - n, comm, MPI_INFO_NULL,
                     &requests_[n]);
      MPIS_Send_init(&owned_[n], sizeof(double), MPI_BYTE, neighbour[n], n, comm, MPI_INFO_NULL,
                     &requests_[2 + n]);
    }
    MPIS_Matchall(4, requests_, MPI_STATUSES_IGNORE);
  }
  ~StreamHalo() {
    MPIS_Request_freeall(4, requests_);
    MPIS_Queue_free(&queue_);
  }
  void gather(std::vector<double>& u) {
    MPIS_Enqueue_startall(queue_, 2, &requests_[0]);  // the receives
    owned_[0] = u[1];                                 // pack
    owned_[1] = u[u.size() - 2];
    MPIS_Enqueue_startall(queue_, 2, &requests_[2]);  // the sends
    MPIS_Enqueue_waitall(queue_);
    MPIS_Queue_wait(queue_);  // the host's memory: only now may it be read
    u.front() = ghost_[0];    // unpack
    u.back() = ghost_[1];
  }

 private:
  MPIS_Queue queue_;
  MPIS_Request requests_[4];
  double ghost_[2], owned_[2];
};
// stream halo]

void after(Line& line, int left, int right, MPI_Comm comm) {
  StreamHalo halo(left, right, comm);
  for (int step = 0; step < steps; ++step) {
    halo.gather(line.now);
    line.step();
  }
}

int all_at_once(Line& line, int left, int right, hostless_transport* transport) {
  // [all at once
  double ghost[2], owned[2];
  hostless_request *receives[2], *sends[2];
  int const neighbour[2] = {left, right};
  for (int n = 0; n < 2; ++n) {
    hostless_recv_init(&ghost[n], 1, HOSTLESS_DATA_F64, neighbour[n], 1 - n, transport, &receives[n]);
    hostless_send_init(&owned[n], 1, HOSTLESS_DATA_F64, neighbour[n], n, transport, &sends[n]);
  }
  hostless_request* const all[4] = {receives[0], receives[1], sends[0], sends[1]};
  hostless_matchall(4, all);
  hostless_queue* queue;
  hostless_queue_init(&queue, "auto", nullptr);
  std::function<void()> pack = [&] { owned[0] = line.now[1], owned[1] = line.now[cells]; };
  std::function<void()> unpack = [&] { line.now[0] = ghost[0], line.now[cells + 1] = ghost[1], line.step(); };
  auto const call = [](void* work) { (*static_cast<std::function<void()>*>(work))(); };
  for (int step = 0; step < steps; ++step) {
    hostless_enqueue_startall(queue, 2, receives);
    hostless_enqueue_function(queue, call, &pack);
    hostless_enqueue_start_and_wait(queue, 2, sends, 4, all);
    hostless_enqueue_function(queue, call, &unpack);
  }
  int const code = hostless_queue_wait(queue);
  // all at once]
  for (hostless_request* one : all) hostless_request_free(&one);
  hostless_queue_free(&queue);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int const left = (rank + size - 1) % size, right = (rank + 1) % size;
  Line by_mpi(rank), by_halo(rank), at_once(rank);
  before(by_mpi, left, right, MPI_COMM_WORLD);
  after(by_halo, left, right, MPI_COMM_WORLD);
  hostless_transport* transport = nullptr;
  int wrong =
      hostless_open_mpi(HOSTLESS_TEST_VENDOR, static_cast<int>(MPI_Comm_c2f(MPI_COMM_WORLD)), &transport);
  if (wrong == 0) wrong = all_at_once(at_once, left, right, transport);
  hostless_close(transport);
  wrong += by_halo.now != by_mpi.now || at_once.now != by_mpi.now;
  double mine = 0, all = 0;
  for (std::size_t k = 1; k <= cells; ++k) mine += by_mpi.now[k];
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  int const ones = (size * cells + 16) / 17;
  wrong += all < ones - 1e-6 || all > ones + 1e-6;  // a mean takes nothing away
  if (wrong == 0) std::printf("kept jacobi;\n");
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
