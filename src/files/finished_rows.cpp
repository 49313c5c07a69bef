#include "files/finished_rows.hpp"

#include <fmt/format.h>

#include "hostless/base/error.hpp"

namespace hostless::files {

void finish_rows(std::string const& path, StoredRows& rows) {
  if (!rows.finish()) {
    throw Error(ErrorCode::bad_input,
                path +
                    ": the file changed while it was read (its second reading differs from "
                    "the first). Try again when nobody writes it.");
  }
  if (auto const twice = rows.duplicate()) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format("{}: row {} has column {} twice (it is not clear which one holds). Assemble the matrix, "
                    "or sum its duplicates, before writing.",
                    path, twice->row + 1, twice->column + 1));
  }
}

std::string tolerance_text(Asymmetry const& found, double tolerance) {
  constexpr double perhaps_rounding = 1e-3;
  if (found.share > perhaps_rounding) return "";
  return fmt::format(
      ", or, where {:.1e} of their size is rounding, allow it (--symmetry-tolerance, {:g} now)", found.share,
      tolerance);
}

void require_symmetry(Group& group, std::string const& path, StoredRows& rows, double tolerance,
                      bool transposed) {
  auto const compared = check_symmetry(group, rows, tolerance);
  rows.set_only_rounded(compared.furthest);
  auto const& found = compared.refused;
  if (!found) return;
  throw Error(ErrorCode::bad_input,
              fmt::format("{}: {} (the method needs a symmetric matrix). Correct it, or use method bicgstab "
                          "(--method bicgstab){}.",
                          path, asymmetry_text(*found, transposed), tolerance_text(*found, tolerance)));
}

}  // namespace hostless::files
