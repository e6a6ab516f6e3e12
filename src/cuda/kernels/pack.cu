/* SPDX-License-Identifier: Apache-2.0
 *
 * pack.cu - packs W on the device: a grid of any size goes over all of it. Launched by cuda_weight.c; see pack.cuh.
 */
#include "pack.cuh"

extern "C" __global__ void __launch_bounds__(RFT_PACK_THREADS) pack(const __grid_constant__ rft__pack_args a) {
#if RFT_W_MN
    __shared__ rft__pack_tile tile;
    const long long tiles = rft__pack_tiles(&a);
    for (long long i = blockIdx.x; i < tiles; i += gridDim.x) {
        const rft__pack_place place = rft__pack_place_of(&a, i);
        rft__pack_tile_load(&a, place, tile, threadIdx.x);
        __syncthreads();
        rft__pack_tile_store(&a, place, tile, threadIdx.x);
        __syncthreads();
    }
#else
    const long long granules = a.batch * a.n * (a.pitch / RFT_PACK_GRANULE), stride = (long long)gridDim.x * RFT_PACK_THREADS;
    for (long long i = (long long)blockIdx.x * RFT_PACK_THREADS + threadIdx.x; i < granules; i += stride) {
        rft__pack_row_granule(&a, i);
    }
#endif
}
