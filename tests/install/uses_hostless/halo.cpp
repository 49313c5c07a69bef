// Heat on a cylinder in boxes whose halos a queue fills: what docs/howto/queue.md shows, beside one box without ranks.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <hostless/queue/halo.hpp>
#include <utility>
#include <vector>

constexpr int rows = 12, columns = 10, steps = 50;

// A box with a line of other cells around it; `line` is its columns and two.
void mean_of_neighbours(std::vector<double>& to, std::vector<double> const& from, std::size_t line) {
  for (std::size_t k = line; k + line < from.size(); ++k)
    if (k % line != 0 && k % line != line - 1)
      to[k] = (from[k - line] + from[k + line] + from[k - 1] + from[k + 1]) / 4;
}
double heat_at(int row, int column) { return row * row % 7 + column % 3; }

std::vector<double> on_one_box() {
  constexpr std::size_t line = columns + 2;
  std::vector<double> u((rows + 2) * line), next(u.size());
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) u[(i + 1) * line + j + 1] = heat_at(i, j);
  for (int step = 0; step < steps; ++step) {
    for (std::size_t row = line; row + line < u.size(); row += line)
      u[row] = u[row + columns], u[row + columns + 1] = u[row + 1];
    mean_of_neighbours(next, u, line);
    std::swap(u, next);
  }
  return u;
}

// On 2 x 2 ranks: whether the box is that part of the whole.
bool is_right(hostless::Transport& transport, std::vector<double> const& whole) {
  int const rank = transport.group().rank(), high = rows / 2, wide = columns / 2;
  std::size_t const line = wide + 2;
  std::vector<double> u((high + 2) * line), next(u.size());
  for (int i = 0; i < high; ++i)
    for (int j = 0; j < wide; ++j)
      u[(i + 1) * line + j + 1] = heat_at(rank / 2 * high + i, rank % 2 * wide + j);
  // [halo
  hostless::Communicator ranks(transport);
  hostless::HaloGrid const grid{.ranks = {2, 2},            // rows, columns: rank 1 is to the right of rank 0
                                .periodic = {false, true},  // a cylinder
                                .size = {high, wide},  // of this rank's box: u has a line more on each side
                                .width = 1,
                                .reach = hostless::HaloReach::star};
  hostless::QueueHalo halo(ranks, grid, {{.cells = u.data(), .item_bytes = sizeof(double)}});

  hostless::Queue queue;
  void* arrays[] = {u.data(), next.data()};  // they take turns
  for (int step = 0; step < steps; ++step) {
    halo.enqueue_gather(queue, {.arrays = {&arrays[step % 2], 1}});
    queue.enqueue_function([&] {
      mean_of_neighbours(next, u, line);
      std::swap(u, next);
    });
  }
  queue.wait();
  // halo]
  bool right = true;
  for (int i = 0; i < high; ++i)
    for (int j = 0; j < wide; ++j) {
      std::size_t const row = static_cast<std::size_t>(rank / 2 * high + i + 1),
                        column = rank % 2 * wide + j + 1;
      right = right && u[(i + 1) * line + j + 1] == whole[row * (columns + 2) + column];
    }
  transport.group().barrier();
  return right;
}

int main() {
  std::vector<double> const whole = on_one_box();
  std::atomic<int> good{0};
  hostless::run_with_threads_transport(4,
                                       [&](hostless::Transport& t) { good += is_right(t, whole) ? 1 : 0; });
  std::printf("heat is right on %d of 4 ranks\n", good.load());
  return good == 4 ? 0 : 1;
}
