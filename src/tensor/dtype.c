#include "tensor/dtype.h"

#include "base/attr.h"

const gn_dtype_info *gn_dtype_find(uint32_t id)
{
    static const gn_dtype_info table[] = {
#define ROW(name, id, len, bytes, computed) {GN_DTYPE_##name, #name, len, bytes, computed},
        GN_DTYPE_LIST(ROW)
#undef ROW
    };
    for (size_t i = 0; i < GN_COUNTOF(table); i++) {
        if ((uint32_t)table[i].dtype == id) {
            return &table[i];
        }
    }
    return NULL;
}
