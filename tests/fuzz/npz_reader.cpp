// Reads any arrays as the members of an archive whose directory and checksums are right, which chance would
// not find: the first byte says which format of scipy's it is, then every member follows its length of two
// bytes.
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "checked_rows.hpp"
#include "hostless/base/error.hpp"
#include "hostless/files/matrix_file.hpp"

namespace {

using namespace hostless;

std::string number(std::uint64_t value, int bytes) {
  std::string text;
  for (int k = 0; k < bytes; ++k) text += static_cast<char>(value >> (8 * k) & 255);
  return text;
}

// A zip of stored members.
class Archive {
 public:
  void add(std::string const& name, std::string_view content) {
    auto const sum =
        crc32(0, reinterpret_cast<Bytef const*>(content.data()), static_cast<uInt>(content.size()));
    std::string const sizes = number(sum, 4) + number(content.size(), 4) + number(content.size(), 4) +
                              number(name.size(), 2) + number(0, 2);
    std::string const times = number(0, 4), version = number(20, 2), plain = number(0, 4);
    directory_ += "PK\x01\x02" + version + version + plain + times + sizes + number(0, 8) + number(0, 2) +
                  number(text_.size(), 4) + name;
    text_ += "PK\x03\x04" + version + plain + times + sizes + name;
    text_ += content;
    ++members_;
  }
  std::string whole() const {
    return text_ + directory_ + "PK\x05\x06" + number(0, 4) + number(members_, 2) + number(members_, 2) +
           number(directory_.size(), 4) + number(text_.size(), 4) + number(0, 2);
  }

 private:
  std::string text_, directory_;
  std::uint64_t members_ = 0;
};

std::string archive_of(std::string_view data) {
  constexpr std::array<char const*, 6> formats = {"csr", "csc", "bsr", "coo", "dia", "lil"};
  Archive archive;
  if (data.empty()) return archive.whole();
  std::string header = "{'descr': '|S3', 'fortran_order': False, 'shape': (), }\n";
  archive.add("format.npy", std::string("\x93NUMPY\x01\x00", 8) + number(header.size(), 2) + header +
                                formats[static_cast<unsigned char>(data[0]) % formats.size()]);
  data.remove_prefix(1);
  for (char const* name : {"shape.npy", "data.npy", "indices.npy", "indptr.npy", "row.npy", "col.npy",
                           "offsets.npy", "coords.npy"}) {
    if (data.size() < 2) break;
    std::size_t const length =
        static_cast<unsigned char>(data[0]) + 256u * static_cast<unsigned char>(data[1]);
    data.remove_prefix(2);
    auto const content = data.substr(0, length);
    data.remove_prefix(content.size());
    if (!content.empty()) archive.add(name, content);
  }
  return archive.whole();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static int const file = ::memfd_create("fuzz", 0);
  static std::string const path = "/proc/self/fd/" + std::to_string(file);
  static auto const group = single_group();
  std::string const bytes = archive_of({reinterpret_cast<char const*>(data), size});
  fuzz::require(file >= 0 && ::ftruncate(file, 0) == 0);
  fuzz::require(::pwrite(file, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  try {
    fuzz::checked(*read_matrix(*group, path));
  } catch (Error const& error) {
    fuzz::require(error.code() == ErrorCode::bad_input);
  }
  return 0;
}
