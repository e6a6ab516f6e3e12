/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda_pack_f32.c - packed weights of a GPU with elements of 4 bytes. See cuda_pack_test.h.
 */
#define RFT_ELEM_SIZE 4
#include "cuda_pack_test.h"

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
