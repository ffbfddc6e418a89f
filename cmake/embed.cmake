# A file as a C array: cmake -DIN=FILE -DOUT=FILE.c -DNAME=SYMBOL -P embed.cmake
file(READ ${IN} bytes HEX)
string(LENGTH "${bytes}" n_digits)
math(EXPR n_bytes "${n_digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "((0x..,){16})" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "#include <stddef.h>\n
extern const unsigned char ${NAME}[];\nextern const size_t ${NAME}_len;\n
const unsigned char ${NAME}[] = {\n${bytes}0};\nconst size_t ${NAME}_len = ${n_bytes};\n")
