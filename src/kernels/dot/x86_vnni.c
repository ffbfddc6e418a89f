/* Products of panels with AVX-512 VNNI; vnni.h has the method. */
#include "kernels/dot/vnni.h"

GN_INLINE void dot_panel_any(size_t group, const panel *p, size_t m, activations a, results out)
{
    if (p->min != NULL) {
        vnni_panel(group, 1, p, m, a, out);
    } else {
        vnni_panel(group, 0, p, m, a, out);
    }
}

GN_DOT_PANEL_ENTRIES(x86_vnni)
