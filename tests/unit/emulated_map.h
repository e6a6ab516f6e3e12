/* SPDX-License-Identifier: Apache-2.0
 *
 * emulated_map.h - a tensor map as cuda_emulator_sm90.h reads it: what rft__cuda_map_spec says, and whether loads through it may
 * come before the wait for the kernel before. A rft__cuda_map's first word is its address.
 */
#ifndef RFT_TESTS_EMULATED_MAP_H
#define RFT_TESTS_EMULATED_MAP_H

typedef struct emulated_map {
    const void *address;
    int rank, early;
    unsigned size, box[3];
    unsigned long long dim[3], stride[3];
} emulated_map;

#endif
