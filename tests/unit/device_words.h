/* SPDX-License-Identifier: Apache-2.0
 *
 * device_words.h - what device text without barriers needs to be C: included before it, in place of device.cuh. So a test runs
 * the text that NVRTC compiles and compares bits.
 */
#ifndef RFT_TESTS_DEVICE_WORDS_H
#define RFT_TESTS_DEVICE_WORDS_H

#include "cuda/kernels/cuda_args.h"
#include "emulated_words.h"

#define RFT_DEVICE_CUH

#endif
