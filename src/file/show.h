/* Names that come from a file, made fit for a message: short, one line, valid UTF-8. */
#ifndef GN_FILE_SHOW_H
#define GN_FILE_SHOW_H

#include <stdbool.h>
#include <stddef.h>

#define GN_FILE_SHOW_BYTES 112

typedef struct gn_file_shown {
    char text[GN_FILE_SHOW_BYTES];
} gn_file_shown;

/* n bytes of s with control characters, quotes, backslashes and bytes that are no UTF-8 escaped; a
 * longer text is cut and ends in "...". */
gn_file_shown gn_file_show(const char *s, size_t n);

/* May s name a tensor or a key? 1 .. max bytes of UTF-8, no control characters, and no ".." between
 * slashes or backslashes, since tools turn names into paths. NULL if so, else what is wrong. */
const char *gn_file_name_fault(const char *s, size_t n, size_t max);

#endif
