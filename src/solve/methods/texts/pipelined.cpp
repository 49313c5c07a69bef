#include "solve/methods/compile_text.hpp"
#include "solve/methods/pipelined.impl.hpp"

HOSTLESS_COMPILE_TEXT(PipelinedMethod);
