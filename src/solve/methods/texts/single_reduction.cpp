#include "solve/methods/compile_text.hpp"
#include "solve/methods/single_reduction.impl.hpp"

HOSTLESS_COMPILE_TEXT(SingleReductionMethod);
