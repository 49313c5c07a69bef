#include "hostless/model/machine_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/file.hpp"
#include "base/nearest.hpp"
#include "hostless/base/error.hpp"
#include "model/names.hpp"
#include "model/shipped_texts.hpp"

namespace hostless {

char const* name(MessageSpan span) {
  constexpr std::array names = {"on_socket", "on_node", "off_node"};
  return names[static_cast<std::size_t>(span)];
}

char const* name(MemoryKind memory) { return memory == MemoryKind::host ? "host" : "gpu"; }

char const* name(Protocol protocol) {
  constexpr std::array names = {"short", "eager", "rendezvous"};
  return names[static_cast<std::size_t>(protocol)];
}

char const* name(Transfer transfer) {
  constexpr std::array names = {"inlined", "buffered", "direct"};
  return names[static_cast<std::size_t>(transfer)];
}

char const* name(CopyDirection direction) {
  return direction == CopyDirection::host_to_device ? "host_to_device" : "device_to_host";
}

MessagePiece const& MessageCosts::piece(double bytes) const { return piece_of(pieces, bytes); }

MessageCosts const* CostTables::find(MessageSpan span, MemoryKind memory) const {
  for (MessageCosts const& costs : messages)
    if (costs.span == span && costs.memory == memory && !costs.pieces.empty()) return &costs;
  return nullptr;
}

InjectionCosts const* CostTables::find(MemoryKind memory) const {
  for (InjectionCosts const& costs : injection)
    if (costs.memory == memory) return &costs;
  return nullptr;
}

CopyCosts const* CostTables::find(CopyDirection direction, int processes) const {
  for (CopyCosts const& costs : copies)
    if (costs.direction == direction && costs.processes == processes) return &costs;
  return nullptr;
}

std::vector<std::string> shipped_machines() {
  std::vector<std::string> names;
  for (ShippedText const& machine : shipped_texts) names.emplace_back(machine.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string_view shipped_machine(std::string_view name) {
  for (ShippedText const& machine : shipped_texts)
    if (machine.name == name) return machine.text;
  return {};
}

MachineModel load_machine(std::string const& name_or_file) {
  if (name_or_file.find_first_of("/.") == std::string::npos) {
    if (std::string_view const text = shipped_machine(name_or_file); !text.empty())
      return parse_machine(text, name_or_file + ".json");
    auto const names = shipped_machines();
    throw Error(
        ErrorCode::usage,
        fmt::format("'{}' is no machine that hostless knows.{} Use one of {}, or a file (./{}).",
                    name_or_file, did_you_mean(name_or_file, names), fmt::join(names, ", "), name_or_file));
  }
  constexpr std::int64_t most = std::int64_t{1} << 24;
  return parse_machine(read_whole_file(name_or_file, most), name_or_file);
}

}  // namespace hostless
