#pragma once
// Two kernels that go on together, of border rows and of the others: how they are dealt out and launched. The end of
// instance.gpu.hpp.

namespace hostless::gpu {

template <class T, class Body>
SplitPlan InstanceOf<T, Body>::split(StencilProblem const& problem, PartRows const& rows) const {
  PlainCallOf<T, Body> const call = plain_call(problem, {});
  SplitPlan plan;
  plan.rows = SplitRows::of(rows, {call.low[0], call.high[0]}, Facts::reach0);
  RowRange const& inner = plan.rows.inner;
  if (problem.way.cells == GpuCells::cached) {
    // each block, of either kernel, takes a multiprocessor at most
    plan.blocks = SplitBlocks::of(plan.rows, {1, 1, problem.multiprocessors});
    plan.border_threads = most_border_threads;
    CachedRoom room;
    room.reach = radius_of_body<Body>();
    room.cell_bytes = Facts::fields * static_cast<std::int64_t>(sizeof(T));
    room.blocks = plan.blocks.inner;
    room.shared_bytes = problem.way.shared_bytes;
    plan.boxes = choose_boxes({static_cast<int>(inner.low), call.low[1], call.low[2]},
                              {static_cast<int>(inner.high), call.high[1], call.high[2]}, room);
    return plan;
  }
  plan.border_threads = plain_threads;
  SplitRoom room{
      blocks_a_multiprocessor(reinterpret_cast<void const*>(inner_kernel<T, Body>), plain_threads),
      blocks_a_multiprocessor(reinterpret_cast<void const*>(border_kernel<T, Body>), plain_threads),
      problem.multiprocessors};
  room.border = std::min(room.border, room.inner);
  plan.blocks = SplitBlocks::of(plan.rows, room);
  if (!plan.blocks.fit(room))
    throw Error(ErrorCode::usage,
                "so many parts on one GPU (the blocks of two kernels each do not fit at once). Use fewer.");
  std::int64_t const cells = inner.rows() * (call.high[1] - call.low[1]) * (call.high[2] - call.low[2]);
  plan.blocks.inner = static_cast<int>(
      std::clamp<std::int64_t>((cells + plain_threads - 1) / plain_threads, 1, plan.blocks.inner));
  return plan;
}
template <class T, class Body>
void InstanceOf<T, Body>::steps_split(StencilProblem const& problem, StencilArrays const& a,
                                      std::int64_t steps, SplitPlan const& plan, SplitWaits const& waits,
                                      SplitStreams streams) const {
  // ordinary launches: the vendor checks one kernel at a time, and SplitBlocks both
  constexpr bool beside_others = true;
  PlainCallOf<T, Body> call = plain_call(problem, a);
  Body body = body_of(problem);
  SplitRows rows = plan.rows;
  KernelJoin join{waits.border, waits.inner, static_cast<std::uint32_t>(plan.blocks.inner)};
  HaloWords halo = waits.halo;
  void* of_border[] = {&call, &body, &steps, &rows, &join, &halo};
  launch_together(reinterpret_cast<void const*>(border_kernel<T, Body>),
                  dim3(static_cast<unsigned>(plan.blocks.border)), plan.border_threads, of_border, 0,
                  beside_others, streams.border);
  bool const caches = problem.way.cells == GpuCells::cached;
  CachedCall<T, Body> cached;
  cached.boxes = plan.boxes;
  if (!problem.way.computes) cached.boxes.count[0] = 0;
  RowRange rest = rows.inner;
  if (caches && plan.boxes.boxes() > 0) rest.low = plan.boxes.high[0];
  cached.rest = plain_call(problem, a, rest);
  join = {waits.inner, waits.border, static_cast<std::uint32_t>(plan.blocks.border)};
  void* of_plain[] = {&cached.rest, &body, &steps, &join};
  void* of_cached[] = {&cached, &body, &steps, &join};
  std::int64_t const shared = cached.boxes.boxes() == 0
                                  ? 0
                                  : cached_shared_bytes(cached.boxes, radius_of_body<Body>(),
                                                        Facts::fields * static_cast<int>(sizeof(T)));
  launch_together(kernel_beside_border(problem.way), dim3(static_cast<unsigned>(plan.blocks.inner)),
                  caches ? cached_threads : plain_threads, caches ? of_cached : of_plain,
                  static_cast<std::size_t>(shared), beside_others, streams.inner);
}

}  // namespace hostless::gpu
