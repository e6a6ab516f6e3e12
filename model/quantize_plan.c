/* SPDX-License-Identifier: Apache-2.0
 *
 * quantize_plan.c - the rule of what is quantised: the weights of the linear layers, and nothing else. See quantize_plan.h.
 */
#include "quantize_plan.h"

#include "base/error.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_plain(rft_type type) { return type == RFT_F32 || type == RFT_F16 || type == RFT_BF16; }

static bool from_checkpoint(const rft__planner *p) { return p->model->format == RFT_MODEL_SAFETENSORS; }

/* ---- which ---- */

static void mark_product(const rft_model *m, const rft__naming *naming, const rft__product *p, bool *linear) {
    const char *name = naming->gguf ? p->gguf : p->hf;
    for (int64_t block = 0; name && block < m->hparams.layers; block++) {
        const int64_t times = strchr(name, '*') ? m->hparams.experts : 1;
        for (int64_t expert = 0; expert < times; expert++) {
            const int64_t at = rft__layer_find(m->tensors, naming, &m->hparams, p, block, expert, false);
            if (at >= 0) {
                linear[at] = true;
            }
        }
    }
}

/* Routers stay as they are: they are small, and a wrong choice is no small error. */
static void mark_linear(const rft_model *m, bool *linear) {
    const rft__arch *arch = m->hparams.arch;
    const rft__naming naming = rft__naming_find(m->tensors, arch, m->format == RFT_MODEL_GGUF);
    const rft__product *p;
    for (size_t i = 0; (p = rft__arch_product(arch, i)) != NULL; i++) {
        if (p->n != RFT_EXT_EXPERTS && p->n != RFT_EXT_SHARED_ONE) {
            mark_product(m, &naming, p, linear);
        }
    }
}

bool rft__quantize_keeps(const rft_quantize_options *o, const char *name) {
    for (uint32_t i = 0; i < o->n_keep; i++) {
        if (fnmatch(o->keep[i], name, 0) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- what it becomes ---- */

/* As it is: the same bytes, but vectors of a checkpoint as f32, and what GGUF has no type for as bf16. */
static void keep(const rft__planner *p, const char *why, rft__planned *out) {
    const rft__format *f = out->source->format;
    rft_type to = f->type;
    if (from_checkpoint(p) && out->source->n_dims < 2 && is_plain(f->type)) {
        to = RFT_F32;
    } else if (f->gguf < 0 || out->source->import) {
        to = RFT_BF16;
    }
    out->to = rft__format_find(to);
    out->encoder = to == f->type ? NULL : rft__encoder_find(to);
    snprintf(out->why, sizeof out->why, "%s", why);
}

static void convert(const rft__planner *p, rft_type to, rft__planned *out) {
    const rft__encoder *e = rft__encoder_find(to);
    const rft__format *f = rft__format_find(to);
    const int64_t k = out->source->dims[0];
    if (k % f->block_elements != 0 && e->fallback) {
        snprintf(out->why, sizeof out->why, "k = %" PRId64 " is not a multiple of %" PRIu32, k, f->block_elements);
        e = rft__encoder_find(e->fallback);
        f = rft__format_find(e->type);
    }
    if (k % f->block_elements != 0) {
        char why[96];
        snprintf(why, sizeof why, "k = %" PRId64 " is not a multiple of %" PRIu32, k, f->block_elements);
        keep(p, why, out);
        return;
    }
    out->to = f;
    out->encoder = f == out->source->format ? NULL : e;
}

static bool has_decoder(const rft__tensor *t) { return t->import || t->format->decode_blocks; }

rft_status rft__quantize_check_source(const rft_quantize_options *o, const rft__tensor *t, rft_error *err) {
    const char *stored = t->import ? t->import->text : t->format->name;
    if (!has_decoder(t)) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "tensor '%.99s' is %s, which has no decoder", t->name, stored);
    }
    if (!is_plain(t->format->type) && t->format->type != o->to && !(o->flags & RFT_QUANTIZE_AGAIN)) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED,
                 "tensor '%.99s' is %s already: a second error adds to the first, which RFT_QUANTIZE_AGAIN (--requantize) allows",
                 t->name, stored);
    }
    return RFT_OK;
}

static rft_status decide(const rft__planner *p, rft__planned *out) {
    const bool embedding = strcmp(out->name, "token_embd.weight") == 0;
    const bool wanted = p->linear[out->index] || (embedding && (p->o->flags & RFT_QUANTIZE_EMBEDDINGS) != 0);
    if (!wanted) {
        keep(p, embedding ? "an embedding" : out->source->n_dims < 2 ? "a vector" : "not the weight of a linear layer", out);
    } else if (rft__quantize_keeps(p->o, out->name)) {
        keep(p, "a pattern keeps it", out);
    } else {
        RFT_TRY(rft__quantize_check_source(p->o, out->source, p->err));
        convert(p, p->o->to, out);
    }
    if (out->encoder && !has_decoder(out->source)) {
        RFT_FAIL(p->err, RFT_E_UNSUPPORTED, "tensor '%.99s' is %s, which neither GGUF nor a decoder knows", out->source->name,
                 out->source->format->name);
    }
    return rft__format_bytes(out->to->type, out->source->rows, out->source->dims[0], &out->bytes, p->err);
}

/* ---- all ---- */

/* A tied head that is stored all the same, and rotary frequencies that follow from the sizes. */
static bool is_left_out(const rft__planner *p, const char *name) {
    return (p->model->hparams.tied && strcmp(name, "lm_head.weight") == 0) || strstr(name, ".rotary_emb.inv_freq") != NULL;
}

static rft_status plan_tensor(const rft__planner *p, int64_t index, rft__quantize_plan *out) {
    const rft__tensor *t = &p->model->tensors->list[index];
    rft__planned *planned = &out->list[out->count];
    *planned = (rft__planned){.source = t, .index = index};
    if (!from_checkpoint(p)) {
        snprintf(planned->name, sizeof planned->name, "%s", t->name);
    } else if (is_left_out(p, t->name)) {
        return RFT_OK;
    } else if (!rft__hf_gguf_name(t->name, planned->name)) {
        RFT_FAIL(p->err, RFT_E_UNSUPPORTED, "tensor '%.99s' has no place in a GGUF file of %s", t->name,
                 p->model->hparams.arch->gguf);
    } else if (t->rows == 0 || t->dims[0] == 0) {
        RFT_FAIL(p->err, RFT_E_UNSUPPORTED, "tensor '%.99s' is empty, which a GGUF file cannot hold", t->name);
    } else {
        planned->heads = rft__hf_gguf_heads(&p->model->hparams, planned->name);
    }
    out->count++;
    return decide(p, planned);
}

static void add_freqs(rft__quantize_plan *out) {
    if (out->n_freqs > 0) {
        rft__planned *planned = &out->list[out->count++];
        *planned = (rft__planned){.index = -1, .name = "rope_freqs.weight", .to = rft__format_find(RFT_F32), .why = "a vector"};
        planned->bytes = out->n_freqs * (int64_t)sizeof(float);
    }
}

static rft_status place(rft__quantize_plan *plan, rft_error *err) {
    int64_t at = 0;
    for (size_t i = 0; i < plan->count; i++) {
        plan->list[i].offset = (uint64_t)at;
        if (rft__add_overflows(at, plan->list[i].bytes, &at) || at > INT64_MAX / 2) {
            RFT_FAIL(err, RFT_E_ARG, "the tensors of the new file take more than 2^62 bytes");
        }
        at = rft__round_up(at, (int64_t)plan->alignment);
    }
    return RFT_OK;
}

static rft_status fill(const rft__planner *p, rft__quantize_plan *out) {
    int64_t alignment = 32;
    if (from_checkpoint(p)) {
        RFT_TRY(rft__hf_rope_freqs(p->model, out->freqs, &out->n_freqs, p->err));
    } else {
        RFT_TRY(rft__gguf_integer(&p->model->gguf, "general.alignment", false, 8, UINT32_MAX, &alignment, p->err));
    }
    out->alignment = (uint64_t)alignment;
    for (size_t i = 0; i < p->model->tensors->count; i++) {
        RFT_TRY(plan_tensor(p, (int64_t)i, out));
    }
    add_freqs(out);
    return place(out, p->err);
}

rft_status rft__quantize_plan_make(const rft_model *m, const rft_quantize_options *o, rft__quantize_plan *out, rft_error *err) {
    return rft__quantize_plan_build(m, o, fill, out, err);
}

rft_status rft__quantize_plan_build(const rft_model *m, const rft_quantize_options *o,
                                    rft_status (*fill_plan)(const rft__planner *p, rft__quantize_plan *out),
                                    rft__quantize_plan *out, rft_error *err) {
    const rft__allocator *a = &m->allocator;
    if (rft__hparams_unknown(&m->hparams)) {
        return rft__arch_refuse(m->hparams.prefix, "nor which of its matrices are linear layers", err);
    }
    if (m->format == RFT_MODEL_SAFETENSORS && !m->hparams.arch->convertible) {
        RFT_FAIL(err, RFT_E_UNSUPPORTED, "checkpoints of %s cannot be quantised yet: their names in the new file are not known",
                 m->hparams.arch->name);
    }
    const size_t count = m->tensors->count, room = count + 1; /* rotary frequencies may come to the tensors */
    const rft__planner p = {m, o, rft__alloc(a, count, sizeof(void *)), err};
    *out = (rft__quantize_plan){.list = rft__alloc(a, room * sizeof *out->list, sizeof(void *)), .room = room, .alignment = 1};
    rft_status status = p.linear && out->list ? RFT_OK : rft__error_set(err, RFT_E_NOMEM, 0, "no memory for %zu tensors", count);
    if (status == RFT_OK) {
        mark_linear(m, p.linear);
        status = fill_plan(&p, out);
    }
    rft__release(a, p.linear, count);
    if (status != RFT_OK) {
        rft__quantize_plan_free(a, out);
    }
    return status;
}

void rft__quantize_plan_free(const rft__allocator *a, rft__quantize_plan *plan) {
    rft__release(a, plan->list, plan->room * sizeof *plan->list);
    rft__release(a, plan->scales, plan->scale_bytes);
    plan->list = NULL;
    plan->scales = NULL;
}
