/* Classes of code points that tokenizers split by. */
#ifndef GN_TEXT_UCHAR_H
#define GN_TEXT_UCHAR_H

#include <stdbool.h>
#include <stdint.h>

bool gn_uchar_is_space(uint32_t cp);           /* Unicode's White_Space */
bool gn_uchar_is_numeric(uint32_t cp);         /* Nd, Nl, No */
bool gn_uchar_is_digit(uint32_t cp);           /* Nd */
bool gn_uchar_is_punct(uint32_t cp);           /* ASCII punctuation and P* */
bool gn_uchar_is_word(uint32_t cp);            /* letter, mark, decimal digit, connector */
bool gn_uchar_is_mark_nonspacing(uint32_t cp); /* Mn */
bool gn_uchar_is_control(uint32_t cp); /* Cc, Cf, Co but tab, newline, carriage return (BERT) */
bool gn_uchar_is_cjk(uint32_t cp);     /* the ideographs that BERT sets apart */

#endif
