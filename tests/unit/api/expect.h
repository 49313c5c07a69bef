/* What the tests in C share: what does not hold is told and counted. */
#pragma once

#include <stdio.h>

#include "hostless/hostless.h"

static int failures = 0;

#define EXPECT(condition)                                                                                \
  do {                                                                                                   \
    if (!(condition)) {                                                                                  \
      fprintf(stderr, "%s:%d: %s failed (%s)\n", __FILE__, __LINE__, #condition, hostless_last_error()); \
      ++failures;                                                                                        \
    }                                                                                                    \
  } while (0)
