# SPDX-License-Identifier: Apache-2.0
#
# Writes OUTPUT: a C file that defines rft__cuda_embedded (src/cuda/cuda_source.h) with the texts of FILES, a list of paths
# below SOURCE_DIR. A script, run by the build when one of them changed: cmake -D OUTPUT=... -P embed.cmake

set(arrays "")
set(rows "")
set(index 0)
foreach(file IN LISTS FILES)
    string(REGEX REPLACE "^cuda/kernels/" "" name "${file}")
    file(READ "${SOURCE_DIR}/${file}" bytes HEX)
    file(SHA256 "${SOURCE_DIR}/${file}" digest)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(REPLACE "0x0a," "0x0a,\n" bytes "${bytes}")
    string(APPEND arrays "static const unsigned char text_${index}[] = { /* ${name} */\n${bytes}0};\n\n")
    string(APPEND rows "    {\"${name}\", (const char *)text_${index}, \"${digest}\"},\n")
    math(EXPR index "${index} + 1")
endforeach()

file(WRITE "${OUTPUT}.new" "/* Made by cmake/embed.cmake. */
#include \"cuda/cuda_source.h\"

${arrays}static const rft__cuda_text texts[] = {\n${rows}};

const rft__cuda_source rft__cuda_embedded = {texts, sizeof texts / sizeof texts[0]};
")
file(COPY_FILE "${OUTPUT}.new" "${OUTPUT}" ONLY_IF_DIFFERENT)
file(REMOVE "${OUTPUT}.new")
