#include "hostless/files/matrix_file.hpp"

#include "files/binary.hpp"
#include "hostless/files/matrix_market.hpp"
#include "hostless/files/petsc_binary.hpp"
#include "hostless/files/scipy_npz.hpp"

namespace hostless {

std::unique_ptr<StoredRows> read_matrix(Group& group, std::string const& path, SizesKnown const& known,
                                        Symmetry symmetry, double symmetry_tolerance) {
  using files::Content;
  switch (files::memory_checked(path, [&] { return files::content_of(group, path); })) {
    case Content::petsc:
      return read_petsc_matrix(group, path, known, symmetry, symmetry_tolerance);
    case Content::npy:
      throw Error(ErrorCode::bad_input,
                  path +
                      ": holds a NumPy array (a sparse matrix is needed). Write the matrix with "
                      "scipy.sparse.save_npz or scipy.io.mmwrite.");
    case Content::zip:
      return read_scipy_npz(group, path, known, symmetry, symmetry_tolerance);
    case Content::text:
      break;
  }
  return read_matrix_market(group, path, {}, known, symmetry, symmetry_tolerance);
}

}  // namespace hostless
