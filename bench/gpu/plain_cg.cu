// A plain conjugate gradient method on cuSPARSE and cuBLAS: what hostless is compared with on one GPU.
//
//   nvcc -std=c++20 -O3 -arch=sm_90 -o plain_cg bench/gpu/plain_cg.cu -lcusparse -lcublas
//   ./plain_cg A.petsc b.petsc --iterations 1000
//
// --scalars host is listing 1 of Trotter et al. (CPU- and GPU-initiated Communication Strategies for
// Conjugate Gradient Methods): the host waits for both dot products and computes alpha and beta, as PETSc
// does.
// --scalars device is the same with their section 3.1.2: both stay in device memory and are computed inside
// the vector updates, x is updated while rho travels, and the host waits once an iteration, for its
// convergence test. The tolerance of that test is zero, so every solve makes all its iterations.
//
// In the rival's favour: the SpMV is preprocessed, both CSR algorithms of cuSPARSE are tried and the faster
// is kept, and s <- beta s + r, for which cuBLAS needs two passes, is one kernel. So an iteration moves the
// 12 n + 116 m bytes that a plain CG must.
//
// Prints one line of JSON. Exit code 1: a wrong answer or a failing call, 2: usage.

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusparse.h>

#include <chrono>

#include "system_file.hpp"

namespace hostless::bench {
namespace {

char const* words(cudaError_t status) { return cudaGetErrorString(status); }
char const* words(cublasStatus_t status) { return cublasGetStatusString(status); }
char const* words(cusparseStatus_t status) { return cusparseGetErrorString(status); }

/// Zero is success in all three libraries.
template <class Status>
void check(Status status, char const* call) {
  if (static_cast<int>(status) == 0) return;
  throw std::runtime_error(std::string(call) + ": " + words(status) +
                           " (there is nothing to compare). See that this GPU is free and its driver fits.");
}
#define CHECK(call) check(call, #call)

/// Numbers in device memory.
template <class T>
class OnDevice {
 public:
  explicit OnDevice(std::size_t count) : count_(count) {
    CHECK(cudaMalloc(&data_, bytes() > 0 ? bytes() : 1));
  }
  explicit OnDevice(std::vector<T> const& from) : OnDevice(from.size()) {
    CHECK(cudaMemcpy(data_, from.data(), bytes(), cudaMemcpyHostToDevice));
  }
  ~OnDevice() { cudaFree(data_); }
  OnDevice(OnDevice const&) = delete;
  OnDevice& operator=(OnDevice const&) = delete;
  T* get() const { return data_; }
  std::size_t bytes() const { return count_ * sizeof(T); }
  std::vector<T> copy() const {
    std::vector<T> to(count_);
    CHECK(cudaMemcpy(to.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return to;
  }

 private:
  std::size_t count_;
  T* data_ = nullptr;
};

/// y <- y + sign (over / under) v
__global__ void add_scaled(int n, double* y, double const* v, double sign, double const* over,
                           double const* under) {
  double const factor = sign * (*over / *under);
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += factor * v[i];
}

/// s <- beta s + r
__global__ void new_direction(int n, double* s, double const* r, double beta) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) s[i] = beta * s[i] + r[i];
}
__global__ void new_direction(int n, double* s, double const* r, double const* over, double const* under) {
  double const beta = *over / *under;
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) s[i] = beta * s[i] + r[i];
}

/// cuSPARSE's product of a CSR matrix and a vector by one of its algorithms, preprocessed.
class Product {
 public:
  Product(cusparseHandle_t handle, CsrMatrix const& a, OnDevice<int> const& offset,
          OnDevice<int> const& column, OnDevice<double> const& value, cusparseSpMVAlg_t algorithm)
      : handle_(handle), algorithm_(algorithm) {
    std::int64_t const m = a.rows();
    CHECK(cusparseCreateCsr(&matrix_, m, m, a.nonzeros(), offset.get(), column.get(), value.get(),
                            CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    OnDevice<double> const x(static_cast<std::size_t>(m)), y(static_cast<std::size_t>(m));
    CHECK(cusparseCreateDnVec(&x_, m, x.get(), CUDA_R_64F));
    CHECK(cusparseCreateDnVec(&y_, m, y.get(), CUDA_R_64F));
    double const one = 1, zero = 0;
    std::size_t bytes = 0;
    CHECK(cusparseSpMV_bufferSize(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix_, x_, &zero, y_,
                                  CUDA_R_64F, algorithm_, &bytes));
    buffer_ = std::make_unique<OnDevice<char>>(bytes);
    CHECK(cusparseSpMV_preprocess(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix_, x_, &zero, y_,
                                  CUDA_R_64F, algorithm_, buffer_->get()));
    CHECK(cudaDeviceSynchronize());  // x and y go
  }
  ~Product() {
    cusparseDestroyDnVec(x_);
    cusparseDestroyDnVec(y_);
    cusparseDestroySpMat(matrix_);
  }
  Product(Product const&) = delete;
  Product& operator=(Product const&) = delete;

  /// y <- alpha A x + beta y
  void operator()(double alpha, double* x, double beta, double* y) const {
    CHECK(cusparseDnVecSetValues(x_, x));
    CHECK(cusparseDnVecSetValues(y_, y));
    CHECK(cusparseSpMV(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha, matrix_, x_, &beta, y_, CUDA_R_64F,
                       algorithm_, buffer_->get()));
  }
  char const* name() const { return algorithm_ == CUSPARSE_SPMV_CSR_ALG1 ? "csr_alg1" : "csr_alg2"; }

 private:
  cusparseHandle_t handle_;
  cusparseSpMVAlg_t algorithm_;
  cusparseSpMatDescr_t matrix_ = nullptr;
  cusparseDnVecDescr_t x_ = nullptr, y_ = nullptr;
  std::unique_ptr<OnDevice<char>> buffer_;
};

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Outcome {
  int iterations = 0;
  double residual = 0;  ///< the recurrence's |r| / |b|
};

/// Both matrix and vectors on the device; solve() starts from x = 0.
class PlainCg {
 public:
  PlainCg(CsrMatrix const& a, std::vector<double> const& b)
      : m_(static_cast<int>(a.rows())),
        offset_(a.offset),
        column_(a.column),
        value_(a.value),
        b_(b),
        x_(b.size()),
        r_(b.size()),
        s_(b.size()),
        t_(b.size()),
        gamma_(1),
        rho_(2) {
    CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&rho_is_here_, cudaEventDisableTiming));
    CHECK(cudaMallocHost(&rho_on_host_, sizeof(double)));
    CHECK(cusparseCreate(&sparse_));
    CHECK(cusparseSetStream(sparse_, stream_));
    CHECK(cublasCreate(&dense_));
    CHECK(cublasSetStream(dense_, stream_));
    choose_product(a);
  }
  ~PlainCg() {
    product_.reset();
    cublasDestroy(dense_);
    cusparseDestroy(sparse_);
    cudaFreeHost(rho_on_host_);
    cudaEventDestroy(rho_is_here_);
    cudaStreamDestroy(stream_);
  }
  PlainCg(PlainCg const&) = delete;
  PlainCg& operator=(PlainCg const&) = delete;

  /// Listing 1: the host holds rho, gamma, alpha and beta; cublasDdot returns when its number is here.
  Outcome solve_with_scalars_on_host(int iterations) {
    CHECK(cublasSetPointerMode(dense_, CUBLAS_POINTER_MODE_HOST));
    start();
    double rho = 0;
    dot(r_, r_, &rho);
    double const first = rho;
    int k = 0;
    while (k < iterations && goes_on(rho)) {
      double gamma = 0;
      (*product_)(1, s_.get(), 0, t_.get());
      dot(s_, t_, &gamma);
      double const alpha = rho / gamma, minus_alpha = -alpha, before = rho;
      CHECK(cublasDaxpy(dense_, m_, &alpha, s_.get(), 1, x_.get(), 1));
      CHECK(cublasDaxpy(dense_, m_, &minus_alpha, t_.get(), 1, r_.get(), 1));
      dot(r_, r_, &rho);
      ++k;
      new_direction<<<blocks(), threads, 0, stream_>>>(m_, s_.get(), r_.get(), rho / before);
      CHECK(cudaGetLastError());
    }
    return finished(k, rho, first);
  }

  /// Section 3.1.2: the host sees rho alone, and only to decide whether to go on.
  Outcome solve_with_scalars_on_device(int iterations) {
    CHECK(cublasSetPointerMode(dense_, CUBLAS_POINTER_MODE_DEVICE));
    start();
    double *now = rho_.get(), *before = rho_.get() + 1;
    dot(r_, r_, now);
    double rho = fetch(now, [] {});
    double const first = rho;
    int k = 0;
    while (k < iterations && goes_on(rho)) {
      (*product_)(1, s_.get(), 0, t_.get());
      dot(s_, t_, gamma_.get());
      std::swap(now, before);
      add_scaled<<<blocks(), threads, 0, stream_>>>(m_, r_.get(), t_.get(), -1, before, gamma_.get());
      dot(r_, r_, now);
      rho = fetch(now, [&] {
        add_scaled<<<blocks(), threads, 0, stream_>>>(m_, x_.get(), s_.get(), 1, before, gamma_.get());
      });
      ++k;
      new_direction<<<blocks(), threads, 0, stream_>>>(m_, s_.get(), r_.get(), now, before);
      CHECK(cudaGetLastError());
    }
    return finished(k, rho, first);
  }

  std::vector<double> x() const { return x_.copy(); }
  char const* product() const { return product_->name(); }

 private:
  static constexpr int threads = 256;
  int blocks() const { return (m_ + threads - 1) / threads; }
  /// The test of convergence, its tolerance zero; what is no number goes on, for the final check to find.
  static bool goes_on(double rho) { return !(rho <= 0); }

  void choose_product(CsrMatrix const& a) {
    double fastest = 0;
    for (auto const algorithm : {CUSPARSE_SPMV_CSR_ALG1, CUSPARSE_SPMV_CSR_ALG2}) {
      auto one = std::make_unique<Product>(sparse_, a, offset_, column_, value_, algorithm);
      auto const took = [&](int times) {
        double const begin = seconds();
        for (int k = 0; k < times; ++k) (*one)(1, b_.get(), 0, t_.get());
        CHECK(cudaStreamSynchronize(stream_));
        return seconds() - begin;
      };
      took(5);
      double const time = took(50);
      if (product_ && time >= fastest) continue;
      fastest = time;
      product_ = std::move(one);
    }
  }
  void start() {
    CHECK(cudaMemsetAsync(x_.get(), 0, x_.bytes(), stream_));
    CHECK(cudaMemcpyAsync(r_.get(), b_.get(), b_.bytes(), cudaMemcpyDeviceToDevice, stream_));
    (*product_)(-1, x_.get(), 1, r_.get());
    CHECK(cudaMemcpyAsync(s_.get(), r_.get(), r_.bytes(), cudaMemcpyDeviceToDevice, stream_));
  }
  void dot(OnDevice<double> const& u, OnDevice<double> const& v, double* result) {
    CHECK(cublasDdot(dense_, m_, u.get(), 1, v.get(), 1, result));
  }
  /// A number from the device; `meanwhile` is queued behind its copy and not waited for.
  template <class Meanwhile>
  double fetch(double const* from, Meanwhile const& meanwhile) {
    CHECK(cudaMemcpyAsync(rho_on_host_, from, sizeof(double), cudaMemcpyDeviceToHost, stream_));
    CHECK(cudaEventRecord(rho_is_here_, stream_));
    meanwhile();
    CHECK(cudaEventSynchronize(rho_is_here_));
    return *rho_on_host_;
  }
  Outcome finished(int iterations, double rho, double first) {
    CHECK(cudaStreamSynchronize(stream_));
    return {iterations, std::sqrt(rho / first)};
  }

  int m_;
  OnDevice<int> offset_, column_;
  OnDevice<double> value_, b_, x_, r_, s_, t_, gamma_, rho_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t rho_is_here_ = nullptr;
  double* rho_on_host_ = nullptr;
  cusparseHandle_t sparse_ = nullptr;
  cublasHandle_t dense_ = nullptr;
  std::unique_ptr<Product> product_;
};

struct Options {
  std::string matrix, rhs, scalars = "host", output;
  int iterations = 1000, warm_up = 10, repeats = 3;
};

constexpr char const* usage =
    "Usage: plain_cg A.petsc b.petsc [--iterations N] [--warm-up N] [--repeats N] [--scalars host|device] "
    "[--output x.petsc]\n";

struct WrongUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int whole_number(std::string const& option, std::string const& text, int least) {
  try {
    std::size_t used = 0;
    int const number = std::stoi(text, &used);
    if (used == text.size() && number >= least) return number;
  } catch (std::logic_error const&) {  // no number, or too large a one: refused below
  }
  throw WrongUse(option + " " + text + " (needed is a whole number from " + std::to_string(least) +
                 " on). Correct it.");
}

Options parse(std::vector<std::string> const& words) {
  Options o;
  std::vector<std::string> files;
  for (std::size_t k = 0; k < words.size(); ++k) {
    std::string const& word = words[k];
    if (word.rfind("--", 0) != 0) {
      files.push_back(word);
      continue;
    }
    if (k + 1 == words.size()) throw WrongUse(word + " (its value is missing). Give one.");
    std::string const& value = words[++k];
    if (word == "--iterations") {
      o.iterations = whole_number(word, value, 1);
    } else if (word == "--warm-up") {
      o.warm_up = whole_number(word, value, 0);
    } else if (word == "--repeats") {
      o.repeats = whole_number(word, value, 1);
    } else if (word == "--scalars" && (value == "host" || value == "device")) {
      o.scalars = value;
    } else if (word == "--output") {
      o.output = value;
    } else {
      throw WrongUse(word + " " + value + " (there is no such choice). See the usage.");
    }
  }
  if (files.size() != 2)
    throw WrongUse(std::to_string(files.size()) + " files (needed are A and b). See the usage.");
  o.matrix = files[0];
  o.rhs = files[1];
  return o;
}

std::string quoted(std::string const& text) {
  std::string out = "\"";
  for (char const c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

double median(std::vector<double> sorted) {
  std::size_t const n = sorted.size();
  return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

int run(Options const& o) {
  CsrMatrix const a = read_matrix(o.matrix);
  std::vector<double> const b = read_vector(o.rhs, a.rows());
  int device = 0;
  cudaDeviceProp properties{};
  CHECK(cudaGetDevice(&device));
  CHECK(cudaGetDeviceProperties(&properties, device));
  PlainCg cg(a, b);
  auto const solve = [&](int iterations) {
    return o.scalars == "host" ? cg.solve_with_scalars_on_host(iterations)
                               : cg.solve_with_scalars_on_device(iterations);
  };
  solve(o.warm_up);
  Outcome outcome;
  std::vector<double> us;
  for (int k = 0; k < o.repeats; ++k) {
    double const begin = seconds();
    outcome = solve(o.iterations);
    us.push_back(1e6 * (seconds() - begin) / std::max(outcome.iterations, 1));
  }
  std::ranges::sort(us);
  auto const x = cg.x();
  double const truth = relative_residual(a, x, b);
  if (!o.output.empty()) write_vector(o.output, x);
  if (!std::isfinite(truth) || !std::isfinite(outcome.residual))
    throw std::runtime_error(
        "the residual is no number (this time measured nothing). Is the matrix positive definite?");
  std::printf(
      "{\"contestant\": \"cuSPARSE + cuBLAS, scalars on the %s\", \"device\": %s, \"product\": \"%s\", "
      "\"matrix\": %s, \"rows\": %lld, \"nonzeros\": %lld, \"iterations\": %d, "
      "\"us_per_iteration\": {\"best\": %.4f, \"median\": %.4f, \"worst\": %.4f}, "
      "\"true_relative_residual\": %.17g, \"recurrence_relative_residual\": %.17g}\n",
      o.scalars.c_str(), quoted(properties.name).c_str(), cg.product(), quoted(o.matrix).c_str(),
      static_cast<long long>(a.rows()), static_cast<long long>(a.nonzeros()), outcome.iterations, us.front(),
      median(us), us.back(), truth, outcome.residual);
  return 0;
}

}  // namespace
}  // namespace hostless::bench

int main(int count, char** words) {
  using namespace hostless::bench;
  try {
    return run(parse({words + 1, words + count}));
  } catch (WrongUse const& e) {
    std::fprintf(stderr, "plain_cg: %s\n%s", e.what(), usage);
    return 2;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "plain_cg: %s\n", e.what());
    return 1;
  }
}
