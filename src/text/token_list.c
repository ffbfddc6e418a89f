#include "text/token_list.h"

#include "base/alloc.h"

void gn_token_list_fini(gn_token_list *list)
{
    if (list != NULL) {
        gn_free(list->ids);
        *list = (gn_token_list){0};
    }
}

gn_status gn_token_list_push(gn_token_list *list, int32_t id)
{
    if (GN_UNLIKELY(list->n == list->cap)) {
        size_t cap = list->cap != 0 ? list->cap + list->cap / 2 : 64;
        int32_t *ids = gn_realloc_array(list->ids, cap, sizeof *ids);
        if (ids == NULL) {
            return gn_alloc_failed();
        }
        list->ids = ids;
        list->cap = cap;
    }
    list->ids[list->n++] = id;
    return GN_OK;
}
