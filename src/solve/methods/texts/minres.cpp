#include "solve/methods/compile_text.hpp"
#include "solve/methods/minres.impl.hpp"

HOSTLESS_COMPILE_TEXT(MinresMethod);
