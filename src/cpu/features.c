/* Detection of instruction sets: CPUID and the state that the operating system saves (XCR0) on x86,
 * the kernel's capability words on Arm. The result is computed once. What is advertised costs nothing to
 * know; the top level of x86 must also be seen to work (x86_amx.c), which is put off until it matters. */
#include "cpu/features.h"

#include "base/log.h"
#include "base/status.h"
#include "cpu/amx.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if GN_ARCH_X86
#include <cpuid.h>
#elif GN_ARCH_ARM64 && defined(__linux__)
#include <sys/auxv.h>
#endif

static const struct {
    const char *name;
    bool here;
} levels[GN_CPU_N_LEVELS] = {
#define LEVEL_ROW(NAME, text, present) [GN_CPU_##NAME] = {text, (present) != 0},
    GN_CPU_LEVEL_LIST(LEVEL_ROW)
#undef LEVEL_ROW
};

#if GN_ARCH_X86

static uint64_t read_xcr0(void)
{
    uint32_t lo = 0;
    uint32_t hi = 0;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

static bool all_set(uint32_t word, uint32_t bits)
{
    return (word & bits) == bits;
}

/* The highest level that is advertised. */
static gn_cpu_level find_advertised(void)
{
    uint32_t eax = 0;
    uint32_t ebx = 0;
    uint32_t ecx = 0;
    uint32_t edx = 0;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 ||
        !all_set(ecx, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C)) {
        return GN_CPU_REF;
    }
    const uint64_t ymm_state = 0x06; /* SSE and AVX */
    const uint64_t zmm_state = 0xe6; /* and opmask, upper halves, upper registers */
    const uint64_t tile_state = 0x60000;
    const uint32_t amx = 1u << 24 | 1u << 25; /* AMX-TILE, AMX-INT8 */
    uint64_t xcr0 = read_xcr0();
    if ((xcr0 & ymm_state) != ymm_state || __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 ||
        !all_set(ebx, bit_AVX2 | bit_BMI2)) {
        return GN_CPU_REF;
    }
    if ((xcr0 & zmm_state) != zmm_state ||
        !all_set(ebx, bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ) ||
        !all_set(ecx, bit_AVX512VNNI)) {
        return GN_CPU_AVX2;
    }
    return (xcr0 & tile_state) == tile_state && all_set(edx, amx) ? GN_CPU_AMX : GN_CPU_VNNI;
}

#elif GN_ARCH_ARM64 && defined(__linux__)

static gn_cpu_level find_advertised(void)
{
    /* Bits of AT_HWCAP in the Linux arm64 ABI: FPHP 9, ASIMDHP 10, ASIMDDP 20. */
    const unsigned long wanted = 1UL << 9 | 1UL << 10 | 1UL << 20;
    return (getauxval(AT_HWCAP) & wanted) == wanted ? GN_CPU_NEON : GN_CPU_REF;
}

#else

static gn_cpu_level find_advertised(void)
{
    return GN_CPU_REF;
}

#endif

static pthread_once_t detect_once = PTHREAD_ONCE_INIT;
static gn_cpu_level detected;
static char why_no_amx[64]; /* though advertised */

#if GN_ARCH_X86

static gn_cpu_amx_test *amx_test = gn_cpu_amx_multiply;

void gn_cpu_set_amx_test(int (*test)(void))
{
    amx_test = test;
}

static void detect(void)
{
    detected = find_advertised();
    if (detected == GN_CPU_AMX && !gn_cpu_amx_usable(amx_test, why_no_amx, sizeof why_no_amx)) {
        detected = GN_CPU_VNNI;
    }
}

#else

void gn_cpu_set_amx_test(int (*test)(void))
{
    (void)test;
}

static void detect(void)
{
    detected = find_advertised();
}

#endif

gn_cpu_level gn_cpu_detect(void)
{
    (void)pthread_once(&detect_once, detect);
    return detected;
}

bool gn_cpu_has(gn_cpu_level level)
{
    if (level >= GN_CPU_N_LEVELS || !levels[level].here || level > find_advertised()) {
        return false;
    }
    return level != GN_CPU_AMX || gn_cpu_detect() == GN_CPU_AMX;
}

const char *gn_cpu_level_name(gn_cpu_level level)
{
    return level < GN_CPU_N_LEVELS ? levels[level].name : "?";
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static gn_cpu_level active;
static bool env_refused;

static void choose_detected(void)
{
    active = gn_cpu_detect();
    if (why_no_amx[0] != '\0') {
        gn_base_log("AMX is advertised but not used: %s", why_no_amx);
    }
}

static void choose(void)
{
    const char *wanted = getenv("GANGLION_CPU");
    if (wanted == NULL || wanted[0] == '\0') {
        choose_detected();
        return;
    }
    for (gn_cpu_level level = GN_CPU_REF; level < GN_CPU_N_LEVELS; level++) {
        if (strcmp(wanted, levels[level].name) == 0 && gn_cpu_has(level)) {
            active = level;
            return;
        }
    }
    choose_detected();
    env_refused = true;
}

gn_status gn_cpu_init(void)
{
    (void)pthread_once(&once, choose);
    if (!env_refused) {
        return GN_OK;
    }
    char names[64] = "";
    size_t len = 0;
    for (gn_cpu_level level = GN_CPU_REF; level < GN_CPU_N_LEVELS; level++) {
        if (gn_cpu_has(level)) {
            int n = snprintf(names + len, sizeof names - len, " %s", levels[level].name);
            len += n > 0 ? (size_t)n : 0;
        }
    }
    const char *wanted = getenv("GANGLION_CPU");
    return gn_base_fail(GN_E_ARG, "GANGLION_CPU: found \"%s\", expected one of:%s",
                        wanted != NULL ? wanted : "", names);
}

gn_cpu_level gn_cpu_active(void)
{
    (void)pthread_once(&once, choose);
    return active;
}
