#include "hostless/files/matrix_file.hpp"

#include "files/binary.hpp"
#include "hostless/files/matrix_market.hpp"
#include "hostless/files/petsc_binary.hpp"

namespace hostless {

std::unique_ptr<StoredRows> read_matrix(Group& group, std::string const& path) {
  using files::Content;
  switch (files::memory_checked(path, [&] { return files::content_of(group, path); })) {
    case Content::petsc:
    case Content::petsc_wide:
      return read_petsc_matrix(group, path);
    case Content::npy:
      throw Error(
          ErrorCode::bad_input,
          path +
              ": holds a NumPy array (a sparse matrix is needed). Write the matrix as Matrix Market, for "
              "example with scipy.io.mmwrite.");
    case Content::text:
      break;
  }
  return read_matrix_market(group, path);
}

}  // namespace hostless
