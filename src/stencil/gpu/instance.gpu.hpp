#pragma once
// Makes the kernels of a functor, and launches them.

#include <algorithm>
#include <cstring>

#include "device/queue.hpp"
#include "hostless/stencil/catalogue.hpp"
#include "stencil/gpu/cached.gpu.hpp"
#include "stencil/gpu/launch.hpp"
#include "stencil/gpu/parts/parted.gpu.hpp"
#include "stencil/gpu/parts/split.gpu.hpp"
#include "stencil/gpu/plain.gpu.hpp"
#include "stencil/gpu/planes.gpu.hpp"
#include "stencil/gpu/resident.gpu.hpp"
#include "stencil/gpu/streamed.gpu.hpp"

namespace hostless::gpu {

/// Where only to see that it compiles, one shape of each is.
#if defined(HOSTLESS_STENCIL_SAMPLE)
constexpr bool all_shapes = false;
#else
constexpr bool all_shapes = true;
#endif

template <class T, class Body>
class InstanceOf final : public StencilInstance {
  using Facts = ArraysOf<Body>;
  static constexpr bool is_fast = Facts::axes == 2 && Body::radius == 1 && Facts::coefficients == 0;

  static constexpr bool is_in_planes =
      Facts::axes == 3 && Body::radius == 1 && Facts::coefficients == 0 && FactsOf<Body>::star;

  struct Kernel {
    int width, other;  ///< rows or steps
    bool even, parted;
    void const* kernel;
  };
  std::vector<Kernel> resident_, streamed_;
  struct PlanesKernel {
    StencilShapes::Planes of;
    void const* kernel;
  };
  std::vector<PlanesKernel> planes_;

 public:
  explicit InstanceOf(char const* name) {
    text = {name, Facts::axes, sizeof(T)};
    fields = Facts::fields;
    arrays = Facts::arrays;
    radius = Facts::reach0;
    parameter_bytes = std::is_empty_v<Body> ? 0 : sizeof(Body);
    if constexpr (is_fast) {
      // registers of a cell; cells of a thread's row
      constexpr int cell = Facts::fields * static_cast<int>(sizeof(T)) / 4;
      constexpr int wide = cell == 1 ? 8 : cell == 2 ? 4 : 2, narrow = cell == 1 ? 4 : 2;
      constexpr int streamed_width = 32 / static_cast<int>(sizeof(T)), pass = Facts::fields == 1 ? 8 : 4;
      add_resident<narrow, 6, true>();
      add_streamed<streamed_width, pass, true>();
      if constexpr (all_shapes) {
        add_resident<wide, 24, true>();
        add_resident<wide, 14, true>();
        add_resident<wide, 6, true>();
        add_resident<2, 4, true>();
        add_resident<wide, 12, false>();
        add_resident<narrow, 6, false>();
        add_streamed<streamed_width, pass, false>();
      }
    }
    if constexpr (is_in_planes) {
      // what a multiprocessor's registers and shared memory hold
      constexpr int cell = Facts::fields * static_cast<int>(sizeof(T)) / 4;
      if constexpr (cell == 1)
        add_planes<4, 4, 256>();
      else if constexpr (cell == 2 && sizeof(T) == 8)
        add_planes<2, 3, 512>();
      else if constexpr (cell == 2)
        add_planes<4, 2, 256>();
      else
        add_planes<2, 2, 320>();
      if constexpr (all_shapes && cell == 1) add_planes<2, 2, 240>();  // of 64 KiB
    }
  }

  void load(StencilProblem const& problem) const override {
    StencilWay const& way = problem.way;
    if (way.cells == GpuCells::resident) {
      load_kernel(find_resident(way));
    } else if (way.is_split()) {
      load_kernel(reinterpret_cast<void const*>(border_kernel<T, Body>));
      load_kernel(kernel_beside_border(way));
    } else
      load_kernel(reinterpret_cast<void const*>(parted_kernel<T, Body>));
  }
  void step(StencilProblem const& problem, StencilArrays const& a,
            HOSTLESS_GPU(Stream_t) stream) const override {
    step_rows(problem, a, {0, problem.grid.extent[0]}, stream);
  }
  void step_rows(StencilProblem const& problem, StencilArrays const& a, RowRange rows,
                 HOSTLESS_GPU(Stream_t) stream) const override {
    PlainCallOf<T, Body> call = plain_call(problem, a, rows);
    Body body = body_of(problem);
    void* parameters[] = {&call, &body};
    if (call.tiles > 0)
      start(reinterpret_cast<void const*>(plain_kernel<T, Body>), dim3(blocks_of(call.tiles)), plain_threads,
            parameters, stream);
  }
  int blocks_at_once(StencilProblem const& problem) const override {
    bool const is_alone = problem.way.parts.size() == 1;
    void const* const kernel = is_alone ? reinterpret_cast<void const*>(barrier_kernel<T, Body>)
                                        : reinterpret_cast<void const*>(parted_kernel<T, Body>);
    return blocks_a_multiprocessor(kernel, plain_threads) * problem.multiprocessors;
  }
  void steps_with_barriers(StencilProblem const& problem, StencilArrays const& a, std::int64_t steps,
                           int blocks, BlockBarrier const& given,
                           HOSTLESS_GPU(Stream_t) stream) const override {
    PlainCallOf<T, Body> call = plain_call(problem, a);
    Body body = body_of(problem);
    BlockBarrier barrier = given;
    void* parameters[] = {&call, &body, &steps, &barrier};
    launch_together(reinterpret_cast<void const*>(barrier_kernel<T, Body>),
                    dim3(static_cast<unsigned>(blocks)), plain_threads, parameters, 0, false, stream);
  }
  void steps_of_part(StencilProblem const& problem, StencilArrays const& a, std::int64_t steps, int blocks,
                     BlockBarrier const& given, HaloWords const& halo_words,
                     HOSTLESS_GPU(Stream_t) stream) const override {
    PlainCallOf<T, Body> call = plain_call(problem, a);
    Body body = body_of(problem);
    BlockBarrier barrier = given;
    HaloWords halo = halo_words;
    void* parameters[] = {&call, &body, &steps, &barrier, &halo};
    launch_together(reinterpret_cast<void const*>(parted_kernel<T, Body>),
                    dim3(static_cast<unsigned>(blocks)), plain_threads, parameters, 0,
                    problem.way.sharers > 1, stream);
  }
  SplitPlan split(StencilProblem const& problem, PartRows const& rows) const override;
  void steps_split(StencilProblem const& problem, StencilArrays const& a, std::int64_t steps,
                   SplitPlan const& plan, SplitWaits const& waits, SplitStreams streams) const override;
  void deal_out(StencilProblem& problem) const override {
    if (problem.way.is_in_planes()) return problem.way.planes.deal_out(problem.grid.extent[0]);
    StreamedPlan& plan = problem.way.streamed;
    void const* const kernel = find(streamed_, plan.shape.width, plan.shape.steps, plan.even, false);
    int const warps =
        blocks_a_multiprocessor(kernel, streamed_threads) * problem.multiprocessors * (streamed_threads / 32);
    int const rows = static_cast<int>(problem.grid.extent[0]);
    int const most = std::max(1, std::min(warps / plan.x.count, rows / (2 * plan.shape.steps)));
    plan.chunk_rows = (rows + most - 1) / most;
    plan.chunks = (rows + plan.chunk_rows - 1) / plan.chunk_rows;
  }
  void pass(StencilProblem const& problem, StencilArrays const& a,
            HOSTLESS_GPU(Stream_t) stream) const override {
    if constexpr (is_in_planes) pass_of_planes(problem, a, stream);
    if constexpr (is_fast) {
      StreamedPlan const& plan = problem.way.streamed;
      StreamedCall<T, Facts::fields> call;
      fill(call, a);
      call.rows = static_cast<int>(problem.grid.extent[0]);
      call.rows_boundary = problem.grid.boundary[0];
      call.x = plan.x;
      call.chunk_rows = plan.chunk_rows;
      call.chunks = plan.chunks;
      Body body = body_of(problem);
      void* parameters[] = {&call, &body};
      std::int64_t const threads = std::int64_t{call.x.count} * call.chunks * 32;
      start(find(streamed_, plan.shape.width, plan.shape.steps, plan.even, false),
            dim3(blocks_of((threads + streamed_threads - 1) / streamed_threads)), streamed_threads,
            parameters, stream);
    }
  }
  void resident(StencilProblem const& problem, StencilArrays const& a, std::int64_t steps,
                ResidentMemory const& memory, HOSTLESS_GPU(Stream_t) stream) const override {
    if constexpr (is_fast) {
      ResidentPlan const& plan = problem.way.resident;
      ResidentCall<T, Facts::fields> call;
      fill(call, a);
      call.y = plan.y;
      call.x = plan.x;
      call.warps = plan.shape.warps;
      call.steps = steps;
      call.words = memory.words;
      call.row_words = static_cast<int>(memory.row_words);
      call.epoch = memory.epoch;
      call.lost = memory.lost;
      call.deadline_ns = memory.deadline_ns;
      call.first_tile = memory.part.first_tile;
      call.first_row = static_cast<int>(memory.first_row);
      call.own_low = static_cast<int>(memory.part.low);
      call.own_high = static_cast<int>(memory.part.high);
      for (int side = 0; side < 2; ++side) call.beyond[side] = memory.beyond[side];
      Body body = body_of(problem);
      void* parameters[] = {&call, &body};
      std::int64_t const shared = resident_shared_bytes(plan.shape, plan.y.depth, Facts::fields, sizeof(T));
      launch_together(find_resident(problem.way),
                      dim3(static_cast<unsigned>(plan.x.count), static_cast<unsigned>(memory.part.tiles)),
                      32 * plan.shape.warps, parameters, static_cast<std::size_t>(shared),
                      problem.way.sharers > 1, stream);
    }
  }

 private:
  template <int width, int rows, bool even>
  void add_resident() {
    constexpr int most_warps = most_resident_warps(resident_words<T, Body>(width, rows));
    for (Kernel const& one : resident_)
      if (one.width == width && one.other == rows && one.even == even) return;
    resident_.push_back({width, rows, even, false,
                         reinterpret_cast<void const*>(resident_kernel<T, Body, width, rows, even, false>)});
    resident_.push_back({width, rows, even, true,
                         reinterpret_cast<void const*>(resident_kernel<T, Body, width, rows, even, true>)});
    shapes.resident.push_back({width, rows, most_warps, even});
  }
  template <int width, int steps, bool even>
  void add_streamed() {
    streamed_.push_back({width, steps, even, false,
                         reinterpret_cast<void const*>(streamed_kernel<T, Body, width, steps, even>)});
    shapes.streamed.push_back({{width, steps}, even});
  }
  template <int rows, int steps, int most_threads>
  void add_planes() {
    constexpr PlanesShape shape{Chunk<T>::cells, rows, steps, most_threads, 1, 1};
    planes_.push_back(
        {{shape, true},
         reinterpret_cast<void const*>(planes_kernel<T, Body, rows, steps, most_threads, true>)});
    if constexpr (all_shapes)
      planes_.push_back(
          {{shape, false},
           reinterpret_cast<void const*>(planes_kernel<T, Body, rows, steps, most_threads, false>)});
    shapes.planes.clear();
    for (PlanesKernel const& one : planes_) shapes.planes.push_back(one.of);
  }
  void pass_of_planes(StencilProblem const& problem, StencilArrays const& a,
                      HOSTLESS_GPU(Stream_t) stream) const {
    PlanesPlan const& plan = problem.way.planes;
    PlanesCall<T, Facts::fields> call;
    for (int f = 0; f < Facts::fields; ++f) {
      call.in[f] = static_cast<T const*>(a.in[f]);
      call.out[f] = static_cast<T*>(a.out[f]);
    }
    for (int k = 0; k < 2; ++k) call.stride[k] = a.stride[k];
    call.planes = static_cast<int>(problem.grid.extent[0]);
    call.planes_boundary = problem.grid.boundary[0];
    call.y = plan.y;
    call.x = plan.x;
    call.threads_x = plan.shape.threads_x;
    call.chunk_planes = plan.chunk_planes;
    Body body = body_of(problem);
    void* parameters[] = {&call, &body};
    start_with_shared(find_planes(plan), dim3(blocks_of(std::int64_t{plan.windows()} * plan.chunks)),
                      plan.shape.threads(), parameters,
                      planes_shared_bytes(plan.shape, Facts::fields, sizeof(T)), stream);
  }
  void const* find_planes(PlanesPlan const& plan) const {
    for (PlanesKernel const& one : planes_)
      if (one.of.even == plan.even && one.of.shape.steps == plan.shape.steps &&
          one.of.shape.rows == plan.shape.rows && one.of.shape.most_threads == plan.shape.most_threads)
        return one.kernel;
    no_such_kernel();
  }
  static void const* kernel_beside_border(StencilWay const& way) {
    return way.cells == GpuCells::cached ? reinterpret_cast<void const*>(cached_kernel<T, Body>)
                                         : reinterpret_cast<void const*>(inner_kernel<T, Body>);
  }
  void const* find_resident(StencilWay const& way) const {
    ResidentPlan const& plan = way.resident;
    return find(resident_, plan.shape.width, plan.shape.rows, plan.even, way.parts.size() > 1);
  }
  static void const* find(std::vector<Kernel> const& all, int width, int other, bool even, bool parted) {
    for (Kernel const& one : all)
      if (one.width == width && one.other == other && one.even == even && one.parted == parted)
        return one.kernel;
    no_such_kernel();
  }
  [[noreturn]] static void no_such_kernel() {
    throw Error(ErrorCode::usage,
                "this GPU library has no such kernel of a stencil (shapes were chosen for "
                "another). Report it.");
  }
  static Body body_of(StencilProblem const& problem) {
    Body body{};
    if constexpr (!std::is_empty_v<Body>)
      std::memcpy(static_cast<void*>(&body), problem.parameters.data(), sizeof(Body));
    return body;
  }
  template <class Call>
  static void fill(Call& call, StencilArrays const& a) {
    for (int f = 0; f < Facts::fields; ++f) {
      call.in[f] = static_cast<T const*>(a.in[f]);
      call.out[f] = static_cast<T*>(a.out[f]);
    }
    call.pitch = a.stride[0];
  }
  static PlainCallOf<T, Body> plain_call(StencilProblem const& problem, StencilArrays const& a) {
    return plain_call(problem, a, {0, problem.grid.extent[0]});
  }
  static PlainCallOf<T, Body> plain_call(StencilProblem const& problem, StencilArrays const& a,
                                         RowRange rows) {
    PlainCallOf<T, Body> call;
    for (int k = 0; k < Facts::arrays; ++k) call.in[k] = static_cast<T const*>(a.in[k]);
    for (int f = 0; f < Facts::fields; ++f) call.out[f] = static_cast<T*>(a.out[f]);
    fill_plain(call, problem.grid, radius_of_body<Body>(), a, rows);
    tile_plain(call);
    if (!problem.way.computes) call.tiles = 0;
    return call;
  }
};

}  // namespace hostless::gpu

#include "stencil/gpu/parts/split_instance.gpu.hpp"
