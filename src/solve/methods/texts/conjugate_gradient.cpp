#include "solve/methods/compile_text.hpp"
#include "solve/methods/conjugate_gradient.impl.hpp"

HOSTLESS_COMPILE_TEXT(ConjugateGradientMethod);
