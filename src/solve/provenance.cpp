#include "hostless/solve/provenance.hpp"

#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "hostless/machine/topology.hpp"
#include "hostless/transport/libraries.hpp"

namespace hostless {
namespace {

using Json = nlohmann::ordered_json;

std::string utc_now() {
  std::time_t const now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::vector<std::string> command_line() {
  // bounded: the kernel answers
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

// But those by which a launcher tells its ranks of each other.
Provenance::Words environment_of_hostless() {
  Provenance::Words words;
  for (char** at = environ; *at != nullptr; ++at) {
    std::string const text = *at;
    std::string const key = text.substr(0, text.find('='));
    bool const of_launcher = key == "HOSTLESS_RANK" || key == "HOSTLESS_SIZE" ||
                             key == "HOSTLESS_RENDEZVOUS" || key == "HOSTLESS_IS_TOLD";
    if (key.rfind("HOSTLESS_", 0) == 0 && !of_launcher && key.size() < text.size())
      words.emplace_back(key, text.substr(key.size() + 1));
  }
  std::sort(words.begin(), words.end());
  return words;
}

Provenance::Words versions() {
  utsname kernel{};
  uname(&kernel);
#ifdef __clang__
  std::string const compiler = "Clang " __clang_version__;
#else
  std::string const compiler = "GCC " __VERSION__;
#endif
  return {{"hostless", HOSTLESS_VERSION},
          {"compiler", compiler},
          {"c_library", std::string("glibc ") + gnu_get_libc_version()},
          {"kernel", std::string(kernel.sysname) + " " + kernel.release}};
}

Json object_of(Provenance::Words const& words) {
  Json j = Json::object();
  for (auto const& [key, value] : words) j[key] = value;
  return j;
}

}  // namespace

Provenance find_provenance() {
  Provenance p;
  p.date = utc_now();
  p.command = command_line();
  p.environment = environment_of_hostless();
  p.host = known_topology().host;  // a result is worth more than these names
  p.processor = known_topology().processor;
  p.libraries = transport_libraries();
  p.versions = versions();
  return p;
}

std::string to_json(Provenance const& p) {
  Json j = {{"date", p.date},
            {"command", p.command},
            {"options_given", object_of(p.options_given)},
            {"options", object_of(p.options)},
            {"environment", object_of(p.environment)},
            {"host", p.host},
            {"processor", p.processor}};
  for (auto const& [library, said] : p.libraries) j[library] = said.empty() ? Json(nullptr) : Json(said);
  j["versions"] = object_of(p.versions);
  // Words of a command line need not be UTF-8.
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hostless
