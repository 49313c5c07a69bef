#include "solve/methods/bicgstab.impl.hpp"
#include "solve/methods/compile_text.hpp"

HOSTLESS_COMPILE_TEXT(BicgstabMethod);
