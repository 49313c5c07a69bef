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

void require_symmetry(Group& group, std::string const& path, StoredRows const& rows, bool transposed) {
  auto const found = check_symmetry(group, rows);
  if (!found) return;
  std::int64_t const row = (transposed ? found->column : found->row) + 1;
  std::int64_t const column = (transposed ? found->row : found->column) + 1;
  throw Error(
      ErrorCode::bad_input,
      fmt::format(
          "{}: entry ({}, {}) is {} but ({}, {}) {} (the method needs a symmetric matrix). Correct it, "
          "or use method bicgstab (--method bicgstab).",
          path, row, column, found->value, column, row,
          found->missing ? "is missing" : fmt::format("is {}", found->mirror)));
}

}  // namespace hostless::files
