/* The header must be C. */
#include "stream-triggering.h"

int uses_the_header(MPIS_Queue* queue);
int uses_the_header(MPIS_Queue* queue) { return MPIS_Queue_init(queue, THREAD, 0); }
