#pragma once
// What the files of the extension module share.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>

#include "array_rows.hpp"
#include "away.hpp"
#include "hostless/base/error.hpp"

namespace hostless::python {

namespace nb = nanobind;

/// One-dimensional arrays of the processor without gaps. Python makes others into such before it calls.
using Doubles = nb::ndarray<double const, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using WritableDoubles = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Compressed rows as scipy has them, whose entries nobody has looked at.
/// Errors  usage  types that are not int32 or int64, or lengths that do not fit
Arrays unchecked_arrays_of(Indices const& offsets, Indices const& columns, Doubles const& values,
                           std::int64_t columns_of_matrix, std::int64_t first_row);
/// The same, looked at and compared with each other.
/// Errors  usage      as above
///         bad_input  what check_arrays refuses
Arrays arrays_of(Indices const& offsets, Indices const& columns, Doubles const& values,
                 std::int64_t columns_of_matrix, std::int64_t first_row);

/// The name of the Python exception of an error, and back. Errors  usage  an unknown name
char const* class_of(ErrorCode code);
ErrorCode code_of(std::string const& exception);
/// `--max-iterations`, `--gpus 1`: maxiter, gpus=1; what Python has no name for stays.
std::string as_python_spells(std::string text);

void bind_system(nb::module_& module);
/// Before bind_system and bind_sources, which take choices.
void bind_options(nb::module_& module);
/// Arrays in the memory of GPUs; before bind_system, which takes them.
void bind_gpu_arrays(nb::module_& module);
void bind_sources(nb::module_& module);
/// Behind bind_ranks (ranks.hpp).
void bind_queues(nb::module_& module);

}  // namespace hostless::python
