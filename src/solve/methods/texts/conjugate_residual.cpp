#include "solve/methods/compile_text.hpp"
#include "solve/methods/conjugate_residual.impl.hpp"

HOSTLESS_COMPILE_TEXT(ConjugateResidualMethod);
