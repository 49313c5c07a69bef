#pragma once
// The text of a name that is made of parts.

#define HOSTLESS_SPELT_OF(name) #name
#define HOSTLESS_SPELT(name) HOSTLESS_SPELT_OF(name)
