# SPDX-License-Identifier: Apache-2.0
#
# Writes OUTPUT: a C file that includes HEADER and defines one text for each of FILES, called by its name with _ for the dot. A
# script, run by the build when one of them changed: cmake -D OUTPUT=... -D HEADER=... -D FILES=... -P embed_text.cmake

set(text "/* Made by cmake/embed_text.cmake. */\n#include \"${HEADER}\"\n")
foreach(file IN LISTS FILES)
    cmake_path(GET file FILENAME name)
    string(REPLACE "." "_" name "${name}")
    file(READ "${file}" bytes HEX)
    string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
    string(REPLACE "'\\x0a'," "'\\x0a',\n" bytes "${bytes}")
    string(APPEND text "\nconst char ${name}[] = {\n${bytes}0};\n")
endforeach()
file(WRITE "${OUTPUT}.new" "${text}")
file(COPY_FILE "${OUTPUT}.new" "${OUTPUT}" ONLY_IF_DIFFERENT)
file(REMOVE "${OUTPUT}.new")
