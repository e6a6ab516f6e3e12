/* SPDX-License-Identifier: Apache-2.0
 *
 * phase.c - "decode:B", "prefill:BxT", "verify:BxK", "offline:BxT" and "train:BxT" as rft_phase. See rooftile_model.h.
 */
#include "phase.h"

#include "base/alloc.h"
#include "base/error.h"

#include <inttypes.h>
#include <string.h>

rft_status rft__phase_check(const rft_phase *phase, rft_error *err) {
    if (!phase) {
        RFT_FAIL(err, RFT_E_ARG, "phase is NULL");
    }
    if (phase->kind < RFT_PHASE_DECODE || phase->kind > RFT_PHASE_TRAIN) {
        RFT_FAIL(err, RFT_E_ARG, "phase.kind = %d is none of RFT_PHASE_DECODE, _PREFILL, _VERIFY, _OFFLINE and _TRAIN",
                 (int)phase->kind);
    }
    int64_t rows;
    if (phase->batch < 1 || phase->tokens < 1 || rft__mul_overflows(phase->batch, phase->tokens, &rows) || rows > RFT_MAX_ROWS) {
        RFT_FAIL(err, RFT_E_ARG,
                 "phase of %" PRId64 " sequences x %" PRId64 " tokens: both must be >= 1 and their product <= %" PRId64,
                 phase->batch, phase->tokens, RFT_MAX_ROWS);
    }
    if (phase->kind == RFT_PHASE_DECODE && phase->tokens != 1) {
        RFT_FAIL(err, RFT_E_ARG, "phase.tokens = %" PRId64 ": decode makes one token a step", phase->tokens);
    }
    return RFT_OK;
}

/* Digits, a whole number of at most RFT_MAX_ROWS. */
static bool take_count(const char **text, int64_t *out) {
    int64_t value = 0;
    const char *p = *text;
    for (; *p >= '0' && *p <= '9'; p++) {
        value = value * 10 + (*p - '0');
        if (value > RFT_MAX_ROWS) {
            return false;
        }
    }
    const bool any = p != *text;
    *text = p;
    *out = value;
    return any;
}

static bool take_word(const char **text, const char *word) {
    const size_t length = strlen(word);
    const bool match = strncmp(*text, word, length) == 0;
    *text += match ? length : 0;
    return match;
}

static bool parse(const char *text, rft_phase *out) {
    static const struct {
        const char *word;
        rft_phase_kind kind;
    } kinds[] = {{"decode:", RFT_PHASE_DECODE},
                 {"prefill:", RFT_PHASE_PREFILL},
                 {"verify:", RFT_PHASE_VERIFY},
                 {"offline:", RFT_PHASE_OFFLINE},
                 {"train:", RFT_PHASE_TRAIN}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (take_word(&text, kinds[i].word)) {
            *out = (rft_phase){kinds[i].kind, 0, 1};
            return take_count(&text, &out->batch) &&
                   (out->kind == RFT_PHASE_DECODE || (take_word(&text, "x") && take_count(&text, &out->tokens))) && *text == 0;
        }
    }
    return false;
}

rft_status rft_phase_parse(const char *text, rft_phase *out, rft_error *err) {
    if (!text || !out) {
        RFT_FAIL(err, RFT_E_ARG, "%s is NULL", text ? "out" : "text");
    }
    rft_phase phase;
    if (!parse(text, &phase)) {
        RFT_FAIL(err, RFT_E_ARG,
                 "phase = '%.60s' is none of decode:B, prefill:BxT, verify:BxK, offline:BxT and train:BxT with whole numbers "
                 "from 1 to %" PRId64, text, RFT_MAX_ROWS);
    }
    RFT_TRY(rft__phase_check(&phase, err));
    *out = phase;
    return RFT_OK;
}
