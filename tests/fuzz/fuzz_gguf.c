/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_gguf.c - any bytes as a GGUF file. See ask_model.h.
 */
#include "tests/fuzz/ask_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    open_and_ask(data, size);
    return 0;
}
