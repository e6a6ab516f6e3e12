/* SPDX-License-Identifier: Apache-2.0
 *
 * encode_fit.c - see encode_fit.h.
 *
 * rft__fit_scale is exact. For fixed codes the best d is A / B with A = sum x*level, B = sum level^2, and leaves the error
 * sum x^2 - A^2 / B. As d falls, codes change one at a time at known points, x / (middle of two levels); so a sweep over these
 * points in order, with A and B updated at each, meets every vector of codes that is nearest for some d, and so the best one.
 */
#include "format/encode_fit.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

/* Even levels at half the scale hold all that they hold at the whole one, while no code passes half the range: so a sweep need
 * not begin above that, and at most a quarter of the levels is passed on either side. */
enum { MAX_EVENTS = RFT_FIT_MAX * 18 };

static const float iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

const rft__levels rft__iq4_levels = {16, 0, iq4_values};

#define LEAST 1e-28f /* below it scales are 0: no file keeps them, and reciprocals could overflow */

typedef struct event { /* x[element] takes the next level outward when d falls below `at` */
    float at;
    int element;
} event;

typedef struct sweep { /* over d > 0; sign: of the scale that it stands for */
    const rft__levels *levels;
    const float *x;
    int n;
    float sign;
    double a, b; /* sums of the present codes */
    float (*store)(float);
    double gain; /* the best so far */
    float best;  /* its scale */
    int codes[RFT_FIT_MAX];
} sweep;

/* Adding 1.5 * 2^23 leaves no room for a fraction: round to nearest even, for |u| < 2^22. */
static inline float round_even(float u) { return (u + 12582912.0f) - 12582912.0f; }

static inline float clamp(float u, float low, float high) { return u < low ? low : u > high ? high : u; }

int rft__nearest_code(const rft__levels *l, float u) {
    if (!l->values) {
        return (int)round_even(clamp(u - l->lowest, 0, (float)(l->count - 1)));
    }
    int code = 0;
    for (int i = 0; i + 1 < l->count; i++) {
        code += u > 0.5f * (l->values[i] + l->values[i + 1]);
    }
    return code;
}

static float inverse(float d) { return fabsf(d) >= FLT_MIN ? 1 / d : 0; }

/* Sums of squares in four chains, which do not wait for each other. */
static double sum_squares(const float *e, int n) {
    double sum[4] = {0};
    for (int i = 0; i + 4 <= n; i += 4) {
        for (int lane = 0; lane < 4; lane++) {
            sum[lane] += (double)e[i + lane] * e[i + lane];
        }
    }
    for (int i = n & ~3; i < n; i++) {
        sum[0] += (double)e[i] * e[i];
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static void keep_codes(const float *code, int n, uint8_t *codes) {
    for (int i = 0; codes && i < n; i++) {
        codes[i] = (uint8_t)code[i];
    }
}

double rft__code_scaled(const rft__levels *l, const float *x, int n, float d, uint8_t *codes) {
    const float inv = inverse(d), top = (float)(l->count - 1), lowest = l->lowest;
    float code[RFT_FIT_MAX], error[RFT_FIT_MAX];
    if (l->values) {
        for (int i = 0; i < n; i++) {
            const int c = rft__nearest_code(l, x[i] * inv);
            code[i] = (float)c;
            error[i] = x[i] - d * l->values[c];
        }
    } else {
        for (int i = 0; i < n; i++) {
            code[i] = round_even(clamp(x[i] * inv - lowest, 0, top));
            error[i] = x[i] - d * (code[i] + lowest);
        }
    }
    keep_codes(code, n, codes);
    return sum_squares(error, n);
}

double rft__code_affine(int max, const float *x, int n, float d, float m, uint8_t *codes) {
    const float inv = inverse(d), top = (float)max;
    float code[RFT_FIT_MAX], error[RFT_FIT_MAX];
    for (int i = 0; i < n; i++) {
        code[i] = round_even(clamp((x[i] - m) * inv, 0, top));
        error[i] = x[i] - (d * code[i] + m);
    }
    keep_codes(code, n, codes);
    return sum_squares(error, n);
}

/* ---- one scale ---- */

/* The gain is that of the scale as stored: it leaves sum x^2 - 2 d a + d^2 b. */
static void note_gain(sweep *s) {
    if (!(s->a > 0 && s->a * s->a > s->gain * s->b)) {
        return;
    }
    const float exact = s->sign * (float)(s->a / s->b);
    const double d = s->sign * (s->store ? s->store(exact) : exact), gain = d * (2 * s->a - d * s->b);
    if (gain > s->gain) {
        s->gain = gain;
        s->best = exact;
    }
}

/* The codes that are nearest under d. */
static void set_codes(sweep *s, float d) {
    s->a = s->b = 0;
    for (int i = 0; i < s->n; i++) {
        s->codes[i] = rft__nearest_code(s->levels, s->sign * s->x[i] / d);
        const double level = rft__level(s->levels, s->codes[i]);
        s->a += s->sign * s->x[i] * level;
        s->b += level * level;
    }
}

static float middle(const rft__levels *l, int code) { return 0.5f * (rft__level(l, code) + rft__level(l, code + 1)); }

/* The d at which element i leaves `code` outward; 0: never. */
static float leaves_at(const sweep *s, int i, int code) {
    const float x = s->sign * s->x[i];
    const int lower = x > 0 ? code : code - 1; /* of the two levels between which it steps */
    if (x == 0 || lower < 0 || lower + 1 >= s->levels->count) {
        return 0;
    }
    const float at = x / middle(s->levels, lower);
    return at > 0 && isfinite(at) ? at : 0;
}

enum { BUCKETS = 128 };

/* By falling `at`, from `high` at most to above `low`. 1 / at is spread evenly, so that buckets of it leave little to sort. */
static void sort_events(const event *from, int count, float low, float high, event *to) {
    uint16_t ends[BUCKETS + 1] = {0};
    const float unit = (BUCKETS - 1) / fmaxf(high / low - 1, 1e-6f);
    for (int i = 0; i < count; i++) {
        ends[(int)clamp((high / from[i].at - 1) * unit, 0, BUCKETS - 1) + 1]++;
    }
    for (int b = 1; b <= BUCKETS; b++) {
        ends[b] = (uint16_t)(ends[b] + ends[b - 1]);
    }
    for (int i = 0; i < count; i++) {
        to[ends[(int)clamp((high / from[i].at - 1) * unit, 0, BUCKETS - 1)]++] = from[i];
    }
    for (int i = 1; i < count; i++) {
        const event e = to[i];
        int at = i;
        for (; at > 0 && to[at - 1].at < e.at; at--) {
            to[at] = to[at - 1];
        }
        to[at] = e;
    }
}

static int list_events(const sweep *s, float low, event *sorted) {
    event events[MAX_EVENTS];
    float least = HUGE_VALF, most = 0;
    int count = 0;
    for (int i = 0; i < s->n; i++) {
        const int step = s->sign * s->x[i] > 0 ? 1 : -1;
        int code = s->codes[i];
        for (float at = leaves_at(s, i, code); at > low && count < MAX_EVENTS; at = leaves_at(s, i, code)) {
            events[count++] = (event){at, i};
            least = at < least ? at : least;
            most = at > most ? at : most;
            code += step;
        }
    }
    sort_events(events, count, least, most, sorted);
    return count;
}

static void take_event(sweep *s, int i) {
    const double before = rft__level(s->levels, s->codes[i]);
    const float x = s->sign * s->x[i];
    s->codes[i] += x > 0 ? 1 : -1;
    const double after = rft__level(s->levels, s->codes[i]);
    s->a += x * (after - before);
    s->b += after * after - before * before;
    note_gain(s);
}

typedef struct range {  /* of sign * x */
    float above, below; /* the largest magnitude on either side of 0 */
    double energy;      /* sum x^2 */
} range;

static range range_of(const float *x, int n, float sign) {
    range r = {0, 0, 0};
    for (int i = 0; i < n; i++) {
        const float v = sign * x[i];
        r.above = v > r.above ? v : r.above;
        r.below = -v > r.below ? -v : r.below;
        r.energy += (double)v * v;
    }
    return r;
}

/* No d below this is better than what is known: an outer element alone would miss by more. */
static float lowest_scale(const sweep *s, const range *r) {
    const double gain = s->a > 0 ? s->a * s->a / s->b : 0;
    const double miss = sqrt(fmax(r->energy - fmax(gain, s->gain), 0)) * (1 + 1e-6);
    const double up = (r->above - miss) / rft__level(s->levels, s->levels->count - 1);
    const double down = (r->below - miss) / -rft__level(s->levels, 0);
    return (float)fmax(fmax(up, down), 0);
}

static void sweep_sign(sweep *s, float sign) {
    event events[MAX_EVENTS];
    const range r = range_of(s->x, s->n, sign);
    const float last = rft__level(s->levels, s->levels->count - 1), first = -rft__level(s->levels, 0);
    s->sign = sign;
    const float holds = fmaxf(r.above / last, r.below / first); /* all of x, just so */
    set_codes(s, holds);
    const float lowest = fmaxf((1 - 1e-6f) * lowest_scale(s, &r), 1e-6f * holds);
    if (s->levels->values) {
        set_codes(s, 1e6f * holds);
    } else {
        set_codes(s, (1 + 1e-6f) * fmaxf(r.above / (0.5f * first - 0.5f), r.below / (0.5f * first + 0.5f)));
    }
    note_gain(s);
    const int count = list_events(s, lowest, events);
    for (int i = 0; i < count; i++) {
        take_event(s, events[i].element);
    }
}

float rft__fit_scale(const rft__levels *levels, const float *x, int n, float (*store)(float), int positive) {
    sweep s = {.levels = levels, .x = x, .n = n, .store = store};
    const range r = range_of(x, n, 1);
    if (!(fmaxf(r.above, r.below) >= LEAST)) {
        return 0;
    }
    sweep_sign(&s, 1);
    if (!positive) {
        sweep_sign(&s, -1);
    }
    return s.best;
}

/* ---- a scale and an offset ---- */

typedef struct line {
    int max;
    const float *x;
    int n;
    float (*store)(float);
    int at_most_0;
    float low, high; /* of x */
} line;

static float stored(const line *l, float v) { return l->store ? l->store(v) : v; }

static rft__affine evaluate(const line *l, float d, float m) {
    rft__affine r = {stored(l, d), stored(l, l->at_most_0 && m > 0 ? 0 : m), 0};
    r.d = l->store && r.d == 0 && d > 0 ? 0x1p-24f : r.d; /* the least f16 is nearer to any range than none */
    r.error = rft__code_affine(l->max, l->x, l->n, r.d, r.m, NULL);
    return r;
}

/* The line of least squares through the present codes. */
static rft__affine regress(const line *l, const rft__affine *from) {
    uint8_t codes[RFT_FIT_MAX];
    double q = 0, qq = 0, x = 0, xq = 0;
    rft__code_affine(l->max, l->x, l->n, from->d, from->m, codes);
    for (int i = 0; i < l->n; i++) {
        q += codes[i];
        qq += codes[i] * codes[i];
        x += l->x[i];
        xq += (double)l->x[i] * codes[i];
    }
    const double spread = l->n * qq - q * q;
    double d = spread > 0 ? (l->n * xq - x * q) / spread : from->d;
    if (l->at_most_0 && x - d * q > 0) { /* through the origin */
        return evaluate(l, (float)(qq > 0 ? xq / qq : from->d), 0);
    }
    d = stored(l, (float)d);
    return evaluate(l, (float)d, (float)((x - d * q) / l->n));
}

/* Codes and line in turns until neither helps. */
static rft__affine improve(const line *l, rft__affine at) {
    for (int round = 0; round < 8 && at.error > 0; round++) {
        const rft__affine next = regress(l, &at);
        if (!(next.d > 0) || !(next.error < at.error)) {
            return at;
        }
        at = next;
    }
    return at;
}

enum { STARTS = 3 };

/* Keeps the best few, in order. */
static void offer(rft__affine *starts, rft__affine at) {
    for (int i = 0; i < STARTS; i++) {
        if (at.error < starts[i].error) {
            const rft__affine worse = starts[i];
            starts[i] = at;
            at = worse;
        }
    }
}

static line line_of(int max, const float *x, int n, float (*store)(float), int at_most_0) {
    line l = {max, x, n, store, at_most_0, x[0], x[0]};
    for (int i = 1; i < n; i++) {
        l.low = x[i] < l.low ? x[i] : l.low;
        l.high = x[i] > l.high ? x[i] : l.high;
    }
    l.low = at_most_0 && l.low > 0 ? 0 : l.low;
    return l;
}

rft__affine rft__range_affine(int max, const float *x, int n, float (*store)(float), int at_most_0) {
    const line l = line_of(max, x, n, store, at_most_0);
    return evaluate(&l, l.high > l.low ? (l.high - l.low) / (float)max : 0, l.low);
}

/* Weights that were codes before: their lowest may stand for any code, and the offset is stored short of them. */
static void try_shifts(const line *l, rft__affine *best) {
    for (int steps = (l->max + 1) / 2; steps <= l->max; steps++) {
        const float d = stored(l, (l->high - l->low) / (float)steps);
        for (int shift = 0; shift + steps <= l->max; shift++) {
            const rft__affine at = evaluate(l, d, l->low - (float)shift * d);
            if (at.error < best->error) {
                *best = at;
            }
        }
    }
}

rft__affine rft__fit_affine(int max, const float *x, int n, float (*store)(float), int at_most_0) {
    const line l = line_of(max, x, n, store, at_most_0);
    rft__affine best = rft__range_affine(max, x, n, store, at_most_0);
    const double width = (double)l.high - l.low;
    if (!(width >= LEAST)) {
        return best;
    }
    rft__affine starts[STARTS] = {best, best, best};
    for (int steps = (max + 1) / 2; steps < max; steps++) {
        offer(starts, evaluate(&l, (float)width / (float)steps, l.low));
    }
    for (int cut = 1; cut <= 4; cut++) { /* ends that are clipped, on either side and on both */
        const float d = (float)width / ((float)max + 0.6f * (float)cut), past = 0.6f * (float)cut * d;
        offer(starts, evaluate(&l, d, l.low));
        offer(starts, evaluate(&l, d, l.low + past));
        offer(starts, evaluate(&l, d, l.low + 0.5f * past));
    }
    for (int i = 0; i < STARTS; i++) {
        const rft__affine at = improve(&l, starts[i]);
        best = at.error < best.error ? at : best;
    }
    if (store && best.error < 1e-6 * width * width) {
        try_shifts(&l, &best);
    }
    return best;
}
