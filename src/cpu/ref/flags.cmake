# SPDX-License-Identifier: Apache-2.0
set(RFT_ISA_FLAGS -O3 -ffp-contract=off -fno-trapping-math)
