#pragma once
// What the command prints. Whether it arrived is known when all of it has been handed over: finish_output.

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace hostless {

/// As fmt::print to standard output, which throws wherever the stream happens to be emptied.
template <class... T>
void print(fmt::format_string<T...> text, T&&... arguments) {
  std::string const words = fmt::format(text, std::forward<T>(arguments)...);
  std::fwrite(words.data(), 1, words.size(), stdout);
}

/// The same to standard error, where nobody is left to be told what did not arrive.
template <class... T>
void tell(fmt::format_string<T...> text, T&&... arguments) {
  std::string const words = fmt::format(text, std::forward<T>(arguments)...);
  std::fwrite(words.data(), 1, words.size(), stderr);
}

/// Before anything is opened: a closed standard stream would become the first file that is. Writing to it
/// fails all the same.
void keep_standard_streams();
/// The exit code of a command that would have ended with `code`: 4, and one line, where what it printed has
/// not arrived.
int finish_output(int code);

}  // namespace hostless
