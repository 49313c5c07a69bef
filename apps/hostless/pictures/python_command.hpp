#pragma once
// The Python that draws for this command.

#include <string>
#include <vector>

namespace hostless {

/// HOSTLESS_PYTHON, the Python of this command's environment, or else the one that PATH finds.
std::string python();

/// A program for `python -c`: imports `module` of the package `hostless` and ends with the code of its
/// main(). Files of the folder that one stands in are not run, and a Python without the package says what to
/// do about it, exit code 4. makes  what it is needed for: "the page"
std::string python_program(std::string const& module, std::string const& makes);

/// Becomes that program.
/// Errors  environment  it cannot be run
[[noreturn]] void become_python(std::string const& program, std::vector<std::string> const& arguments,
                                std::string const& makes);

/// Before something takes long whose end is `picture`; empty: nothing is drawn.
/// Errors  environment  Python, the package or matplotlib is missing, the picture cannot be written
void check_pictures(std::string const& picture);

/// Writes the JSON of a picture's fields and has Python draw it.
/// Errors  environment  Python, the package or matplotlib is missing, the picture cannot be written
void draw_picture(std::string const& json, std::string const& picture);

}  // namespace hostless
