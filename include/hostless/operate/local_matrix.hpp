#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hostless/base/isa.hpp"
#include "hostless/base/rows.hpp"
#include "hostless/operate/local_rows.hpp"
#include "hostless/operate/tiling.hpp"

namespace hostless {

enum class Format : std::uint8_t { csr, bsr, sell };
char const* name(Format format);

/// What a caller may force about the storage; the default chooses from the matrix.
struct FormatRequest {
  enum class Kind : std::uint8_t { auto_, csr, bsr, sell };
  /// auto_: 16-bit offsets in every slice where they fit and, in sliced ELL, whole diagonals where they are
  /// smaller; narrow: 16-bit offsets where they fit, else 32-bit; wide: 32-bit everywhere.
  enum class Columns : std::uint8_t { auto_, narrow, wide };
  Kind format = Kind::auto_;
  Columns columns = Columns::auto_;
  /// What both triangles hold alike, bit for bit, is stored once where row and column lie at most this many
  /// leaves apart (BSR: blocks; sliced ELL: diagonals of 32 rows): up to half of the bytes. Cannot change a
  /// bit of a product. 0: never; automatic: as far as caches reach.
  static constexpr std::int64_t automatic = -1;
  std::int64_t half_reach = automatic;
  /// Threads that will share the sweeps (RunOptions::threads). Only halved BSR asks: its rows add to later
  /// rows, so who multiplies which slices is part of the storage. More threads than these find no work in a
  /// sweep.
  int threads = 1;

  /// format "auto", "csr", "bsr", "sell"; columns "auto", "16", "32".
  /// Errors  usage  an unknown word
  static FormatRequest from(std::string const& format, std::string const& columns = "auto");
};

/// The ghosts that the rows of each slice read.
struct GhostReads {
  std::vector<std::int64_t> first;  ///< [slices + 1]
  std::vector<std::int32_t> ghost;  ///< ghost[first[s] .. first[s + 1]): indices in [0, ghosts), those below
                                    ///< first; rising, whole block rows
};

/// Who multiplies which slices in which order: first the slices that read no ghosts, then those that do, each
/// list in pieces for the threads.
struct SweepOrder {
  std::vector<int> interior, boundary;  ///< rising
  int threads = 0;                      ///< threads that may share a sweep; 0: any number
  /// The slices of one thread, in order.
  static std::span<int const> piece_of(std::vector<int> const& slices, int thread, int threads) {
    auto const all = static_cast<std::int64_t>(slices.size());
    std::int64_t const first = piece(thread, threads, all), last = piece(thread + 1, threads, all);
    return std::span(slices).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
  }
  /// use(slice) for one thread's share of a list, where so many share a sweep, in order.
  template <class Use>
  void for_each_of(std::vector<int> const& slices, int thread, int sharing, Use&& use) const {
    int const pieces = threads == 0 ? sharing : threads;
    for (auto p = piece(thread, sharing, pieces); p < piece(thread + 1, sharing, pieces); ++p)
      for (int const s : piece_of(slices, static_cast<int>(p), pieces)) use(s);
  }
  /// use(slices) for every list that must be multiplied by one thread in order.
  template <class Use>
  void for_each_group(Use&& use) const {
    int const pieces = threads == 0 ? 1 : threads;
    for (auto const* slices : {&interior, &boundary}) {
      for (int thread = 0; thread < pieces; ++thread) use(piece_of(*slices, thread, pieces));
    }
  }
};

/// Rows [first, last).
struct RowRange {
  std::int64_t first = 0, last = 0;
};

struct MatrixStorage;
struct MatrixView;
struct RightHandSides;
class LocalMatrix;

/// What one thread needs beside the vectors to multiply a matrix with one right-hand side or several.
class SidesRoom {
 public:
  /// matrix  null: a user's operator, which needs nothing; whoever multiplies with its rounded copy may use
  ///         the same room
  /// count   right-hand sides at most
  SidesRoom(LocalMatrix const* matrix, int count);
  SidesRoom(SidesRoom&&) noexcept;
  SidesRoom& operator=(SidesRoom&&) noexcept;
  ~SidesRoom();
  /// Before each product with all rows, and again where x has changed since the last slot.
  void begin_sweep();
  /// Of one of the right-hand sides, what LocalMatrix::multiply of one calls `ring`.
  double* ring(int side) { return rings_ + side * ring_; }

 private:
  friend class LocalMatrix;
  struct Memory;
  std::unique_ptr<Memory> memory_;
  double* rings_ = nullptr;
  std::int64_t ring_ = 0;
};

/// The matrix of one rank: owned rows x local columns (LocalPanel), fp64 values exactly as given.
///
/// Every format, column width and instruction set gives equal bits for finite x: products of a row are added
/// in rising local column, acc = fma(value, x, acc) from +0.0 (docs/decisions/0001). Filled-in zeros
/// cannot change a bit of the sum except the sign of a zero that an underflowing product left. A NaN or Inf
/// in x reaches, in CSR, exactly the rows that hold an entry in that column; in BSR also the other rows of a
/// block that holds one, in sliced ELL also rows of a group of 32 on whose diagonal that column lies (a row
/// padded with its own column keeps its own x: it holds NaN only if its own x is not finite).
class LocalMatrix {
 public:
  /// Reads `rows` twice, panel by panel: once to count, once to fill the final layout; twice more where what
  /// would be stored once differs between the triangles.
  ///
  /// tiling  block_rows * block == rows.owned(); ghosts are whole block rows too
  /// isa     the instruction set of the kernels; at most active_isa()
  /// Errors  usage  sizes that do not fit together; columns out of range or not rising (with the row); bsr
  ///                with block 1; an instruction set this process does not have
  /// Cost    peak memory = the final bytes and one panel of 256 block rows. While counting, halved BSR
  ///         keeps 28 bytes for each two blocks in growing vectors, gone before values are allocated
  LocalMatrix(LocalRows const& rows, Tiling tiling, FormatRequest request = {}, Isa isa = active_isa());
  LocalMatrix(LocalMatrix&&) noexcept;
  LocalMatrix& operator=(LocalMatrix&&) noexcept;
  ~LocalMatrix();

  /// out[0 .. block_rows * block) = (A x)[rows of block rows first_block_row ...], without allocation.
  /// Threads may multiply at the same time, each its own slices. The slices of a group of order() come in
  /// order, each from its first block row to its last, and all of them.
  ///
  /// first_block_row  in [tiling.first(slice), tiling.first(slice + 1)), a multiple of 256 after the slice's
  ///                  first
  /// block_rows  1 .. 256, inside the slice; less than 256 only at the slice's end
  /// x           at the first owned entry of [ghosts below | owned | ghosts above]
  /// ring        [ring()] of this thread, zeros before its first group; zeros again after each group
  void multiply(int slice, std::int64_t first_block_row, int block_rows, double const* x, double* out,
                double* ring) const noexcept {
    kernel_(*view_, slice, first_block_row, block_rows, x, out, ring);
  }
  /// Block rows after which a product of several right-hand sides may be interrupted.
  static constexpr int step_of_sides = 64;
  /// The same of several right-hand sides, each with x and out of its own: the matrix is read once for up to
  /// four of them. The bits are those of one after the other.
  ///
  /// first_block_row, block_rows  as above, or in steps of `step_of_sides` from there
  /// count  at least 1
  /// room   of this thread and at least so many; every x that a slice reads or that lies between has come
  void multiply(int slice, std::int64_t first_block_row, int block_rows, int count, double const* const* x,
                double* const* out, SidesRoom& room) const noexcept;
  /// out = A x. Allocates the ring.
  ///
  /// x    at the first owned entry of [ghosts below | owned | ghosts above]
  /// out  [owned]
  void multiply(double const* x, double* out) const;
  SweepOrder const& order() const;
  /// Doubles that wait between the slices of a thread; 0: none, and `multiply` needs no order.
  std::int64_t ring() const;
  bool reads_ghosts(int slice) const;
  GhostReads const& ghost_reads() const;
  /// Owned rows whose x a product with 256 block rows of the slice, its slot of that number, may read, or lie
  /// between such.
  RowRange owned_reads(int slice, int slot) const;

  /// Bytes of all arrays held.
  std::int64_t bytes() const;
  /// Bytes of matrix arrays that one product with all rows reads (values, columns, starts); vectors not
  /// counted.
  std::int64_t bytes_per_sweep() const;
  /// Entries given (padding and filled-in zeros not counted).
  std::int64_t entries() const;
  std::int64_t owned() const;
  std::int64_t ghosts() const;
  std::int64_t ghosts_below() const;
  Tiling const& tiling() const;
  Format format() const;
  /// Entries (BSR: blocks) that are not stored, because the other triangle holds them (half_reach).
  std::int64_t left_out() const;
  /// Slices whose columns are stored in 16 bits.
  int narrow_slices() const;
  /// Why this format: the bytes per sweep of each candidate.
  std::string why() const;
  /// One line: format, block, column widths, entries, bytes.
  std::string describe() const;

  /// Replaces all values by those of `rows`, whose pattern is the one the matrix was built with.
  ///
  /// The pattern is compared as stored: entries in CSR and sliced ELL, whole blocks in BSR. Where something
  /// is stored once and the new values are not exactly symmetric, the matrix is built anew and stores all; a
  /// block that moved below the diagonal of halved BSR may look like that, and is then taken.
  /// Errors  usage  the pattern differs, with the row; the values are then partly new: update again before
  /// use
  void update_values(LocalRows const& rows);
  /// The same matrix with every value rounded to fp32, in the same format, hence with products in the same
  /// order; its values take as many bytes.
  LocalMatrix rounded_to_fp32() const;
  struct Entry {
    std::int64_t row;
    double value;
  };
  /// The stored finite value of the lowest row that fp32 would make infinite or, from another number, zero.
  /// Of a value that is stored once for both triangles, either row.
  std::optional<Entry> beyond_fp32() const;
  /// out = the diagonal blocks, [block_rows * block * block], row-major, missing entries 0.
  void diagonal_blocks(std::vector<double>& out) const;

 private:
  friend class SidesRoom;
  LocalMatrix();
  using Kernel = void (*)(MatrixView const&, int, std::int64_t, int, double const*, double*,
                          double*) noexcept;
  void build(LocalRows const& rows, Tiling const& tiling, FormatRequest request, Isa isa);
  void rebuild_in_full(LocalRows const& rows);

  std::unique_ptr<MatrixStorage> storage_;
  MatrixView const* view_ = nullptr;
  Kernel kernel_ = nullptr;
  /// Of up to four right-hand sides; null: there is none, and they come one after the other.
  using WideKernel = void (*)(MatrixView const&, int, std::int64_t, int, RightHandSides const&) noexcept;
  WideKernel wide_kernel_ = nullptr;
};

}  // namespace hostless
