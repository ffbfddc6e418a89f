/* Growing a gn_token_list; its type is in text/tokenizer.h. */
#ifndef GN_TEXT_TOKEN_LIST_H
#define GN_TEXT_TOKEN_LIST_H

#include "text/tokenizer.h"

/* Append one id. GN_E_NOMEM leaves the list as it was. */
GN_MUST_USE gn_status gn_token_list_push(gn_token_list *list, int32_t id);

#endif
