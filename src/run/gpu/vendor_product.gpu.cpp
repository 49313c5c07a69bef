// The product of the vendor's own library, cuSPARSE or rocSPARSE, to compare with. It is loaded when it is
// asked for, so that a GPU library needs none to be loaded itself. Of their algorithms this takes the one
// whose sums have the same order every time (cuSPARSE: CSR_ALG2) and measures nothing.
#include <cstdint>
#include <cstdlib>

#include "device/loaded_library.hpp"
#include "run/gpu/products.hpp"

#define HOSTLESS_TEXT_OF_(name) #name
#define HOSTLESS_TEXT_OF(name) HOSTLESS_TEXT_OF_(name)

#if defined(__CUDACC__)
#define HOSTLESS_SPARSE_NAME "cuSPARSE"
#define HOSTLESS_SPARSE_FOLDERS \
  Folder{"CUDA_HOME", "/lib64/"}, Folder { nullptr, "/usr/local/cuda/lib64/" }
#if __has_include(<cusparse.h>)
#include <cusparse.h>
#define HOSTLESS_SPARSE_FILE "libcusparse.so." HOSTLESS_TEXT_OF(CUSPARSE_VER_MAJOR)
#define HOSTLESS_SPARSE_FUNCTIONS(use)       \
  use(create, cusparseCreate);               \
  use(destroy, cusparseDestroy);             \
  use(set_stream, cusparseSetStream);        \
  use(create_matrix, cusparseCreateCsr);     \
  use(destroy_matrix, cusparseDestroySpMat); \
  use(create_vector, cusparseCreateDnVec);   \
  use(destroy_vector, cusparseDestroyDnVec); \
  use(set_values, cusparseDnVecSetValues);   \
  use(buffer_size, cusparseSpMV_bufferSize); \
  use(preprocess, cusparseSpMV_preprocess);  \
  use(multiply, cusparseSpMV)
using SparseHandle = cusparseHandle_t;
using SparseMatrix = cusparseSpMatDescr_t;
using SparseVector = cusparseDnVecDescr_t;
constexpr auto sparse_32 = CUSPARSE_INDEX_32I, sparse_64 = CUSPARSE_INDEX_64I;
constexpr auto sparse_base = CUSPARSE_INDEX_BASE_ZERO;
constexpr auto sparse_real = CUDA_R_64F;
constexpr auto sparse_plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
#define HOSTLESS_SPARSE_ALGORITHM CUSPARSE_SPMV_CSR_ALG2
#endif
#else
#define HOSTLESS_SPARSE_NAME "rocSPARSE"
#define HOSTLESS_SPARSE_FOLDERS \
  Folder{"ROCM_PATH", "/lib/"}, Folder { nullptr, "/opt/rocm/lib/" }
#if __has_include(<rocsparse/rocsparse.h>)
#include <rocsparse/rocsparse.h>
#if ROCSPARSE_VERSION_MAJOR < 3  // ROCm 6 calls its product otherwise
#define HOSTLESS_SPARSE_FILE "librocsparse.so.0"
#define HOSTLESS_SPARSE_FUNCTIONS(use)                \
  use(create, rocsparse_create_handle);               \
  use(destroy, rocsparse_destroy_handle);             \
  use(set_stream, rocsparse_set_stream);              \
  use(create_matrix, rocsparse_create_csr_descr);     \
  use(destroy_matrix, rocsparse_destroy_spmat_descr); \
  use(create_vector, rocsparse_create_dnvec_descr);   \
  use(destroy_vector, rocsparse_destroy_dnvec_descr); \
  use(set_values, rocsparse_dnvec_set_values);        \
  use(multiply, rocsparse_spmv)
using SparseHandle = rocsparse_handle;
using SparseMatrix = rocsparse_spmat_descr;
using SparseVector = rocsparse_dnvec_descr;
constexpr auto sparse_32 = rocsparse_indextype_i32, sparse_64 = rocsparse_indextype_i64;
constexpr auto sparse_base = rocsparse_index_base_zero;
constexpr auto sparse_real = rocsparse_datatype_f64_r;
constexpr auto sparse_plain = rocsparse_operation_none;
#define HOSTLESS_SPARSE_ALGORITHM rocsparse_spmv_alg_csr_stream
#endif
#endif
#endif

namespace hostless::gpu {

#if defined(HOSTLESS_SPARSE_FUNCTIONS)
namespace {

struct SparseFunctions {
#define HOSTLESS_DECLARE(member, name) decltype(&name) member = nullptr
  HOSTLESS_SPARSE_FUNCTIONS(HOSTLESS_DECLARE);
};

struct Folder {
  char const* variable;  ///< of the environment, which holds its beginning; null: none
  std::string path;
  std::string in_full() const {
    char const* const begin = variable == nullptr ? "" : std::getenv(variable);
    return begin == nullptr ? std::string() : begin + path;
  }
};

SparseFunctions load_functions() {
  std::vector<std::string> folders;
  for (Folder const& folder : {HOSTLESS_SPARSE_FOLDERS}) folders.push_back(folder.in_full());
  LoadedLibrary const library(HOSTLESS_SPARSE_FILE,
                              {"format vendor", HOSTLESS_SPARSE_NAME, "--format merge, csr or auto",
                               "the version that hostless was built with"},
                              folders);
  SparseFunctions functions;
#define HOSTLESS_FIND(member, name) library.need(functions.member, #name)
  HOSTLESS_SPARSE_FUNCTIONS(HOSTLESS_FIND);
  return functions;
}

/// Loaded by the first that asks, for good.
SparseFunctions const& functions() {
  static SparseFunctions const loaded = load_functions();
  return loaded;
}

template <class Status>
void check_sparse(Status status, char const* attempt) {
  if (static_cast<int>(status) == 0) return;
  throw Error(ErrorCode::environment, std::string(attempt) + " failed: status " +
                                          std::to_string(static_cast<int>(status)) +
                                          " of " HOSTLESS_SPARSE_NAME ". Use --format merge, csr or auto.");
}

__global__ void narrow_kernel(std::int64_t const* from, std::int64_t count, std::int32_t* to) {
  std::int64_t const k = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (k < count) to[k] = static_cast<std::int32_t>(from[k]);
}

class VendorProduct final : public Product {
 public:
  VendorProduct(RowsView const& rows, std::int64_t entries, double const* x) : use_(functions()) {
    Stream const stream;
    std::int64_t const count = rows.tiling.rows();
    bool const narrow = entries <= INT32_MAX;  // as everybody's CSR where it can be
    if (narrow) narrow_offsets(rows.csr.start, count + 1, stream);
    auto* const start = const_cast<std::int64_t*>(rows.csr.start);
    check_sparse(use_.create(&handle_), "opening a library of sparse products");
    check_sparse(use_.create_matrix(
                     &matrix_, count, count, entries, narrow ? static_cast<void*>(start_.data()) : start,
                     const_cast<std::int32_t*>(rows.csr.column), const_cast<double*>(rows.csr.value),
                     narrow ? sparse_32 : sparse_64, sparse_32, sparse_base, sparse_real),
                 "describing a matrix");
    check_sparse(use_.create_vector(&x_, count, const_cast<double*>(x), sparse_real), "describing a vector");
    check_sparse(use_.create_vector(&y_, count, rows.ready, sparse_real), "describing a vector");
    check_sparse(use_.set_stream(handle_, stream.get()), "choosing a stream");
    prepare(use_);
    // Kernels are loaded by their first launch, which must not be one that is only recorded.
    queue_product(use_);
    stream.wait();
  }
  VendorProduct(VendorProduct const&) = delete;
  VendorProduct& operator=(VendorProduct const&) = delete;
  ~VendorProduct() override {
    if (x_ != nullptr) (void)use_.destroy_vector(x_);
    if (y_ != nullptr) (void)use_.destroy_vector(y_);
    if (matrix_ != nullptr) (void)use_.destroy_matrix(matrix_);
    if (handle_ != nullptr) (void)use_.destroy(handle_);
  }
  /// Whatever the gate: the library knows of none.
  void multiply(Queue& queue, Gate, PhaseMemory const&, double const* x, double* y) const override {
    queue.call([&](HOSTLESS_GPU(Stream_t) stream) {
      check_sparse(use_.set_stream(handle_, stream), "choosing a stream");
      check_sparse(use_.set_values(x_, const_cast<double*>(x)), "choosing a vector");
      check_sparse(use_.set_values(y_, y), "choosing a vector");
      queue_product(use_);
    });
  }
  std::int64_t bytes() const override { return static_cast<std::int64_t>(start_.bytes() + buffer_.bytes()); }
  bool guards_hold() const override { return start_.guards_hold() && buffer_.guards_hold(); }
  std::string describe() const override {
    return "products by " HOSTLESS_SPARSE_NAME " (" HOSTLESS_TEXT_OF(HOSTLESS_SPARSE_ALGORITHM) ")";
  }

 private:
  void narrow_offsets(std::int64_t const* from, std::int64_t count, Stream const& stream) {
    start_ = Array<std::int32_t>(static_cast<std::size_t>(count));
    std::int32_t* to = start_.data();
    void* parameters[] = {&from, &count, &to};
    check(HOSTLESS_GPU(LaunchKernel)(reinterpret_cast<void const*>(&narrow_kernel),
                                     dim3(static_cast<unsigned>(count / block_threads + 1)),
                                     dim3(block_threads), parameters, 0, stream.get()),
          "narrowing offsets");
  }
  template <class Function, class... More>
  void product(Function function, More... more) const {
    double const one = 1, zero = 0;
    check_sparse(function(handle_, sparse_plain, &one, matrix_, x_, &zero, y_, sparse_real,
                          HOSTLESS_SPARSE_ALGORITHM, more...),
                 "a product of the vendor's library");
  }
  // One vendor asks by the function that multiplies, without a buffer, and prepares nothing.
  template <class Functions>
  void prepare(Functions const& use) {
    std::size_t bytes = 0;
    if constexpr (requires { use.preprocess; }) {
      product(use.buffer_size, &bytes);
    } else {
      product(use.multiply, &bytes, static_cast<void*>(nullptr));
    }
    buffer_ = Array<unsigned char>(bytes + 1);  // it must exist
    if constexpr (requires { use.preprocess; }) product(use.preprocess, static_cast<void*>(buffer_.data()));
  }
  template <class Functions>
  void queue_product(Functions const& use) const {
    if constexpr (requires { use.preprocess; }) {
      product(use.multiply, static_cast<void*>(buffer_.data()));
    } else {
      std::size_t bytes = buffer_.size();
      product(use.multiply, &bytes, static_cast<void*>(buffer_.data()));
    }
  }

  SparseFunctions const& use_;
  SparseHandle handle_ = nullptr;
  SparseMatrix matrix_ = nullptr;
  SparseVector x_ = nullptr, y_ = nullptr;
  Array<std::int32_t> start_;
  Array<unsigned char> buffer_;
};

}  // namespace

std::unique_ptr<Product> make_vendor_product(RowsView const& rows, std::int64_t entries, double const* x) {
  return std::make_unique<VendorProduct>(rows, entries, x);
}
#else
std::unique_ptr<Product> make_vendor_product(RowsView const&, std::int64_t, double const*) {
  throw Error(ErrorCode::environment,
              "format vendor was not compiled (headers of " HOSTLESS_SPARSE_NAME
              " that it knows were not there). Install them and build again, or use --format merge, csr or "
              "auto.");
}
#endif

}  // namespace hostless::gpu
