#pragma once
// What was measured before: one line of JSON an entry, in the user's cache folder. Nothing depends on it, so
// whatever is wrong with the file is at most a note.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hostless::gpu {

/// A run and what it took, in the order in which they were measured.
struct Timing {
  std::string run;
  double us = 0;  ///< an iteration
  bool operator==(Timing const&) const = default;
};

/// A line of the file that was understood.
struct CacheEntry {
  std::string key, line;
  std::vector<Timing> timings;
};
/// The lines of a cache's text that can be understood; others are left out.
std::vector<CacheEntry> cache_entries(std::string_view text);

class TuningCache {
 public:
  static constexpr std::size_t most_entries = 1000;

  /// folder: empty: nothing is kept.
  explicit TuningCache(std::string folder) : folder_(std::move(folder)) {}
  /// HOSTLESS_CACHE_DIR, else hostless in XDG_CACHE_HOME, else in ~/.cache; empty without any of them.
  static std::string default_folder();
  /// Empty without a folder.
  std::string file() const;

  /// Nothing where nobody measured, or nobody can read what was written.
  std::optional<std::vector<Timing>> find(std::string const& key) const;
  /// Replaces an entry of that key; the oldest beyond most_entries go. Written under a temporary name, then
  /// renamed. Returns why nothing could be kept; empty: it is.
  std::string keep(std::string const& key, std::vector<Timing> const& timings) const;

 private:
  std::string folder_;
};

}  // namespace hostless::gpu
