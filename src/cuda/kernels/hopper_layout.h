/* SPDX-License-Identifier: Apache-2.0
 *
 * hopper_layout.h - where things lie on Hopper: bits of wgmma's matrix descriptors, the 128-byte swizzle, which element of a
 * tile an accumulator register holds, the phases of a ring of barriers, the cut of k. Plain C that the C compiler and NVRTC
 * both read: kernels compute with it, tests/unit/test_cuda_hopper.c proves it without a GPU.
 */
#ifndef RFT_CUDA_KERNELS_HOPPER_LAYOUT_H
#define RFT_CUDA_KERNELS_HOPPER_LAYOUT_H

#ifndef RFT_FN
#define RFT_FN static inline
#endif

/* A swizzle atom is 8 rows of 128 bytes. In the shared memory of a TMA box of 128-byte rows the 16-byte piece c of row r
 * lies at piece c ^ (r & 7); every tile starts on a multiple of the atom. */
#define RFT_SWIZZLE_ROW  128
#define RFT_SWIZZLE_ATOM 1024

/* offset: of a byte in the box as if it were not swizzled, r * 128 + column. Its own inverse. */
RFT_FN unsigned rft__swizzle_128(unsigned offset) { return offset ^ ((offset >> 7 & 7u) << 4); }

/* ---- matrix descriptors (PTX ISA, "asynchronous warpgroup level matrix shared memory layout") ----
 * bits 0-13 address, 16-29 leading offset, 32-45 stride offset, all in 16 bytes; 49-51 base offset, 0 as tiles are aligned;
 * 62-63 the swizzle: 0 none, 1 128 bytes, 2 64, 3 32. */
RFT_FN unsigned long long rft__descriptor(unsigned address, unsigned leading_bytes, unsigned stride_bytes, unsigned swizzle) {
    return (unsigned long long)(address >> 4 & 0x3fffu) | (unsigned long long)(leading_bytes >> 4 & 0x3fffu) << 16 |
           (unsigned long long)(stride_bytes >> 4 & 0x3fffu) << 32 | (unsigned long long)swizzle << 62;
}

/* K-major: rows of 128 bytes of k, 8-row groups an atom apart. The leading offset does not count. A step of 32 bytes of k
 * (16 elements of 16 bits, 8 of tf32) inside the row is 2 more in the address field; the hardware swizzles what it adds. */
RFT_FN unsigned long long rft__descriptor_k_major(unsigned address) { return rft__descriptor(address, 16, RFT_SWIZZLE_ATOM, 1); }
#define RFT_DESCRIPTOR_STEP_K 2

/* The descriptor of a place `sixteenths` * 16 bytes on: the address never leaves its field, so one 32-bit addition does. */
RFT_FN unsigned long long rft__descriptor_add(unsigned long long descriptor, unsigned sixteenths) {
    return (descriptor >> 32 << 32) | ((unsigned)descriptor + sixteenths);
}

/* M- or N-major, 16-bit elements: a box holds 64 elements (128 bytes) of that side for each of its k rows, 8 k an atom, so
 * atoms along k are 1024 bytes apart; boxes for the next 64 of that side lie box_bytes (128 * k of the box) further on.
 * A step of 16 k is two atoms. */
RFT_FN unsigned long long rft__descriptor_mn_major(unsigned address, unsigned box_bytes) {
    return rft__descriptor(address, box_bytes, RFT_SWIZZLE_ATOM, 1);
}
#define RFT_DESCRIPTOR_STEP_MN (2 * RFT_SWIZZLE_ATOM >> 4)

/* ---- accumulators of wgmma m64nN: register r of thread t (0..127) of the warpgroup holds row, column ---- */
RFT_FN int rft__wgmma_row(int t, int r) { return t / 32 * 16 + t % 32 / 4 + (r / 2 & 1) * 8; }
RFT_FN int rft__wgmma_column(int t, int r) { return r / 4 * 8 + t % 4 * 2 + (r & 1); }

/* ---- a ring of `stages` buffers, each with a full and an empty barrier ----
 * Use u (0, 1, ...) of the ring takes stage u % stages in round u / stages. A barrier of count 1 flips its phase once a round:
 * a consumer waits for full with the round's parity, a producer for empty with the other, which a fresh barrier passes. */
typedef struct rft__ring {
    int stage;
    unsigned parity; /* of the round */
} rft__ring;

RFT_FN void rft__ring_next(rft__ring *ring, int stages) {
    if (++ring->stage == stages) {
        ring->stage = 0;
        ring->parity ^= 1;
    }
}

/* ---- steps of k for part r of `parts`: [begin, end), in ascending order, sizes differing by one at most ---- */
RFT_FN int rft__part_begin(int steps, int parts, int r) { return steps / parts * r + (r < steps % parts ? r : steps % parts); }

#endif
