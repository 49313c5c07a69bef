#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hostless/transport/group.hpp"

namespace hostless {

/// What a .npy file of real numbers says of its array.
struct ArrayForm {
  std::vector<std::int64_t> shape;
  int value_bytes = 8;  ///< 4: fp32, 8: fp64
  bool operator==(ArrayForm const&) const = default;
};

/// Indices [low, high) along each axis of an array.
struct ArrayPart {
  std::vector<std::int64_t> low, high;
};

/// The form of a .npy file of 1 to 8 axes, little- or big-endian, in C or Fortran order. Collective over
/// group. Errors  bad_input  no .npy file, one that is cut short, integers, complex or other numbers, or another file
/// than rank 0 reads (where ranks have disks of their own)
ArrayForm array_form(Group& group, std::string const& path);

/// Reads this rank's part, the last axis fastest in `to` whatever the order in the file. Collective over
/// group; each rank reads no more than its own part.
///
/// form  what array_form said; the file must be so still
/// to    [values of the part * form.value_bytes] bytes
/// Errors  bad_input  as array_form; another form; a value that is NaN or infinite, with its indices
void read_array(Group& group, std::string const& path, ArrayForm const& form, ArrayPart const& part,
                std::span<std::byte> to);

/// Writes a .npy file, little-endian in C order, of the parts of all ranks, which cover the array together.
/// It gets its name when it is whole. Collective over group.
///
/// from  [values of the part * form.value_bytes] bytes, the last axis fastest
/// Errors  environment  it cannot be written; an older file of that name is as it was
void write_array(Group& group, std::string const& path, ArrayForm const& form, ArrayPart const& part,
                 std::span<std::byte const> from);

}  // namespace hostless
