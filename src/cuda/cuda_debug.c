/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_debug.c - debug builds of kernels, from the host's side. See cuda_debug.h.
 * A trap ends the context, and device memory with it, so the record lies in memory of the host.
 */
#include "cuda/cuda_debug.h"

#include "base/env.h"

#include <stdio.h>
#include <string.h>

const char *rft__cuda_dump_name(int dump, char name[16]) {
    snprintf(name, 16, dump == RFT_DUMP_ACC ? "acc" : "part%d", dump - RFT_DUMP_PART(0));
    return dump != 0 ? name : NULL;
}

static int dump_of(const char *text) {
    char name[16];
    int dump = RFT_DUMP_ACC;
    while (dump < RFT_DUMP_PART(RFT_DUMP_PARTS) && strcmp(rft__cuda_dump_name(dump, name), text) != 0) {
        dump++;
    }
    return dump < RFT_DUMP_PART(RFT_DUMP_PARTS) ? dump : 0;
}

rft_status rft__cuda_debug_read(rft__cuda_device *d, rft_error *err) {
    const char *const text = rft__env_text("RFT_KERNEL_DUMP");
    d->debug = rft__env_flag("RFT_KERNEL_DEBUG");
    d->dump = text != NULL ? dump_of(text) : 0;
    if (text != NULL && d->dump == 0) {
        RFT_FAIL(err, RFT_E_ARG, "RFT_KERNEL_DUMP = %s names no intermediate: there are acc and part0 to part%d", text,
                 RFT_DUMP_PARTS - 1);
    }
    if (text != NULL && !d->debug) {
        RFT_FAIL(err, RFT_E_ARG, "RFT_KERNEL_DUMP = %s needs RFT_KERNEL_DEBUG=1", text);
    }
    return RFT_OK;
}

rft_status rft__cuda_debug_open(rft__cuda_device *d, rft_error *err) {
    void *record = NULL;
    if (!d->debug) {
        return RFT_OK;
    }
    RFT_TRY(rft__driver_check(d->driver->cuMemAllocHost_v2(&record, sizeof *d->fault), "allocating a debug record", err));
    d->fault = memset(record, 0, sizeof *d->fault);
    return RFT_OK;
}

void rft__cuda_debug_close(rft__cuda_device *d) {
    rft__cuda_scope scope;
    if (d->fault != NULL && rft__cuda_enter(d, &scope, NULL) == RFT_OK) {
        d->driver->cuMemFreeHost(d->fault);
        rft__cuda_leave(&scope);
    }
}

rft_status rft__cuda_dump_bytes(const rft__cuda_device *d, const rft__problem *p, size_t *bytes, rft_error *err) {
    *bytes = 0;
    if (d->dump == 0) {
        return RFT_OK;
    }
    const bool over = rft__mul_size((size_t)p->batch, (size_t)p->m_max, bytes) ||
                      rft__mul_size(*bytes, (size_t)p->w.n, bytes) || rft__mul_size(*bytes, sizeof(float), bytes);
    if (over || *bytes > SIZE_MAX / 2) {
        RFT_FAIL(err, RFT_E_ARG, "RFT_KERNEL_DUMP: a float for each sum at desc.m_max = %lld overflows", (long long)p->m_max);
    }
    return RFT_OK;
}

void rft__cuda_debug_fill(const rft__cuda_device *d, const rft__cuda_row *row, size_t at, rft__cuda_args *a) {
    void *const dump = d->dump != 0 ? (unsigned char *)a->workspace + at : NULL;
    a->debug = (rft__cuda_debug){.fault = d->fault, .dump = dump, .kernel = (int)(row - rft__cuda_rows)};
}

/* ---- what a kernel left ---- */

static void name_operand(int what, char name[24]) {
    static const char *const names[] = {"x", "w", "y"};
    if (what < RFT_AT_OPERAND) {
        snprintf(name, 24, "%s", names[what]);
    } else {
        snprintf(name, 24, "operand %d", what - RFT_AT_OPERAND);
    }
}

rft_status rft__cuda_check(const rft__cuda_device *d, CUresult result, const char *what, rft_error *err) {
    const volatile rft__cuda_fault *const f = d->fault;
    char operand[24];
    if (result == CUDA_SUCCESS || f == NULL || f->state != RFT_FAULT_COMPLETE) {
        return rft__driver_check(result, what, err);
    }
    name_operand(f->what, operand);
    return rft__error_set(err, RFT_E_DEVICE, result,
                          "%s: thread %d of block %d reached for %d elements of %s at [%d][%lld][%lld], "
                          "outside of %d x %lld x %lld",
                          rft__cuda_rows[f->kernel].name, f->thread, f->block, f->count, operand, f->batch, f->row, f->column,
                          f->batches, f->rows, f->columns);
}
