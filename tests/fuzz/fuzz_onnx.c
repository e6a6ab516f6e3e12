/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_onnx.c - any bytes as an ONNX file. See ask_model.h.
 */
#include "tests/fuzz/ask_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    open_and_ask(data, size);
    return 0;
}
