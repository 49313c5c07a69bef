#pragma once
// What every function of the C interface does with errors, and the handle that most of them take.

#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "hostless/base/error.hpp"
#include "hostless/hostless.h"
#include "hostless/queue/queue.hpp"
#include "hostless/transport/transport.hpp"

struct hostless_transport {
  hostless::Transport* transport = nullptr;
  std::unique_ptr<hostless::Transport> owned;
  std::unique_ptr<hostless::Transport> fabric;           // over the one that was there before
  std::unique_ptr<hostless::Communicator> communicator;  // when the first request is made
};

namespace hostless::c_interface {

/// Of this thread's last failure.
inline std::string& last_error() {
  thread_local std::string text;
  return text;
}

inline int failed(int code, char const* text) noexcept {
  try {
    last_error() = text;
  } catch (...) {
    last_error().clear();
  }
  return code;
}

/// No exception crosses into C.
template <class Work>
int guarded(Work const& work) noexcept {
  try {
    work();
    return HOSTLESS_OK;
  } catch (Error const& e) {
    return failed(static_cast<int>(e.code()), e.what());
  } catch (std::bad_alloc const&) {
    return failed(HOSTLESS_ENVIRONMENT, "out of memory.");
  } catch (std::length_error const&) {  // of the standard library, whose words say nothing to callers
    return failed(HOSTLESS_ENVIRONMENT, "out of memory: an array longer than any can be.");
  } catch (std::exception const& e) {
    return failed(HOSTLESS_ENVIRONMENT, e.what());
  }
}

[[noreturn]] inline void misused(std::string const& text) { throw Error(ErrorCode::usage, text); }

template <class T>
void need(T const* pointer, char const* what) {
  if (pointer == nullptr) misused(what);
}

/// A struct of exactly this version.
template <class Struct>
void check_size(Struct const& given, std::string const& name) {
  if (given.struct_size != sizeof(Struct))
    misused(name + ".struct_size: " + std::to_string(given.struct_size) +
            ", which is not that of this version, " + std::to_string(sizeof(Struct)) +
            " (compile with its header).");
}

/// The route that follows from the nodes: of nobody, or of the command line's word.
inline bool is_automatic(char const* route) { return route == nullptr || std::strcmp(route, "auto") == 0; }

/// Where a handle is to go: NULL until there is one, so that nobody frees what was there before.
template <class Handle>
void clear(Handle** handle) {
  if (handle != nullptr) *handle = nullptr;
}

}  // namespace hostless::c_interface
