/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cuda_texts.c - device texts that no product reaches alone, on a GPU: the activations against f64 for all floats, and
 * packing against the host's bytes. Skipped where no GPU is, once the texts have compiled.
 */
#include "jit_fixture.h"

#include "cuda/cuda_pack.h"
#include "cuda/driver.h"

enum { BLOCKS = 1024, THREADS = 256 };

/* The largest errors of the activations over all finite floats, as bits of f32, in the units of fast_math.cuh. */
static const char errors_text[] =
    "#include \"epilogue.cuh\"\n"
    "__device__ double silu(double y) { return y / (1.0 + exp(-y)); }\n"
    "__device__ double gelu(double y) { return 0.5 * y * erfc(-y * 0.70710678118654752); }\n"
    "__device__ double gelu_tanh(double y) { return y / (1.0 + exp(-1.5957691216057308 * (y + 0.044715 * y * y * y))); }\n"
    "__device__ void keep(unsigned *worst, double fast, double exact, double scale) {\n"
    "    const double units = (fabs(fast - exact) - 0x1p-119) / (scale * 0x1p-24);\n"
    "    atomicMax(worst, units > 0 ? __float_as_uint((float)units) : units != units ? 0x7f800000u : 0u);\n"
    "}\n"
    "extern \"C\" __global__ void errors(unsigned *worst) {\n"
    "    const unsigned stride = gridDim.x * blockDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    for (unsigned long long i = first; i < 1ull << 32; i += stride) {\n"
    "        const float y = __uint_as_float((unsigned)i);\n"
    "        if (y - y != 0 || y == 0) continue;\n"
    "        keep(&worst[0], rft__silu(y), silu(y), fabs(silu(y)) + 0x1p-130);\n"
    "        keep(&worst[1], rft__gelu(y), gelu(y), fabs((double)y));\n"
    "        keep(&worst[2], rft__gelu_tanh(y), gelu_tanh(y), fabs((double)y));\n"
    "    }\n"
    "}\n";

static rft__cuda_text texts[128];
static rft__cuda_source source = {texts, 0};
static const rft__driver *driver;
static CUdevice device;
static int arch = 90;
static rft__jit *jit;

static void ok(CUresult result) {
    rft_error err = {.message = ""};
    if (rft__driver_check(result, "a test's call", &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
}

/* ---- the GPU, if there is one ---- */

static int open_gpu(void **state) {
    (void)state;
    rft_error err = {.message = ""};
    memcpy(texts, rft__cuda_embedded.texts, rft__cuda_embedded.count * sizeof *texts);
    texts[rft__cuda_embedded.count] = (rft__cuda_text){.name = "errors.cu", .text = errors_text};
    source.count = rft__cuda_embedded.count + 1;
    jit = make_jit(&source, NULL, (rft__log){.level = RFT_LOG_NONE});
    driver = rft__driver_get(&err);
    if (driver == NULL) {
        print_message("no GPU: %s\n", err.message);
        return 0;
    }
    CUcontext context = NULL;
    int major = 0, minor = 0;
    ok(driver->cuDeviceGet(&device, 0));
    ok(driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    ok(driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
    arch = 10 * major + minor;
    ok(driver->cuDevicePrimaryCtxRetain(&context, device));
    ok(driver->cuCtxPushCurrent_v2(context));
    return 0;
}

static int close_gpu(void **state) {
    (void)state;
    rft__jit_free(jit);
    if (driver != NULL) {
        driver->cuCtxPopCurrent_v2(&(CUcontext){NULL});
        driver->cuDevicePrimaryCtxRelease_v2(device);
    }
    return 0;
}

static CUfunction load(const char *name, const char *entry, const char *config, CUmodule *module) {
    rft__cubin cubin;
    rft_error err = {.message = ""};
    const rft__jit_request request = {name, entry, config, arch};
    need_nvrtc();
    if (rft__jit_get(jit, &request, 1, &cubin, &err) != RFT_OK) {
        fail_msg("%s", err.message);
    }
    CUfunction function = NULL;
    if (driver != NULL) {
        ok(driver->cuModuleLoadData(module, cubin.data));
        ok(driver->cuModuleGetFunction(&function, *module, entry));
    }
    rft__cubin_release(jit, &cubin);
    if (driver == NULL) {
        skip();
    }
    return function;
}

static void launch(CUfunction function, unsigned blocks, void *argument) {
    const CUlaunchConfig config = {
        .gridDimX = blocks, .gridDimY = 1, .gridDimZ = 1, .blockDimX = THREADS, .blockDimY = 1, .blockDimZ = 1};
    ok(driver->cuLaunchKernelEx(&config, function, (void *[]){argument}, NULL));
    ok(driver->cuCtxSynchronize());
}

static CUdeviceptr upload(const void *data, size_t bytes) {
    CUdeviceptr p = 0;
    ok(driver->cuMemAlloc_v2(&p, bytes));
    ok(driver->cuMemcpyHtoD_v2(p, data, bytes));
    return p;
}

/* ---- the tests ---- */

static void activations_keep_their_bounds(void **state) {
    (void)state;
    CUmodule module = NULL;
    const CUfunction f = load("errors.cu", "errors",
                              "#define RFT_Y_TYPE 1\n#define RFT_GLU 0\n#define RFT_BATCHED 0\n"
                              "#define RFT_EPI_COUNT 0\n#define RFT_EPI(OP)\n",
                              &module);
    float worst[3] = {0};
    CUdeviceptr p = upload(worst, sizeof worst);
    launch(f, BLOCKS, &p);
    ok(driver->cuMemcpyDtoH_v2(worst, p, sizeof worst));
    ok(driver->cuMemFree_v2(p));
    ok(driver->cuModuleUnload(module));
    print_message("silu %.2f, gelu %.2f, gelu_tanh %.2f units\n", (double)worst[0], (double)worst[1], (double)worst[2]);
    assert_true(worst[0] > 0.0f && worst[0] <= 8.0f);
    assert_true(worst[1] > 0.0f && worst[1] <= 4.5f);
    assert_true(worst[2] > 0.0f && worst[2] <= 3.5f);
}

static void check_packing(const rft__matrix *w) {
    char config[256];
    rft__text t = {config, sizeof config, 0};
    CUmodule module = NULL;
    rft__cuda_pack_text(w, &t);
    const CUfunction f = load(rft__cuda_pack_family.source, rft__cuda_pack_family.name, config, &module);
    const size_t size = rft__type_size(w->elem), given = (size_t)(w->batch * w->batch_stride) * size;
    size_t bytes = 0;
    assert_int_equal(rft__cuda_packed_bytes(w, &bytes, NULL), RFT_OK);
    unsigned char *from = malloc(given), *expected = malloc(bytes), *data = malloc(bytes);
    assert_true(from != NULL && expected != NULL && data != NULL);
    for (size_t i = 0; i < given; i++) {
        from[i] = (unsigned char)(i * 2654435761u >> 11);
    }
    memset(data, 0xa5, bytes);
    rft__cuda_pack_host(w, from, expected);
    const CUdeviceptr in = upload(from, given), out = upload(data, bytes);
    rft__cuda_pack_job job =
        rft__cuda_pack_job_of(&(rft__cuda_facts){.sms = 4}, w, (const void *)(uintptr_t)in, (void *)(uintptr_t)out);
    launch(f, job.blocks, &job.args);
    ok(driver->cuMemcpyDtoH_v2(data, out, bytes));
    assert_memory_equal(data, expected, bytes);
    ok(driver->cuMemFree_v2(in));
    ok(driver->cuMemFree_v2(out));
    ok(driver->cuModuleUnload(module));
    free(from);
    free(expected);
    free(data);
}

static void packing_gives_the_hosts_bytes(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        const int64_t n = i & 1 ? 1027 : 64, k = i & 1 ? 517 : 128;
        const bool mn = i & 2;
        const rft__matrix w = {.elem = i & 4 ? RFT_F32 : RFT_BF16,
                               .order = mn ? RFT_MN_CONTIGUOUS : RFT_K_CONTIGUOUS,
                               .n = n,
                               .k = k,
                               .batch = 2,
                               .n_stride = mn ? 1 : k + 3,
                               .k_stride = mn ? n + 3 : 1,
                               .batch_stride = (n + 3) * (k + 3)};
        check_packing(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_keep_their_bounds),
        cmocka_unit_test(packing_gives_the_hosts_bytes),
    };
    return cmocka_run_group_tests(tests, open_gpu, close_gpu);
}
