// Microseconds a step of stencil kernels on one GPU, and whether every cell is that of plain loops on the
// host.
//
//   nvcc -std=c++20 -O3 -arch=sm_90 --fmad=false -DHOSTLESS_GPU_COMPILER -Iinclude -Isrc \
//     -o stencil_steps bench/gpu/stencil_steps.cu
//   ./stencil_steps check | table | one fp32|fp64 ROWS COLUMNS DEPTH WIDTH ROWS_A_WARP WARPS [STEPS]
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "hostless/stencil/catalogue.hpp"
#include "stencil/gpu/resident.gpu.hpp"
#include "stencil/gpu/streamed.gpu.hpp"

namespace hostless::gpu {
namespace {

void check(cudaError_t code, char const* call) {
  if (code == cudaSuccess) return;
  std::printf("%s: %s\n", call, cudaGetErrorString(code));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

struct Problem {
  int rows, columns;
  GridBoundary y = GridBoundary::dirichlet, x = GridBoundary::dirichlet;
};

/// Both arrays of a field, and the host's.
template <class T>
struct Arrays {
  Problem problem;
  std::int64_t pitch;
  T* cells[2];
  std::vector<T> given;
  explicit Arrays(Problem const& of) : problem(of), pitch((of.columns + 31) / 32 * 32) {
    given.resize(static_cast<std::size_t>(of.rows) * of.columns);
    for (std::size_t i = 0; i < given.size(); ++i)
      given[i] = static_cast<T>((i * 2654435761u >> 8 & 0xffff) / 65536.0);
    for (T*& one : cells) CHECK(cudaMalloc(&one, pitch * of.rows * sizeof(T)));
    give();
  }
  ~Arrays() {
    for (T* one : cells) cudaFree(one);
  }
  void give() {
    for (T* one : cells)
      CHECK(cudaMemcpy2D(one, pitch * sizeof(T), given.data(), problem.columns * sizeof(T),
                         problem.columns * sizeof(T), problem.rows, cudaMemcpyHostToDevice));
  }
  std::vector<T> take(int which) const {
    std::vector<T> found(given.size());
    CHECK(cudaMemcpy2D(found.data(), problem.columns * sizeof(T), cells[which], pitch * sizeof(T),
                       problem.columns * sizeof(T), problem.rows, cudaMemcpyDeviceToHost));
    return found;
  }
};

template <class T>
struct PlainCell {
  using value_type = T;
  std::vector<T> const& u;
  Problem const& p;
  int y0, x0;
  static int at(int k, int n, GridBoundary b) {
    if (b == GridBoundary::periodic) return (k + n) % n;
    return std::clamp(k, 0, n - 1);  // of radius 1 the mirror image of -1 is 0
  }
  T operator()(int y, int x) const {
    return u[static_cast<std::size_t>(at(y0 + y, p.rows, p.y)) * p.columns + at(x0 + x, p.columns, p.x)];
  }
};

template <class T>
std::vector<T> plain(Problem const& p, std::vector<T> u, int steps) {
  std::vector<T> next = u;
  for (int s = 0; s < steps; ++s, u.swap(next))
    for (int y = 0; y < p.rows; ++y)
      for (int x = 0; x < p.columns; ++x) {
        bool const fixed = (p.y == GridBoundary::dirichlet && (y == 0 || y == p.rows - 1)) ||
                           (p.x == GridBoundary::dirichlet && (x == 0 || x == p.columns - 1));
        std::size_t const k = static_cast<std::size_t>(y) * p.columns + x;
        next[k] = fixed ? u[k] : stencils::Jacobi2d{}(PlainCell<T>{u, p, y, x});
      }
  return u;
}

template <class T>
long different(std::vector<T> const& a, std::vector<T> const& b) {
  long found = 0;
  for (std::size_t i = 0; i < a.size(); ++i) found += std::memcmp(&a[i], &b[i], sizeof(T)) != 0;
  return found;
}

int processors() {
  int found = 0;
  CHECK(cudaDeviceGetAttribute(&found, cudaDevAttrMultiProcessorCount, 0));
  return found;
}

/// Seconds of what `work` queues, several times.
std::vector<double> timed(int times, std::function<void()> const& before, std::function<void()> const& work) {
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  std::vector<double> found;
  for (int k = 0; k < times; ++k) {
    before();
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaEventRecord(begin));
    work();
    CHECK(cudaEventRecord(end));
    CHECK(cudaDeviceSynchronize());
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    found.push_back(ms * 1e-3);
  }
  std::sort(found.begin(), found.end());
  return found;
}

using Jacobi = stencils::Jacobi2d;
struct Found {
  double best_us = 0, median_us = 0;
  long different = -1;
  std::string how;
};

template <class T>
struct ResidentKernel {
  int width, rows;
  bool even;
  void const* kernel;
};
template <class T, int width, int rows>
void add(std::vector<ResidentKernel<T>>& all) {
  all.push_back({width, rows, true, (void const*)resident_kernel<T, Jacobi, width, rows, true, false>});
  all.push_back({width, rows, false, (void const*)resident_kernel<T, Jacobi, width, rows, false, false>});
}
template <class T>
std::vector<ResidentKernel<T>> const& resident_kernels() {
  static std::vector<ResidentKernel<T>> const all = [] {
    std::vector<ResidentKernel<T>> made;
    if constexpr (sizeof(T) == 4) {
      add<T, 8, 24>(made);
      add<T, 8, 14>(made);
      add<T, 8, 6>(made);
      add<T, 4, 8>(made);
      add<T, 4, 6>(made);
      add<T, 2, 8>(made);
      add<T, 2, 4>(made);
      add<T, 2, 2>(made);
    } else {
      add<T, 4, 24>(made);
      add<T, 4, 14>(made);
      add<T, 4, 6>(made);
      add<T, 2, 8>(made);
      add<T, 2, 4>(made);
    }
    return made;
  }();
  return all;
}

struct Tried {
  ResidentShape shape;
  AxisTiles y, x;
  bool even = false;
  double cost = 1e30;
};

template <class T>
Tried shaped(Problem const& p, int depth, ResidentShape const& shape) {
  Tried found;
  found.shape = shape;
  int const chunk = std::min(shape.width, static_cast<int>(16 / sizeof(T)));
  found.even = p.columns % shape.width == 0 && depth % chunk == 0 &&
               (p.x == GridBoundary::periodic || p.columns >= 32 * shape.width) &&
               (p.y == GridBoundary::periodic || p.rows >= shape.rows * shape.warps);
  found.y = AxisTiles::fewest(p.rows, shape.rows * shape.warps, depth, 1, p.y);
  found.x = AxisTiles::fewest(p.columns, 32 * shape.width, depth, found.even ? shape.width : 1, p.x);
  int const tiles = found.y.count * found.x.count;
  if (tiles == 0 || tiles > processors()) return found;
  if (resident_shared_bytes(shape, depth, 1, sizeof(T)) > 227 * 1024) return found;
  double const words = sizeof(T) / 4.0, row = shape.width * 4.2 * words + 9;
  double const exchanged = 2.0 * depth * (32 * shape.width + shape.rows * shape.warps) * words;
  found.cost = 120 + std::max((shape.warps + 3) / 4 * shape.rows * row, 25.0 * shape.rows) +
               (2600 + 2200 * std::ceil(exchanged / (256.0 * shape.warps))) / depth;
  return found;
}

template <class T>
Found resident(Problem const& p, int depth, int steps, int checked_steps, ResidentShape forced) {
  Tried best;
  for (auto const& one : resident_kernels<T>())
    for (int warps = 1; warps <= most_resident_warps(one.width * one.rows * static_cast<int>(sizeof(T)) / 4);
         ++warps) {
      if (forced.warps > 1 && (forced.width != one.width || forced.rows != one.rows || forced.warps != warps))
        continue;
      Tried const now = shaped<T>(p, depth, {one.width, one.rows, warps});
      if (now.cost < best.cost && now.even == one.even) best = now;
    }
  Found found;
  if (best.cost > 1e29) return found;
  void const* kernel = nullptr;
  for (auto const& one : resident_kernels<T>())
    if (one.width == best.shape.width && one.rows == best.shape.rows && one.even == best.even)
      kernel = one.kernel;
  Arrays<T> arrays(p);
  ResidentCall<T, 1> call;
  call.in[0] = arrays.cells[0];
  call.out[0] = arrays.cells[1];
  call.pitch = arrays.pitch;
  call.y = best.y;
  call.x = best.x;
  call.warps = best.shape.warps;
  call.row_words = (p.columns + 1) / 2 * 2 * words_of_cell<T>;
  call.deadline_ns = 2'000'000'000;
  std::size_t const words = 2 * p.rows * call.row_words * 8;
  CHECK(cudaMalloc(&call.words, words));
  CHECK(cudaMemset(call.words, 0, words));
  CHECK(cudaMalloc(&call.lost, 4));
  CHECK(cudaMemset(call.lost, 0, 4));
  int const shared = static_cast<int>(resident_shared_bytes(best.shape, depth, 1, sizeof(T)));
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  std::uint32_t epoch = 1;
  Jacobi body;
  auto const launch = [&](int count) {
    call.steps = count;
    call.epoch = epoch;
    epoch += static_cast<std::uint32_t>(count / depth + 1);
    void* arguments[] = {&call, &body};
    CHECK(cudaLaunchCooperativeKernel(kernel, dim3(call.x.count, call.y.count), dim3(32 * call.warps),
                                      arguments, shared, nullptr));
  };
  if (checked_steps > 0) {
    launch(checked_steps);
    CHECK(cudaDeviceSynchronize());
    found.different = different(arrays.take(1), plain(p, arrays.given, checked_steps));
  }
  if (steps > 0) {
    auto const times = timed(
        5, [] {}, [&] { launch(steps); });
    found.best_us = times.front() / steps * 1e6;
    found.median_us = times[2] / steps * 1e6;
  }
  std::uint32_t lost = 0;
  CHECK(cudaMemcpy(&lost, call.lost, 4, cudaMemcpyDeviceToHost));
  char text[160];
  std::snprintf(text, sizeof text,
                "resident depth %d, %d x %d tiles, %d warps of %d rows x %d cells a thread%s%s", depth,
                call.y.count, call.x.count, best.shape.warps, best.shape.rows, best.shape.width,
                best.even ? "" : ", uneven", lost != 0 ? ", LOST" : "");
  found.how = text;
  cudaFree(call.words);
  cudaFree(call.lost);
  return found;
}

template <class T, int width, int steps_a_pass>
Found streamed(Problem const& p, int steps, int checked_passes, int warps_a_processor) {
  Arrays<T> arrays(p);
  Found found;
  StreamedCall<T, 1> call;
  call.pitch = arrays.pitch;
  call.rows = p.rows;
  call.rows_boundary = p.y;
  bool const even = p.columns % width == 0 && (p.x == GridBoundary::periodic || p.columns >= 32 * width);
  int const depth = (steps_a_pass + width - 1) / width * width;
  call.x = AxisTiles::fewest(p.columns, 32 * width, p.x == GridBoundary::periodic ? depth : steps_a_pass,
                             even ? width : 1, p.x);
  if (call.x.count == 0 || p.rows < steps_a_pass + 2) return found;
  void const* kernel = even ? (void const*)streamed_kernel<T, Jacobi, width, steps_a_pass, true>
                            : (void const*)streamed_kernel<T, Jacobi, width, steps_a_pass, false>;
  int blocks = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, streamed_threads, 0));
  int const a_processor = warps_a_processor > 0 ? warps_a_processor : blocks * streamed_threads / 32;
  int const units = processors() * a_processor;
  int const most = std::max(1, std::min(units / call.x.count, p.rows / (2 * steps_a_pass)));
  call.chunk_rows = (p.rows + most - 1) / most;
  call.chunks = (p.rows + call.chunk_rows - 1) / call.chunk_rows;
  Jacobi body;
  int now = 0;
  auto const pass = [&] {
    call.in[0] = arrays.cells[now];
    call.out[0] = arrays.cells[1 - now];
    now = 1 - now;
    void* arguments[] = {&call, &body};
    int const grid = (call.x.count * call.chunks * 32 + streamed_threads - 1) / streamed_threads;
    CHECK(cudaLaunchKernel(kernel, dim3(grid), dim3(streamed_threads), arguments, 0, nullptr));
  };
  if (checked_passes > 0) {
    for (int k = 0; k < checked_passes; ++k) pass();
    CHECK(cudaDeviceSynchronize());
    found.different = different(arrays.take(now), plain(p, arrays.given, checked_passes * steps_a_pass));
  }
  int const passes = steps / steps_a_pass;
  if (passes > 0) {
    auto const times = timed(
        5, [] {},
        [&] {
          for (int k = 0; k < passes; ++k) pass();
        });
    found.best_us = times.front() / (passes * steps_a_pass) * 1e6;
    found.median_us = times[2] / (passes * steps_a_pass) * 1e6;
  }
  char text[160];
  std::snprintf(text, sizeof text,
                "streamed %d steps, %d cells a thread, %d strips x %d chunks of %d rows, %d "
                "blocks a processor%s",
                steps_a_pass, width, call.x.count, call.chunks, call.chunk_rows, blocks,
                even ? "" : ", uneven");
  found.how = text;
  return found;
}

char const* letter(GridBoundary b) {
  return b == GridBoundary::dirichlet ? "dirichlet" : b == GridBoundary::neumann ? "neumann" : "periodic";
}
long wrong = 0, tried = 0;
void say(char const* type, Problem const& p, Found const& found) {
  if (found.how.empty()) return;
  std::printf("%s %d x %d %s %s: %.3f us a step (median %.3f), %ld cells differ, %s\n", type, p.rows,
              p.columns, letter(p.y), letter(p.x), found.best_us, found.median_us, found.different,
              found.how.c_str());
  std::fflush(stdout);
  tried += found.different >= 0;
  wrong += found.different > 0;
}

template <class T>
void check_all(char const* type) {
  for (GridBoundary y : {GridBoundary::dirichlet, GridBoundary::neumann, GridBoundary::periodic})
    for (GridBoundary x : {GridBoundary::dirichlet, GridBoundary::neumann, GridBoundary::periodic})
      for (auto const& [rows, columns] : std::vector<std::pair<int, int>>{
               {256, 256}, {37, 53}, {131, 257}, {300, 512}, {64, 1001}, {1024, 1024}, {19, 23}}) {
        Problem const p{rows, columns, y, x};
        int const few = rows * columns > 500'000 ? 12 : 46;  // even, as resident takes them
        for (int depth : {4, 8}) say(type, p, resident<T>(p, depth, 0, few, {}));
        say(type, p, resident<T>(p, 6, 0, few, {}));
        if constexpr (sizeof(T) == 4) {
          say(type, p, streamed<T, 8, 8>(p, 0, 3, 0));
          say(type, p, streamed<T, 4, 4>(p, 0, 3, 0));
        } else {
          say(type, p, streamed<T, 4, 8>(p, 0, 3, 0));
        }
      }
}

template <class T>
void table(char const* type) {
  for (int n : {256, 512, 1024, 2048})
    for (int depth : {4, 8, 16}) say(type, {n, n}, resident<T>({n, n}, depth, 8000, n <= 512 ? 100 : 0, {}));
  for (int n : {1024, 2048, 4096, 8192}) {
    int const steps = n > 4000 ? 240 : 2400;
    if constexpr (sizeof(T) == 4) {
      say(type, {n, n}, streamed<T, 8, 8>({n, n}, steps, n <= 1024 ? 2 : 0, 0));
      say(type, {n, n}, streamed<T, 8, 6>({n, n}, steps, n <= 1024 ? 2 : 0, 0));
      say(type, {n, n}, streamed<T, 8, 4>({n, n}, steps, n <= 1024 ? 2 : 0, 0));
      say(type, {n, n}, streamed<T, 4, 8>({n, n}, steps, n <= 1024 ? 2 : 0, 0));
      say(type, {n, n}, streamed<T, 4, 12>({n, n}, steps, n <= 1024 ? 2 : 0, 0));
      say(type, {n, n}, streamed<T, 4, 4>({n, n}, steps, n <= 1024 ? 2 : 0, 0));
    } else {
      say(type, {n, n}, streamed<T, 4, 8>({n, n}, steps, n <= 1024 ? 2 : 0, 0));
      say(type, {n, n}, streamed<T, 4, 6>({n, n}, steps, n <= 1024 ? 2 : 0, 0));
      say(type, {n, n}, streamed<T, 4, 4>({n, n}, steps, n <= 1024 ? 2 : 0, 0));
    }
  }
}

int main_of(int argc, char** argv) {
  std::string const what = argc > 1 ? argv[1] : "check";
  if (what == "check") {
    check_all<float>("fp32");
    check_all<double>("fp64");
  } else if (what == "table") {
    table<float>("fp32");
    table<double>("fp64");
  } else if (what == "one" && argc > 8) {
    Problem const p{std::atoi(argv[3]), std::atoi(argv[4])};
    ResidentShape const shape{std::atoi(argv[6]), std::atoi(argv[7]), std::atoi(argv[8])};
    int const depth = std::atoi(argv[5]), steps = argc > 9 ? std::atoi(argv[9]) : 8000;
    bool const small = p.rows * p.columns < 300'000;
    if (std::string(argv[2]) == "fp32")
      say("fp32", p, resident<float>(p, depth, steps, small ? 50 : 0, shape));
    else
      say("fp64", p, resident<double>(p, depth, steps, small ? 50 : 0, shape));
  }
  std::printf("%ld of %ld checked differ\n", wrong, tried);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hostless::gpu

int main(int argc, char** argv) { return hostless::gpu::main_of(argc, argv); }
