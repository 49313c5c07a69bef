#pragma once
// A variable of the environment for the length of a test.

#include <cstdlib>
#include <optional>
#include <string>

namespace hostless::test {

/// Has this value as long as it lives; then the one before, if there was any.
class Environment {
 public:
  Environment(char const* name, char const* value) : name_(name) {
    if (char const* before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  Environment(Environment const&) = delete;
  Environment& operator=(Environment const&) = delete;
  ~Environment() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  char const* name_;
  std::optional<std::string> before_;
};

}  // namespace hostless::test
