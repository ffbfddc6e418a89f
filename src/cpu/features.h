/* What this processor can do, as one of a few named levels that kernels are written for.
 *
 * A level is a set of instruction-set features that come together in real processors. The levels of
 * one architecture form a chain: each contains the one before it. */
#ifndef GN_CPU_FEATURES_H
#define GN_CPU_FEATURES_H

#include "base/attr.h"
#include "ganglion/status.h"

#include <stdbool.h>

/* X(NAME, "name", here): in ascending order; `here` is 1 if this build has kernels for it.
 * ref   plain C, any processor
 * avx2  AVX2, FMA, F16C, BMI2
 * vnni  avx2 and AVX-512 F, BW, VL, DQ, VNNI
 * amx   vnni and AMX with int8 tiles, permitted by the operating system and seen to work
 * neon  Armv8.2 with the dot product and half precision extensions */
#define GN_CPU_LEVEL_LIST(X)                                                                       \
    X(REF, "ref", 1)                                                                               \
    X(AVX2, "avx2", GN_ARCH_X86)                                                                   \
    X(VNNI, "vnni", GN_ARCH_X86)                                                                   \
    X(AMX, "amx", GN_ARCH_X86)                                                                     \
    X(NEON, "neon", GN_ARCH_ARM64)

typedef enum gn_cpu_level {
#define GN_CPU_LEVEL_ENUM(NAME, name, here) GN_CPU_##NAME,
    GN_CPU_LEVEL_LIST(GN_CPU_LEVEL_ENUM)
#undef GN_CPU_LEVEL_ENUM
        GN_CPU_N_LEVELS
} gn_cpu_level;

/* The highest level that the processor and the operating system support. Found on the first call, which
 * may run a short test in a child process; thread-safe. */
gn_cpu_level gn_cpu_detect(void);

/* Whether this build has the level and this machine can run it. */
bool gn_cpu_has(gn_cpu_level level);

/* Tests only: a self-test that stands in for that of AMX; set before anything asks for the level. */
void gn_cpu_set_amx_test(int (*test)(void));

/* "avx2" for GN_CPU_AVX2. Static storage. */
const char *gn_cpu_level_name(gn_cpu_level level);

/* Choose the level for this process: the detected one, or the one the environment variable
 * GANGLION_CPU names. Call it before anything else asks for kernels; the first call decides, later
 * ones repeat its result. Thread-safe.
 * Returns GN_OK, or GN_E_ARG where GANGLION_CPU names no level that can run here; the message then
 * lists those that can, and the detected level stays in force. A level that the processor advertises and
 * that was not chosen because it does not work here is a line in the log. */
GN_MUST_USE gn_status gn_cpu_init(void);

/* The level in force (see gn_cpu_init(), which this calls). Thread-safe. */
gn_cpu_level gn_cpu_active(void);

#endif
