/* SPDX-License-Identifier: Apache-2.0
 *
 * test_thread_jit.c - one kernel compiler and one cache folder used by several threads from a cold start. Runs under TSan too.
 */
#include "jit_fixture.h"
#include "test_folder.h"

#include <pthread.h>

#define THREADS 4
#define KERNELS 2

typedef struct user {
    rft__jit *jit;
    rft_status status;
    rft__cubin cubins[KERNELS];
} user;

static void *use(void *arg) {
    user *u = arg;
    const rft__jit_request requests[KERNELS] = {tiny_request(80, "#define SCALE 1.0f\n"),
                                                tiny_request(90, "#define SCALE 2.0f\n")};
    u->status = rft__jit_get(u->jit, requests, KERNELS, u->cubins, NULL);
    return NULL;
}

static void threads_get_the_same_code(void **state) {
    (void)state;
    need_nvrtc();
    const rft__log quiet = {.callback = NULL};
    pthread_t threads[THREADS];
    user users[THREADS];
    rft__jit *jit = make_jit(&tiny_source, folder, quiet);
    for (int i = 0; i < THREADS; i++) {
        users[i] = (user){.jit = jit};
        assert_int_equal(pthread_create(&threads[i], NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(users[i].status, RFT_OK);
    }
    for (int k = 0; k < KERNELS; k++) {
        for (int i = 1; i < THREADS; i++) {
            assert_int_equal(users[i].cubins[k].size, users[0].cubins[k].size);
            assert_memory_equal(users[i].cubins[k].data, users[0].cubins[k].data, users[0].cubins[k].size);
            assert_int_equal(users[i].cubins[k].registers, users[0].cubins[k].registers);
            rft__cubin_release(jit, &users[i].cubins[k]);
        }
        rft__cubin_release(jit, &users[0].cubins[k]);
    }
    rft__jit_free(jit);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_get_the_same_code)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
