#pragma once
// A stencil whose grid stays on chip. A block keeps a window of the grid in registers: its own cells and a
// ring as deep as the steps that it takes alone. Warps have rows of it; between two steps they show each
// other their first and last row in shared memory. After `depth` steps blocks exchange rings by words that
// bear the number of the exchange: a block waits for its neighbours and for nobody else.
//
// Words are double-buffered by the parity of the exchange: who stores number e + 2 has all words of e + 1 of
// its neighbours, which stored them after they had read those of e. So it is between GPUs too, which have
// rows of tiles each: tiles at the first and the last row store their words into the next GPU's memory
// beside.

#include "stencil/gpu/frame.gpu.hpp"
#include "stencil/gpu/window.gpu.hpp"

namespace hostless::gpu {

/// Registers of a thread that hold cells.
template <class T, class Body>
constexpr int resident_words(int width, int rows) {
  return FactsOf<Body>::fields * width * rows * static_cast<int>(sizeof(T)) / 4;
}

/// even: windows, their own cells and depths are whole chunks of threads, and the axes' ends are the
/// windows'. Else any size, cell by cell. parted: other GPUs have the other rows of tiles (what that takes
/// costs registers).
template <class T, class Body, int width, int rows, bool even, bool parted>
class ResidentTile {
  static constexpr int fields = fields_of_body<Body>(), columns = 32 * width;
  static constexpr int unit = even && sizeof(T) == 4 ? 2 : 1;
  static constexpr int chunk = width * static_cast<int>(sizeof(T)) < 16 ? width : Chunk<T>::cells;
  static constexpr int chunks = width / chunk;
  struct alignas(chunk * sizeof(T)) Some {
    T cell[chunk];
  };
  using Row = ThreadRow<T, width>;
  using Call = ResidentCall<T, fields>;

 public:
  __device__ __forceinline__ ResidentTile(Call const& call, T* shared)
      : call_(call),
        thread_(static_cast<int>(threadIdx.x) % 32),
        warp_(static_cast<int>(threadIdx.x) / 32),
        border_(shared),
        frame_{shared + 4 * fields * call.warps * columns,
               OwnRange::of(call.y, static_cast<int>(blockIdx.y) + (parted ? call.first_tile : 0)),
               OwnRange::of(call.x, static_cast<int>(blockIdx.x)), call.depth(), call.warps * rows} {
    bool const first = thread_ == 0 && !frame_.x.below, last = thread_ == 31 && !frame_.x.above;
    ends_ = Ends::of(call.all_bits, first, even && last, call.x.boundary);
    bool const keeps = call.y.boundary == GridBoundary::dirichlet;
    int const last_row = call.y.extent - 1 - frame_.y.first - warp_ * rows;
    first_kept_ = keeps && !frame_.y.below && warp_ == 0 ? 0 : -1;
    last_kept_ = keeps && !frame_.y.above ? last_row : -1;
    if (even) {
      first_kept_ = first_kept_ == 0 ? static_cast<int>(call.all_bits) : 0;
      last_kept_ = last_kept_ == rows - 1 ? static_cast<int>(call.all_bits) : 0;
    } else {
      mirrored_row_ = call.y.boundary == GridBoundary::neumann && !frame_.y.above ? last_row : -1;
      int const last_column = frame_.x.above ? -1 : call.x.extent - 1 - frame_.x.first - thread_ * width;
      mirrored_column_ = call.x.boundary == GridBoundary::neumann ? last_column : -1;
      kept_column_ = call.x.boundary == GridBoundary::dirichlet ? last_column : -1;
    }
  }

  __device__ __forceinline__ void run(Body const& body) {
    load();
    std::uint32_t epoch = call_.epoch;
    for (std::int64_t left = call_.steps, taken = 0;; taken = 1) {
      int some = left < call_.depth() ? static_cast<int>(left) : call_.depth();
      if (parted && taken == 0) some = 0;  // rings come from other GPUs
      for (int s = 0; s < some; s += 2) {
        step<true>(body);
        step<false>(body);
      }
      left -= some;
      if (left == 0) break;
      if (!exchange(epoch)) return;
      epoch = next_epoch(epoch);
    }
    store();
  }

 private:
  __device__ __forceinline__ int column(int i) const { return thread_ * width + i; }
  __device__ __forceinline__ int row(int r) const { return warp_ * rows + r; }
  /// Where the arrays have a row of the grid.
  __device__ __forceinline__ int held(int y) const { return parted ? y - call_.first_row : y; }

  __device__ __forceinline__ void load() {
    HOSTLESS_UNROLL
    for (int r = 0; r < rows; ++r) HOSTLESS_UNROLL
    for (int i = 0; i < width; ++i) {
      int const y = call_.y.wrapped(frame_.y.first + row(r)), x = call_.x.wrapped(frame_.x.first + column(i));
      bool const own = !parted || (y >= call_.own_low && y < call_.own_high);
      bool const there = own && y >= 0 && y < call_.y.extent && x >= 0 && x < call_.x.extent;
      HOSTLESS_UNROLL
      for (int f = 0; f < fields; ++f) cell_[f][r][i] = there ? call_.in[f][held(y) * call_.pitch + x] : T(0);
    }
  }
  __device__ __forceinline__ void store() const {
    HOSTLESS_UNROLL
    for (int r = 0; r < rows; ++r) HOSTLESS_UNROLL
    for (int i = 0; i < width; ++i)
      if (frame_.y.owns(row(r)) && frame_.x.owns(column(i))) HOSTLESS_UNROLL
    for (int f = 0; f < fields; ++f)
      call_.out[f][held(frame_.y.first + row(r)) * call_.pitch + frame_.x.first + column(i)] = cell_[f][r][i];
  }

  /// A thread's cells of a row that a warp shows: the threads' first chunks, then their next.
  __device__ __forceinline__ Some* shown(int parity, int which, int f, int warp) const {
    return reinterpret_cast<Some*>(border_ +
                                   (((parity * 2 + which) * fields + f) * call_.warps + warp) * columns) +
           thread_;
  }
  __device__ __forceinline__ void show(int parity, int which, int r) const {
    HOSTLESS_UNROLL
    for (int f = 0; f < fields; ++f) HOSTLESS_UNROLL
    for (int k = 0; k < chunks; ++k) {
      Some some;
      HOSTLESS_UNROLL
      for (int i = 0; i < chunk; ++i) some.cell[i] = cell_[f][r][k * chunk + i];
      shown(parity, which, f, warp_)[k * 32] = some;
    }
  }
  __device__ __forceinline__ Row seen(Some const* from) const {
    Row found;
    HOSTLESS_UNROLL
    for (int k = 0; k < chunks; ++k) {
      Some const some = from[k * 32];
      HOSTLESS_UNROLL
      for (int i = 0; i < chunk; ++i) found.cell[k * chunk + i] = some.cell[i];
    }
    return found;
  }
  /// What a row's cells see beside them.
  __device__ __forceinline__ void look(Row& row) const {
    look_beside(row, thread_, ends_);
    if constexpr (!even) mirror_after(row, mirrored_column_);
  }
  /// A mask: whether row r does not change.
  __device__ __forceinline__ std::uint32_t is_kept(int r) const {
    if (even) {
      std::uint32_t const first = r == 0 ? static_cast<std::uint32_t>(first_kept_) : 0;
      return first | (r == rows - 1 ? static_cast<std::uint32_t>(last_kept_) : 0);
    }
    return r == first_kept_ || r == last_kept_ ? call_.all_bits : 0;
  }

  /// Row by row, from the first one down or from the last one up. A new row takes the place of the old one
  /// before it, whose registers are free then; so down and up in turns need no copies, and no registers.
  template <bool down>
  __device__ __forceinline__ void step(Body const& body) {
    constexpr bool star = FactsOf<Body>::star;
    constexpr int parity = down ? 0 : 1, start = down ? 0 : rows - 1, on = down ? 1 : -1;
    show(parity, 0, 0);
    show(parity, 1, rows - 1);
    __syncthreads();
    // beyond the first and the last warp: the own row, which is what neumann mirrors
    auto const above = [&](int f) {
      return seen(warp_ == 0 ? shown(parity, 0, f, 0) : shown(parity, 1, f, warp_ - 1));
    };
    auto const below = [&](int f) {
      bool const last = warp_ == call_.warps - 1;
      return seen(last ? shown(parity, 1, f, warp_) : shown(parity, 0, f, warp_ + 1));
    };
    Row before[fields], here[fields];
    HOSTLESS_UNROLL
    for (int f = 0; f < fields; ++f) {
      before[f] = down ? above(f) : below(f);
      if (!star) look(before[f]);
      HOSTLESS_UNROLL
      for (int i = 0; i < width; ++i) here[f].cell[i] = cell_[f][start][i];
      look(here[f]);
    }
    HOSTLESS_UNROLL
    for (int k = 0; k < rows; ++k) {
      int const r = start + on * k;
      Row three[fields][3];
      HOSTLESS_UNROLL
      for (int f = 0; f < fields; ++f) {
        Row next;
        if (k + 1 < rows) {
          HOSTLESS_UNROLL
          for (int i = 0; i < width; ++i) next.cell[i] = cell_[f][k + 1 < rows ? r + on : r][i];
        } else {
          next = down ? below(f) : above(f);
        }
        if (!star || k + 1 < rows) look(next);
        three[f][0] = down ? before[f] : next;
        three[f][1] = here[f];
        three[f][2] = down ? next : before[f];
        before[f] = here[f];
        here[f] = next;
        if constexpr (!even) mirror_row(r == mirrored_row_ ? call_.all_bits : 0, three[f]);
      }
      update(body, three, r);
    }
  }
  /// The row after the grid's last is that one.
  __device__ __forceinline__ static void mirror_row(std::uint32_t mask, Row (&rows_seen)[3]) {
    HOSTLESS_UNROLL
    for (int i = 0; i < width; ++i)
      rows_seen[2].cell[i] = chosen(mask, rows_seen[1].cell[i], rows_seen[2].cell[i]);
    if constexpr (!FactsOf<Body>::star) {
      rows_seen[2].before = chosen(mask, rows_seen[1].before, rows_seen[2].before);
      rows_seen[2].after = chosen(mask, rows_seen[1].after, rows_seen[2].after);
    }
  }
  __device__ __forceinline__ void update(Body const& body, Row const (&rows_seen)[fields][3], int r) {
    T found[fields][width];
    update_row<T, Body, width>(body, rows_seen, found, ends_);
    bool const may_keep = !even || r == 0 || r == rows - 1;
    std::uint32_t const kept = may_keep ? is_kept(r) : 0;
    HOSTLESS_UNROLL
    for (int f = 0; f < fields; ++f) HOSTLESS_UNROLL
    for (int i = 0; i < width; ++i) {
      T const old = rows_seen[f][1].cell[i];
      T const now = !even && i == kept_column_ ? old : found[f][i];
      cell_[f][r][i] = may_keep ? chosen(kept, old, now) : now;
    }
  }

  /// Copies between registers and the frame: out of own cells near the border, into cells of the ring.
  template <bool out>
  __device__ __forceinline__ void copy(int r, int i, T* first_field) {
    HOSTLESS_UNROLL
    for (int f = 0; f < fields; ++f) {
      T* const there = first_field + f * frame_.field_cells();
      constexpr int count = even ? chunk : 1;
      struct alignas(count * sizeof(T)) Part {
        T cell[count];
      };
      Part part;
      if (!out) part = *reinterpret_cast<Part const*>(there);
      HOSTLESS_UNROLL
      for (int k = 0; k < count; ++k) {
        if (out)
          part.cell[k] = cell_[f][r][i + k];
        else
          cell_[f][r][i + k] = part.cell[k];
      }
      if (out) *reinterpret_cast<Part*>(there) = part;
    }
  }
  template <bool out>
  __device__ __forceinline__ void copy_all() {
    OwnRange const &x = frame_.x, &y = frame_.y;
    int const depth = frame_.depth;
    constexpr int count = even ? chunk : 1, pieces = width / count;
    bool of_whole[pieces], of_beside[pieces];
    HOSTLESS_UNROLL
    for (int k = 0; k < pieces; ++k) {
      int const c = column(k * count);
      bool const ours = x.owns(c);
      bool const near = (x.below && c < x.low + depth) || (x.above && c >= x.high - depth);
      of_whole[k] = out ? ours : x.holds(c, depth);
      of_beside[k] = out ? ours && near : of_whole[k] && !ours;
    }
    bool const is_inner =
        row(0) >= y.low + (y.below ? depth : 0) && row(rows - 1) < y.high - (y.above ? depth : 0);
    if (is_inner) {  // most warps: columns near the border alone, one row after the other
      HOSTLESS_UNROLL
      for (int k = 0; k < pieces; ++k) {
        if (!of_beside[k]) continue;
        T* const there = frame_.memory + frame_.of_row(row(0), -1) + frame_.of_column(column(k * count), -1);
        HOSTLESS_UNROLL
        for (int r = 0; r < rows; ++r) copy<out>(r, k * count, there + r * 4 * depth);
      }
      return;
    }
    HOSTLESS_UNROLL
    for (int r = 0; r < rows; ++r) {
      int const whole = frame_.whole_row(row(r));
      bool const own = y.owns(row(r));
      if (!own && (out || whole < 0)) continue;
      bool const all = out ? whole >= 0 : !own;
      HOSTLESS_UNROLL
      for (int k = 0; k < pieces; ++k)
        if (all ? of_whole[k] : of_beside[k])
          copy<out>(
              r, k * count,
              frame_.memory + frame_.of_row(row(r), whole) + frame_.of_column(column(k * count), whole));
    }
  }
  __device__ __forceinline__ bool exchange(std::uint32_t epoch) {
    copy_all<true>();
    __syncthreads();
    if constexpr (parted) send_beyond(frame_, call_, epoch);  // what has the longest way begins first
    send(frame_, call_, epoch);
    bool const whole = receive(frame_, call_, epoch);
    if (!whole) *static_cast<std::uint32_t volatile*>(call_.lost) = 1;
    if (__syncthreads_or(whole ? 0 : 1) != 0) return false;
    copy_all<false>();
    return true;
  }

  Call const& call_;
  int thread_, warp_;
  T* border_;
  Frame<T, fields, columns, unit> frame_;
  Ends ends_;
  int first_kept_, last_kept_;  ///< of the warp's rows; even: masks for its first and last one
  int mirrored_row_ = -1, mirrored_column_ = -1, kept_column_ = -1;
  T cell_[fields][rows][width];
};

template <class T, class Body, int width, int rows, bool even, bool parted>
__global__ void __launch_bounds__(32 * most_resident_warps(resident_words<T, Body>(width, rows)), 1)
    resident_kernel(HOSTLESS_PARAMETER ResidentCall<T, fields_of_body<Body>()> const call, Body const body) {
  extern __shared__ __align__(16) unsigned char shared[];
  ResidentTile<T, Body, width, rows, even, parted> tile(call, reinterpret_cast<T*>(shared));
  tile.run(body);
}

}  // namespace hostless::gpu
