#pragma once
// Rows in local order and numbering, made from a source's rows.

#include <mutex>
#include <vector>

#include "hostless/operate/local_rows.hpp"
#include "solve/matrix/assembly.hpp"

namespace hostless {

/// The source's own rows in their own order: only columns change, and they go on rising. Holds nothing but a
/// panel for each thread that reads.
class NaturalRows final : public LocalRows {
 public:
  NaturalRows(Assembly const& assembly, RowSource const& source) : assembly_(assembly), source_(source) {}
  std::int64_t owned() const override { return assembly_.owned(); }
  std::int64_t ghosts() const override { return assembly_.ghosts(); }
  std::int64_t ghosts_below() const override { return assembly_.ghosts_below(); }
  void panel(std::int64_t first, std::int64_t count, LocalPanel& out) const override;
  bool is_concurrent() const override { return source_.is_concurrent(); }

 private:
  Assembly const& assembly_;
  RowSource const& source_;
  mutable std::mutex mutex_;
  mutable std::vector<RowPanel> idle_;  // their memory is used again
};

/// Rows that came from the ranks that read them, 16 bytes an entry. Construction is collective; rows travel
/// in rounds of bounded size.
class MigratedRows final : public LocalRows {
 public:
  MigratedRows(Assembly const& assembly, Group& group, RowSource const& source);
  std::int64_t owned() const override { return assembly_.owned(); }
  std::int64_t ghosts() const override { return assembly_.ghosts(); }
  std::int64_t ghosts_below() const override { return assembly_.ghosts_below(); }
  void panel(std::int64_t first, std::int64_t count, LocalPanel& out) const override;
  bool is_concurrent() const override { return true; }

 private:
  Assembly const& assembly_;
  std::vector<std::int64_t> offset_{0};  // by arrival
  std::vector<std::int64_t> column_;
  std::vector<double> value_;
  std::vector<std::int64_t> arrival_;  // [owned] where each local row lies
};

}  // namespace hostless
