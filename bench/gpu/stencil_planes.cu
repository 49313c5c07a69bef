// Microseconds a step of the kernel that takes several steps of three axes in one pass, and whether every cell
// is that of plain loops on the host.
//
//   nvcc -std=c++20 -O3 -arch=sm_90 --fmad=false -DHOSTLESS_GPU_COMPILER -Iinclude -Isrc \
//     -o stencil_planes bench/gpu/stencil_planes.cu
//   ./stencil_planes check | table | profile
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "hostless/stencil/catalogue.hpp"
#include "stencil/gpu/planes.gpu.hpp"

namespace hostless::gpu {
namespace {

void check(cudaError_t code, char const* call) {
  if (code == cudaSuccess) return;
  std::printf("%s: %s\n", call, cudaGetErrorString(code));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

struct Problem {
  int n[3];
  GridBoundary boundary[3];
};

template <class T>
struct PlainCell {
  using value_type = T;
  std::vector<T> const& u;
  Problem const& p;
  int z0, y0, x0;
  int at(int k, int axis) const {
    int const n = p.n[axis];
    if (p.boundary[axis] == GridBoundary::periodic) return (k + n) % n;
    return std::clamp(k, 0, n - 1);  // of radius 1 the mirror image of -1 is 0
  }
  T operator()(int z, int y, int x) const {
    return u[(static_cast<std::size_t>(at(z0 + z, 0)) * p.n[1] + at(y0 + y, 1)) * p.n[2] + at(x0 + x, 2)];
  }
};
template <class T, class Body>
std::vector<T> plain(Problem const& p, std::vector<T> u, int steps) {
  std::vector<T> next = u;
  for (int s = 0; s < steps; ++s, u.swap(next))
    for (int z = 0; z < p.n[0]; ++z)
      for (int y = 0; y < p.n[1]; ++y)
        for (int x = 0; x < p.n[2]; ++x) {
          int const at[3] = {z, y, x};
          bool fixed = false;
          for (int axis = 0; axis < 3; ++axis)
            fixed = fixed || (p.boundary[axis] == GridBoundary::dirichlet &&
                              (at[axis] == 0 || at[axis] == p.n[axis] - 1));
          std::size_t const k = (static_cast<std::size_t>(z) * p.n[1] + y) * p.n[2] + x;
          next[k] = fixed ? u[k] : Body{}(PlainCell<T>{u, p, z, y, x});
        }
  return u;
}

long wrong = 0, tried = 0;
bool zeros = false;

/// Of four times so many, the first left out.
template <class Pass>
float best_ms(int passes, Pass const& pass) {
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  float best = 1e30f;
  for (int k = 0; k < 4; ++k) {
    CHECK(cudaEventRecord(begin));
    for (int i = 0; i < passes; ++i) pass();
    CHECK(cudaEventRecord(end));
    CHECK(cudaDeviceSynchronize());
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    if (k > 0) best = std::min(best, ms);
  }
  return best;
}

/// Two arrays of a grid in memory of the GPU.
template <class T>
struct Arrays {
  Problem p;
  std::int64_t pitch;
  std::vector<T> given;
  T* cells[2];
  int now = 0;
  explicit Arrays(Problem const& of) : p(of), pitch((of.n[2] + 31) / 32 * 32), given(count()) {
    for (std::size_t i = 0; i < given.size(); ++i)
      given[i] = static_cast<T>((i * 2654435761u >> 8 & 0xffff) / 65536.0);
    if (zeros) give_zeros();
    for (T*& array : cells) {
      CHECK(cudaMalloc(&array, pitch * p.n[1] * p.n[0] * sizeof(T)));
      CHECK(cudaMemcpy2D(array, pitch * sizeof(T), given.data(), row_bytes(), row_bytes(), all_rows(),
                         cudaMemcpyHostToDevice));
    }
  }
  Arrays(Arrays const&) = delete;
  ~Arrays() {
    for (T* array : cells) cudaFree(array);
  }
  std::vector<T> take() const {
    std::vector<T> found(given.size());
    CHECK(cudaMemcpy2D(found.data(), row_bytes(), cells[now], pitch * sizeof(T), row_bytes(), all_rows(),
                       cudaMemcpyDeviceToHost));
    return found;
  }

 private:
  std::size_t count() const { return all_rows() * p.n[2]; }
  std::size_t all_rows() const { return static_cast<std::size_t>(p.n[0]) * p.n[1]; }
  std::size_t row_bytes() const { return p.n[2] * sizeof(T); }
  /// A hot end, zeros that it reaches as the smallest numbers there are, and an infinity.
  void give_zeros() {
    std::fill(given.begin(), given.end(), T(0));
    for (int k = 0; k < p.n[1] * p.n[2]; ++k) given[k] = T(1);
    for (int k = 0; k < p.n[1]; ++k) given[(p.n[1] * 3 + k) * p.n[2] + 5] = T(-0.0);
    given[(p.n[1] * 8 + 9) * p.n[2] + 10] = std::numeric_limits<T>::infinity();
    given[(p.n[1] * 9 + 20) * p.n[2] + 20] = std::numeric_limits<T>::denorm_min() * 9;
    given[(p.n[1] * 10 + 20) * p.n[2] + 30] = std::numeric_limits<T>::min() * 5;
  }
};

/// So many chunks that the slowest multiprocessor is done first.
int best_chunks(Problem const& p, int windows, int steps, int blocks_at_once) {
  double least = 1e30;
  int best = 1;
  for (int chunks = 1; chunks <= std::max(1, p.n[0] / (2 * steps)); ++chunks) {
    int const waves = (windows * chunks + blocks_at_once - 1) / blocks_at_once;
    double const cost = static_cast<double>(waves) * ((p.n[0] + chunks - 1) / chunks + 2 * steps);
    if (cost < least) least = cost, best = chunks;
  }
  return best;
}

struct Wanted {
  int tx, ty, passes, checked, chunks = 0;
};

template <class T>
bool fill(PlanesCall<T, 1>& call, Problem const& p, PlanesShape const& shape, bool even) {
  if (shape.width * shape.threads_x > p.n[2] || shape.rows * shape.threads_y > p.n[1]) return false;
  if (p.n[0] < shape.steps + 2 || shape.threads() > shape.most_threads) return false;
  bool const wraps = p.boundary[2] == GridBoundary::periodic;
  int const depth = wraps ? (shape.steps + shape.width - 1) / shape.width * shape.width : shape.steps;
  call.stride[1] = (p.n[2] + 31) / 32 * 32;
  call.stride[0] = call.stride[1] * p.n[1];
  call.planes = p.n[0];
  call.planes_boundary = p.boundary[0];
  call.threads_x = shape.threads_x;
  call.y = AxisTiles::fewest(p.n[1], shape.rows * shape.threads_y, shape.steps, 1, p.boundary[1]);
  call.x =
      AxisTiles::fewest(p.n[2], shape.width * shape.threads_x, depth, even ? shape.width : 1, p.boundary[2]);
  return call.x.count > 0 && call.y.count > 0;
}

template <class T, class Body, int rows, int steps, int most_threads>
void one(char const* name, Problem const& p, Wanted const& wanted) {
  constexpr int width = Chunk<T>::cells;
  PlanesShape const shape{width, rows, steps, most_threads, wanted.ty, wanted.tx};
  bool const even = p.n[2] % width == 0;
  int const shared = static_cast<int>(planes_shared_bytes(shape, 1, sizeof(T)));
  PlanesCall<T, 1> call;
  if (shared > 227 * 1024 || !fill(call, p, shape, even)) return;
  void const* kernel = even ? (void const*)planes_kernel<T, Body, rows, steps, most_threads, true>
                            : (void const*)planes_kernel<T, Body, rows, steps, most_threads, false>;
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  int fit = 0, processors = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, kernel, shape.threads(), shared));
  CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
  int const windows = call.x.count * call.y.count;
  int const most = wanted.chunks > 0 ? wanted.chunks : best_chunks(p, windows, steps, processors * fit);
  call.chunk_planes = (p.n[0] + most - 1) / most;
  int const chunks = (p.n[0] + call.chunk_planes - 1) / call.chunk_planes;
  Arrays<T> arrays(p);
  Body body;
  auto const pass = [&] {
    call.in[0] = arrays.cells[arrays.now];
    call.out[0] = arrays.cells[1 - arrays.now];
    arrays.now = 1 - arrays.now;
    void* arguments[] = {&call, &body};
    CHECK(
        cudaLaunchKernel(kernel, dim3(windows * chunks), dim3(shape.threads()), arguments, shared, nullptr));
  };
  if (wanted.checked > 0) {
    for (int k = 0; k < wanted.checked; ++k) pass();
    CHECK(cudaDeviceSynchronize());
    std::vector<T> const found = arrays.take(),
                         right = plain<T, Body>(p, arrays.given, wanted.checked * steps);
    bool const differs = std::memcmp(found.data(), right.data(), found.size() * sizeof(T)) != 0;
    if (differs) std::printf("%s %dx%dx%d, %d steps: cells differ\n", name, p.n[0], p.n[1], p.n[2], steps);
    ++tried;
    wrong += differs;
  }
  if (wanted.passes == 0) return;
  std::printf(
      "%s %dx%dx%d: %.2f us a step, %d steps of %dx%d threads with %d rows, %dx%d windows x %d chunks, "
      "%d blocks a multiprocessor\n",
      name, p.n[0], p.n[1], p.n[2], best_ms(wanted.passes, pass) * 1e3 / (wanted.passes * steps), steps,
      wanted.ty, wanted.tx, rows, call.y.count, call.x.count, chunks, fit);
}

void check_all() {
  using enum GridBoundary;
  GridBoundary const all[3] = {dirichlet, neumann, periodic};
  for (int b = 0; b < 54; ++b)
    for (int size = 0; size < 3; ++size) {
      zeros = b >= 27;
      Problem p{{19 + 2 * size, 37 + size,
                 size == 0   ? 64
                 : size == 1 ? 53
                             : 72},
                {all[b % 3], all[b / 3 % 3], all[b / 9 % 3]}};
      one<float, stencils::Jacobi3d, 2, 3, 512>("fp32", p, {8, 9, 0, 2, 2});
      one<float, stencils::Jacobi3d, 2, 4, 512>("fp32", p, {6, 12, 0, 2, 1});
      one<float, stencils::Jacobi3d, 4, 4, 256>("fp32", p, {7, 5, 0, 2, 2});
      one<double, stencils::Jacobi3d, 4, 3, 256>("fp64", p, {11, 5, 0, 2, 2});
    }
  std::printf("%ld of %ld wrong\n", wrong, tried);
}
template <class Body>
void table(char const* name, int n) {
  Problem const p{{n, n, n}, {}};
  int const passes = n > 256 ? 20 : 60;
  zeros = false;
  one<double, Body, 2, 3, 512>("fp64", p, {23, 22, passes, 0});
  for (auto [ty, tx] : {std::pair{11, 23}, {16, 16}, {14, 18}}) {
    one<float, Body, 4, 4, 256>(name, p, {tx, ty, passes, 0});
    one<double, Body, 4, 4, 256>("fp64", p, {tx, ty, passes, 0});
  }
  zeros = true;
  one<float, Body, 4, 4, 256>("of zeros", p, {23, 11, 3, 0});
}

}  // namespace
}  // namespace hostless::gpu

int main(int count, char** arguments) {
  std::string const what = count > 1 ? arguments[1] : "check";
  if (what == "check") hostless::gpu::check_all();
  if (what == "table") {
    hostless::gpu::table<hostless::stencils::Jacobi3d>("fp32", 256);
    hostless::gpu::table<hostless::stencils::Jacobi3d>("fp32", 512);
  }
  if (what == "profile") {
    hostless::gpu::one<float, hostless::stencils::Jacobi3d, 4, 3, 256>("profile", {{256, 256, 256}, {}},
                                                                       {23, 11, 3, 0});
    hostless::gpu::one<float, hostless::stencils::Jacobi3d, 4, 4, 256>("profile", {{256, 256, 256}, {}},
                                                                       {23, 11, 3, 0});
  }
  return hostless::gpu::wrong != 0;
}
