#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hostless/stencil/kernel.hpp"
#include "hostless/stencil/stencil.hpp"
#include "hostless/transport/group.hpp"

namespace hostless {

/// Writes the fields of a run and its number of steps to a file, whose bytes do not depend on how many ranks
/// there are. It gets its name when it is whole and on the disk: an older checkpoint is only ever replaced by
/// a complete one. Coefficients are not in it. Collective over the run's group.
///
/// kernel  the one that the run was made with
/// Cost    a copy of this rank's cells of one field at a time
/// Errors  environment  the file cannot be written (the older checkpoint is kept)
void write_stencil_checkpoint(Group& group, std::string const& path, CellStepper const& run,
                              StencilKernel const& kernel);

/// What a checkpoint is of; vectors along axes are in the order of NumPy's.
struct StencilCheckpointGrid {
  std::string stencil;
  std::vector<std::int64_t> shape;
  std::size_t value_bytes = 8;
  std::vector<GridBoundary> boundary;
  std::vector<double> parameters;  ///< of a named stencil, whose parameters are numbers of 8 bytes
};

/// Reads the head alone. Collective.
/// Errors  bad_input  not a checkpoint, one that is cut short or damaged, or another one than rank 0 reads
StencilCheckpointGrid read_stencil_checkpoint_grid(Group& group, std::string const& path);

/// Gives a run the fields of a checkpoint and counts on from its steps, which it returns: what follows has
/// the bits that it had without the pause, also with another number of ranks, another depth or another
/// transport. Collective over the run's group.
///
/// Errors  bad_input  not a checkpoint, one that is cut short or damaged (checksums), one of another
/// stencil, grid, type, boundary or other parameters, which the text names, or another one than rank 0 reads
/// (where ranks have disks of their own); the run is then of no use
std::int64_t read_stencil_checkpoint(Group& group, std::string const& path, CellStepper& run,
                                     StencilKernel const& kernel);

}  // namespace hostless
