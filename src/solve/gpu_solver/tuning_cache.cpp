#include "solve/gpu_solver/tuning_cache.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/file.hpp"
#include "base/whole_file.hpp"
#include "hostless/base/error.hpp"

namespace hostless::gpu {
namespace {

using Json = nlohmann::ordered_json;

// Empty where it is not set.
std::string variable(char const* name) {
  char const* const text = std::getenv(name);
  return text != nullptr ? text : "";
}

// Nothing: the line is damaged, or of another version of hostless.
std::optional<std::vector<Timing>> timings_of(Json const& entry) {
  if (!entry.is_object() || !entry.contains("key") || !entry["key"].is_string()) return {};
  if (!entry.contains("us") || !entry["us"].is_object()) return {};
  std::vector<Timing> timings;
  for (auto const& [run, us] : entry["us"].items()) {
    if (!us.is_number()) return {};
    double const value = us.get<double>();
    if (!(value > 0) || !std::isfinite(value)) return {};
    timings.push_back({run, value});
  }
  if (timings.empty()) return {};
  return timings;
}

// What can be understood of the file; nothing without one.
std::vector<CacheEntry> read_entries(std::string const& path) {
  constexpr std::int64_t most = 16 << 20;  // a thousand entries have a hundredth of it
  try {
    return cache_entries(read_whole_file(path, most));
  } catch (Error const&) {
    return {};
  }
}

}  // namespace

std::vector<CacheEntry> cache_entries(std::string_view text) {
  std::vector<CacheEntry> entries;
  while (!text.empty()) {
    auto const line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    Json const json = Json::parse(line, nullptr, false);
    auto timings = timings_of(json);
    if (timings) entries.push_back({json["key"].get<std::string>(), std::string(line), std::move(*timings)});
  }
  return entries;
}

std::string TuningCache::default_folder() {
  if (std::string const folder = variable("HOSTLESS_CACHE_DIR"); !folder.empty()) return folder;
  if (std::string const caches = variable("XDG_CACHE_HOME"); !caches.empty()) return caches + "/hostless";
  if (std::string const home = variable("HOME"); !home.empty()) return home + "/.cache/hostless";
  return {};
}

std::string TuningCache::file() const { return folder_.empty() ? "" : folder_ + "/gpu-runs.jsonl"; }

std::optional<std::vector<Timing>> TuningCache::find(std::string const& key) const {
  if (folder_.empty()) return {};
  for (CacheEntry& entry : read_entries(file())) {
    if (entry.key == key) return std::move(entry.timings);
  }
  return {};
}

std::string TuningCache::keep(std::string const& key, std::vector<Timing> const& timings) const {
  if (folder_.empty()) return "no cache folder: set HOSTLESS_CACHE_DIR";
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  std::vector<CacheEntry> entries = read_entries(file());
  std::erase_if(entries, [&](CacheEntry const& entry) { return entry.key == key; });
  Json entry = {{"key", key}, {"us", Json::object()}};
  for (Timing const& timing : timings) entry["us"][timing.run] = timing.us;
  entries.push_back({key, entry.dump(-1, ' ', true, Json::error_handler_t::replace), timings});
  std::size_t const first = entries.size() > most_entries ? entries.size() - most_entries : 0;
  std::string text;
  for (std::size_t k = first; k < entries.size(); ++k) text += entries[k].line + '\n';
  try {
    write_whole_file(file(), text);
  } catch (Error const&) {
    return file() + " cannot be written";
  }
  return {};
}

}  // namespace hostless::gpu
