// Reads any bytes as a file: Matrix Market, gz, PETSc binary, .npz or .npy, whatever they look like. What is
// refused must be refused as bad input, by a message that does not depend on how the text is cut into blocks;
// what is accepted must be a symmetric matrix with rising columns and finite values.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "checked_rows.hpp"
#include "hostless/files/matrix_file.hpp"
#include "hostless/files/matrix_market.hpp"
#include "hostless/files/vector_file.hpp"

namespace {

using namespace hostless;
using fuzz::checked;
using fuzz::require;

constexpr std::int64_t entries_asked = 3;

template <class Read>
std::string outcome(Read&& read) {
  try {
    return read();
  } catch (Error const& error) {
    if (error.code() != ErrorCode::bad_input) std::abort();
    return error.what();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static int const file = ::memfd_create("fuzz", 0);
  static std::string const path = "/proc/self/fd/" + std::to_string(file);
  static auto const group = single_group();
  require(file >= 0 && ::ftruncate(file, 0) == 0);
  require(::pwrite(file, data, size, 0) == static_cast<ssize_t>(size));
  outcome([&] { return checked(*read_matrix(*group, path)); });
  auto const market = [&](std::int64_t block) {
    return outcome([&] { return checked(*read_matrix_market(*group, path, {block})); });
  };
  require(market(0) == market(static_cast<std::int64_t>(64 + size % 977)));
  outcome([&] {
    auto const shape = vector_shape(*group, path).value_or(RowsAndColumns{0, 1});
    require(shape.rows >= 0 && shape.columns > 0);
    return std::string("read");
  });
  outcome([&] {
    for (double const v : read_vector_share(*group, path, entries_asked, 0, entries_asked))
      require(std::isfinite(v));
    return std::string("read");
  });
  return 0;
}
