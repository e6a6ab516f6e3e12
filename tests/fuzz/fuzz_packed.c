/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_packed.c - any bytes as the description of a weight of any element type with its scales, and then as changes to the packed
 * storage, under a checksum that is right. What opens is unpacked and run; a bad description or storage is refused with a reason.
 */
#include "fuzz_library.h"

#include "api/weight_header.h"
#include "base/hash.h"

enum { MOST = 1 << 16 /* elements of a weight that is packed */, ROWS = 3, ALIGN = 64 };

static const rft_type elements[] = {RFT_F32,  RFT_BF16, RFT_F16,  RFT_I8,  RFT_U8,  RFT_I4,     RFT_U4,
                                    RFT_E4M3, RFT_E5M2, RFT_E2M1, RFT_NF4, RFT_FP4, (rft_type)0 /* one of GGUF's */};
static const rft_type scales[] = {RFT_F32, RFT_F16, RFT_BF16, RFT_E8M0, RFT_E4M3};

static void draw(input *in, rft_weight_desc *d) {
    static const int64_t groups[] = {0, 8, 32, 64, 128, 256, 40};
    *d = rft_weight_desc_init();
    d->elem = elements[take(in) % (sizeof elements / sizeof *elements)];
    d->elem = d->elem != 0 ? d->elem : (rft_type)(256 + take(in) % 42);
    d->n = take(in) % 70;
    d->k = take(in) % 80 * 8;
    d->batch = take(in) % 3;
    d->flags = take(in) % 64 & ~RFT_WEIGHT_VIEW;
    if (d->elem >= RFT_E4M3 && d->elem < (rft_type)256) {
        d->scale = scales[take(in) % 5];
        d->group_k = groups[take(in) % 7];
        d->group_n = take(in) % 4;
        d->zero = take(in) % 2 ? (d->elem == RFT_I8 || d->elem == RFT_I4 ? RFT_I8 : RFT_U8) : (rft_type)0;
    }
    patch(in, d, sizeof *d);
    d->struct_size = sizeof *d;
}

/* Bytes of `count` elements of a type; 0: none, or too many. */
static size_t bytes_of(rft_type type, int64_t count) { return count > 0 && count <= MOST ? rft_type_bytes(type, count) : 0; }

static void *made(rft_type type, int64_t count, uint64_t seed) {
    const size_t bytes = bytes_of(type, count);
    void *const p = malloc(bytes > 0 ? bytes : 1);
    require(p != NULL && (bytes == 0 || rft_fill_random(type, p, count, seed, NULL) == RFT_OK));
    return p;
}

static int64_t along(int64_t extent, int64_t group) {
    return group > 0 && group < extent ? (extent - 1) / group + 1 : extent > 0;
}

static int32_t *made_index(const rft_weight_desc *d, int64_t batch) {
    int32_t *const index = malloc((size_t)(batch * d->k + 1) * sizeof *index);
    require(index != NULL);
    for (int64_t i = 0; i < batch * d->k; i++) {
        index[i] = d->group_k > 0 ? (int32_t)((d->k - 1 - i % d->k) / d->group_k) : 0;
    }
    return index;
}

/* NULL: refused, or too large to be packed here. */
static unsigned char *packed(const rft_weight_desc *d, size_t *bytes) {
    rft_error err = {0};
    const rft_status status = judge(rft_weight_bytes(context(), d, bytes, &err), &err);
    const int64_t batch = d->batch > 0 ? d->batch : 1, row = (int)d->elem >= 256 ? d->k : (d->k + 1) / 2 * 2;
    const double widest = (double)(row > d->n ? row : d->n) * (double)batch; /* where n or k is 0 */
    if (status != RFT_OK || *bytes > (4u << 20) || widest > MOST || (double)row * (double)d->n * (double)batch > MOST ||
        d->ld != 0 || d->batch_stride != 0 || d->order != RFT_K_CONTIGUOUS || (d->flags & RFT_WEIGHT_VIEW) != 0) {
        return NULL;
    }
    const int64_t count = d->scale != 0 ? batch * along(d->n, d->group_n) * along(d->k, d->group_k) : 0;
    rft_weight_src src = rft_weight_src_init();
    void *const q = made(d->elem, row * d->n * batch, 1), *const scale = d->scale != 0 ? made(d->scale, count, 2) : NULL;
    void *const zero = d->zero != 0 ? made(d->zero, count, 3) : NULL;
    float *const global = made(RFT_F32, batch, 4);
    int32_t *const index = d->flags & RFT_WEIGHT_G_IDX ? made_index(d, batch) : NULL;
    unsigned char *storage = aligned_alloc(ALIGN, (*bytes + ALIGN - 1) / ALIGN * ALIGN);
    rft_weight *weight = NULL;
    src.q = q;
    src.scale = scale;
    src.zero = zero;
    src.global_scale = d->flags & (RFT_WEIGHT_GLOBAL_TIMES | RFT_WEIGHT_GLOBAL_OVER) ? global : NULL;
    src.g_idx = index;
    if (rft_weight_pack(context(), d, &src, storage, NULL, &weight, &err) != RFT_OK) {
        require(err.message[0] != '\0');
        free(storage);
        storage = NULL;
    }
    rft_weight_free(weight);
    free(q), free(scale), free(zero), free(global), free(index);
    return storage;
}

/* Changes a few bytes of the header or behind it; the checksum is that of the header as it is then. */
static void spoil(input *in, unsigned char *storage, size_t bytes) {
    rft__weight_header h;
    memcpy(&h, storage, sizeof h);
    if (take(in) % 2) {
        patch(in, &h, sizeof h);
    }
    h.checksum = rft__hash(RFT_HASH_SEED, &h, offsetof(rft__weight_header, checksum));
    memcpy(storage, &h, sizeof h);
    for (unsigned count = take(in) % 8; count > 0 && bytes > sizeof h; count--) {
        storage[sizeof h + take_word(in) % (bytes - sizeof h)] = (unsigned char)take(in);
    }
}

static void run(const rft_weight_desc *d, const rft_weight *weight) {
    static const rft_compute computes[] = {RFT_COMPUTE_AUTO, RFT_COMPUTE_I8};
    rft_linear_desc l = rft_linear_desc_init();
    l.x = l.y = RFT_F32;
    l.w = *d;
    l.batch = d->batch;
    l.m_max = ROWS;
    for (int c = 0; c < 2; c++) {
        rft_plan *plan = NULL;
        rft_plan_info info = rft_plan_info_init();
        l.compute = computes[c];
        const int64_t batch = d->batch > 0 ? d->batch : 1;
        if ((double)batch * (double)(d->n > d->k ? d->n : d->k) * ROWS > MOST ||
            rft_plan_create(context(), &l, &plan, NULL) != RFT_OK) {
            continue;
        }
        float *const x = made(RFT_F32, batch * ROWS * d->k, 5), *const y = malloc((size_t)(batch * ROWS * d->n) * sizeof *y + 1);
        require(y != NULL && rft_plan_get_info(plan, ROWS, &info) == RFT_OK);
        rft_linear_args a = rft_linear_args_init();
        a.m = ROWS;
        a.x = x;
        a.y = y;
        a.weight = weight;
        a.workspace_bytes = info.workspace;
        a.workspace = aligned_alloc(ALIGN, (info.workspace + ALIGN) / ALIGN * ALIGN);
        rft_linear_run(plan, &a, NULL); /* a weight of another shape is refused */
        free(a.workspace), free(x), free(y);
        rft_plan_free(plan);
    }
}

static void open_spoilt(const rft_weight_desc *d, unsigned char *storage, size_t bytes) {
    rft_weight *weight = NULL;
    rft_error err = {0};
    if (judge(rft_weight_open(context(), storage, bytes, &weight, &err), &err) != RFT_OK) {
        return;
    }
    rft__weight_header h;
    memcpy(&h, storage, sizeof h);
    const double elements_all = (double)h.n * (double)h.k * (double)h.batch;
    if (elements_all <= 4.0 * MOST) {
        float *const w = malloc((size_t)elements_all * sizeof *w + 1);
        require(w != NULL && rft_weight_unpack(weight, w, 0, NULL) == RFT_OK);
        free(w);
    }
    run(d, weight);
    rft_weight_free(weight);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size};
    rft_weight_desc d;
    size_t bytes = 0;
    draw(&in, &d);
    unsigned char *const storage = packed(&d, &bytes);
    if (storage != NULL) {
        /* In memory of just its size. */
        unsigned char *const exact = aligned_alloc(ALIGN, bytes + (ALIGN - bytes % ALIGN) % ALIGN);
        memcpy(exact, storage, bytes);
        spoil(&in, exact, bytes);
        open_spoilt(&d, exact, bytes);
        free(exact);
    }
    free(storage);
    return 0;
}
