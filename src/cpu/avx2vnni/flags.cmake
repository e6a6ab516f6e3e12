# SPDX-License-Identifier: Apache-2.0
set(RFT_ISA_FLAGS -mavx2 -mfma -mf16c)
