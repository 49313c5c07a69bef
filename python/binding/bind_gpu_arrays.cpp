// Arrays in the memory of GPUs, as Python's protocols describe them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/processors.hpp"
#include "base/setup_watch.hpp"
#include "binding.hpp"
#include "hostless/base/deadline.hpp"
#include "hostless/base/error.hpp"
#include "hostless/operate/gpu_array.hpp"
#include "hostless/transport/group.hpp"
#include "solve/gpu_solver/gpu_loader.hpp"
#include "solve/matrix/assembly.hpp"
#include "solve/matrix/row_scan.hpp"
#include "watched.hpp"

namespace hostless::python {
namespace {

constexpr int copying_threads = 4;  // more were not faster where it was measured

GpuArray::Number number_from(std::string const& type) {
  if (type == "float64") return GpuArray::Number::fp64;
  if (type == "float32") return GpuArray::Number::fp32;
  if (type == "int32") return GpuArray::Number::int32;
  if (type == "int64") return GpuArray::Number::int64;
  throw Error(ErrorCode::usage,
              "numbers of type " + type + " in the memory of a GPU. Convert them to float64.");
}

// Called on the thread that has queued what fills the array: a stream may be that thread's own.
GpuArray array_at(std::uintptr_t address, std::int64_t size, std::int64_t stride, std::string const& type,
                  std::optional<std::uintptr_t> stream) {
  GpuArray array;
  array.address = reinterpret_cast<void*>(address);
  array.size = size;
  array.stride = stride;
  array.number = number_from(type);
  if (size == 0) return array;
  gpu::Library const& library = gpu::library();
  array.device = library.device_of(array.address);
  if (array.device < 0)
    throw Error(
        ErrorCode::usage,
        "an array that is said to be in the memory of a GPU, where no GPU's memory is. Pass an array of this "
        "process and of the vendor whose GPUs hostless uses.");
  if (stream) array.after = library.moment(array.device, *stream);
  return array;
}

std::tuple<bool, double, std::int64_t, std::int64_t, double, double> mirror(GpuRows const& rows) {
  check_gpu_rows(rows);
  gpu::MirrorFacts facts;
  {
    Away const away;
    facts = gpu::library().compare_with_mirror(rows);
  }
  return {facts.same_bits, facts.difference, facts.row, facts.column, facts.value, facts.other};
}

/// Compressed rows of the host, in the memory of the first GPU.
struct CopiedRows {
  GpuRows rows;
  std::array<std::shared_ptr<void>, 3> held;
  std::int64_t bytes = 0;
  double seconds = 0;
};

std::int64_t index_bytes(Arrays const& a) { return a.wide ? 8 : 4; }
std::int64_t bytes_of(Arrays const& a) {
  std::int64_t const entries = a.offset_at(a.rows);
  return (a.rows + 1 + entries) * index_bytes(a) + entries * 8;
}

// A layout has at most about the bytes of the rows, a solver at most some sixteen vectors. What the work on
// them takes for a while is not known here: who lacks it falls back (Matrix._of_copy).
bool has_room(gpu::Library const& library, Arrays const& a) {
  return 2 * bytes_of(a) + 16 * 8 * a.rows <= library.free_bytes(0);
}

// Whether the partition that is chosen leaves rows where they are. It counts rows where the choice counts
// blocks, which near the limit may differ: the matrix is the same either way, made on another way.
bool stays_contiguous(Indices const& offsets, Indices const& columns, Doubles const& values, int ranks) {
  Arrays const a =
      unchecked_arrays_of(offsets, columns, values, static_cast<std::int64_t>(offsets.shape(0)) - 1, 0);
  std::int64_t worst = 0;
  auto const count = [&](Group& group) {
    SetupStage const stage("looking at the partition", ranks);
    std::int64_t const first = share_first(a.rows, ranks, group.rank());
    std::int64_t const last = share_first(a.rows, ranks, group.rank() + 1);
    std::int64_t const entries = a.offset_at(a.rows);
    std::vector<bool> seen(static_cast<std::size_t>(a.rows));
    std::int64_t outside = 0;
    // What leads nowhere is refused later.
    group.together([&] {
      std::int64_t const end = std::min(a.offset_at(last), entries);
      constexpr std::int64_t between_looks = 1 << 20;
      for (std::int64_t k = std::max<std::int64_t>(a.offset_at(first), 0); k < end; ++k) {
        if (k % between_looks == 0) setup_step(0);
        std::int64_t const column = a.column_at(k);
        if (column < 0 || column >= a.rows || (first <= column && column < last)) continue;
        auto const at = static_cast<std::size_t>(column);
        outside += seen[at] ? 0 : 1;
        seen[at] = true;
      }
      setup_step(1);
    });
    std::int64_t const most = group.max(outside);
    if (group.rank() == 0) worst = most;
  };
  run_watched([&] { run_on_threads(ranks, count); });
  return static_cast<double>(worst) * ranks <= most_ghosts * static_cast<double>(a.rows);
}

CopiedRows copied_to_gpu(gpu::Library const& library, Arrays const& a) {
  CopiedRows copied;
  copied.bytes = bytes_of(a);
  auto const begin = Clock::now();
  int const threads = std::min(processors_of_rank(1, true), copying_threads);
  auto const copy = [&](std::size_t which, void const* from, std::int64_t size, GpuArray::Number number,
                        std::int64_t bytes_of_one) {
    copied.held[which] =
        library.copy_of_host(from, static_cast<std::size_t>(size * bytes_of_one), 0, threads);
    GpuArray array;
    array.address = copied.held[which].get();
    array.size = size;
    array.number = number;
    return array;
  };
  auto const index = a.wide ? GpuArray::Number::int64 : GpuArray::Number::int32;
  std::int64_t const entries = a.offset_at(a.rows);
  copied.rows.rows = a.rows;
  copied.rows.offsets = copy(0, a.offset, a.rows + 1, index, index_bytes(a));
  copied.rows.columns = copy(1, a.column, entries, index, index_bytes(a));
  copied.rows.values = copy(2, a.value, entries, GpuArray::Number::fp64, 8);
  copied.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return copied;
}

std::optional<CopiedRows> copy_rows(Indices const& offsets, Indices const& columns, Doubles const& values,
                                    bool if_there_is_room) {
  Arrays const a =
      unchecked_arrays_of(offsets, columns, values, static_cast<std::int64_t>(offsets.shape(0)) - 1, 0);
  Away const away;
  gpu::Library const& library = gpu::library();
  if (a.offset_at(a.rows) == 0) return {};
  if (!if_there_is_room) return copied_to_gpu(library, a);
  if (!has_room(library, a)) return {};
  try {
    return copied_to_gpu(library, a);
  } catch (Error const& error) {
    if (error.code() != ErrorCode::environment) throw;
    return {};  // somebody else was faster
  }
}

bool rises(GpuRows const& rows) {
  check_gpu_rows(rows);
  RowFault fault;
  {
    Away const away;
    fault = gpu::library().pattern_scan().find_fault(rows, 0, rows.rows);
  }
  if (fault.kind == RowFault::Kind::none) return true;
  if (fault.kind != RowFault::Kind::order) throw error_of(fault, rows.rows);
  return false;
}

std::tuple<std::int64_t, std::int64_t, std::int64_t> copied() {
  gpu::Copied const bytes = gpu::library().copied();
  return {bytes.to_gpu, bytes.to_host, bytes.between_gpus};
}

// What a capsule of DLPack says; `owner` keeps it alive.
nb::tuple of_dlpack(nb::object const& capsule) {
  auto const array = nb::cast<nb::ndarray<nb::ro>>(capsule);
  nb::list shape, strides;
  for (std::size_t k = 0; k < array.ndim(); ++k) {
    shape.append(array.shape(k));
    strides.append(array.stride(k));
  }
  auto const type = array.dtype();
  char const* const kinds[] = {"int", "uint", "float"};
  std::string const name =
      type.code < 3 && type.lanes == 1 ? kinds[type.code] + std::to_string(type.bits) : "unknown";
  return nb::make_tuple(reinterpret_cast<std::uintptr_t>(array.data()), nb::tuple(shape), nb::tuple(strides),
                        name, nb::capsule(new nb::ndarray<nb::ro>(array), [](void* p) noexcept {
                          delete static_cast<nb::ndarray<nb::ro>*>(p);
                        }));
}

}  // namespace

void bind_gpu_arrays(nb::module_& module) {
  nb::class_<GpuArray>(module, "GpuArray", "Numbers in the memory of a GPU, and what they wait for.")
      .def(
          "__init__",
          [](GpuArray* self, std::uintptr_t address, std::int64_t size, std::int64_t stride,
             std::string const& type, std::optional<std::uintptr_t> stream) {
            new (self) GpuArray(array_at(address, size, stride, type, stream));
          },
          nb::arg("address"), nb::arg("size"), nb::arg("stride"), nb::arg("type"), nb::arg("stream").none())
      .def_prop_ro("device", [](GpuArray const& a) { return a.device; });
  nb::class_<GpuRows>(module, "GpuRows", "Compressed rows of a whole matrix in the memory of one GPU.")
      .def(
          "__init__",
          [](GpuRows* self, GpuArray const& offsets, GpuArray const& columns, GpuArray const& values) {
            new (self) GpuRows{offsets.size - 1, offsets, columns, values};
          },
          nb::arg("offsets"), nb::arg("columns"), nb::arg("values"))
      .def_prop_ro("rises", rises,
                   "Whether columns rise inside each row; BadInputError: offsets or columns that "
                   "lead outside the arrays or the matrix, in a row before the first that does not.")
      .def_prop_ro("mirror", mirror,
                   "(same bits everywhere, largest difference, row, column, value, mirror)");
  nb::class_<CopiedRows>(module, "CopiedRows", "A copy of rows of the host; its memory goes with it.")
      .def_ro("rows", &CopiedRows::rows)
      .def_ro("bytes", &CopiedRows::bytes)
      .def_ro("seconds", &CopiedRows::seconds);
  module.def("stays_contiguous", stays_contiguous, nb::arg("offsets"), nb::arg("columns"), nb::arg("values"),
             nb::arg("ranks"), "Whether partition='auto' leaves compressed rows of the host where they are.");
  module.def(
      "copy_rows", copy_rows, nb::arg("offsets"), nb::arg("columns"), nb::arg("values"),
      nb::arg("if_there_is_room"),
      "CopiedRows on the first GPU; None where there are no entries, or no room for them, their layout "
      "and vectors.");
  module.def("copied", copied,
             "Bytes that the GPU library has copied: (to GPUs, to the host, between GPUs).");
  module.def("of_dlpack", of_dlpack, nb::arg("capsule"),
             "(address, shape, strides, type, owner) of a DLPack capsule.");
}

}  // namespace hostless::python
