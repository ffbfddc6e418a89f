/* The entry point that libFuzzer and replay.c call. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Feed size bytes to the parser under test and use what it gives. Returns 0; a crash, a sanitizer's
 * report, a leak or a hang is the finding. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
