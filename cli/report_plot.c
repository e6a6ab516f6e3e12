/* SPDX-License-Identifier: Apache-2.0
 *
 * report_plot.c - the roofline as SVG: both axes logarithmic, the memory's slopes, the ceilings of arithmetic, each layer of each
 * phase a circle whose area is its share of the phase's time. Called by report_page.c.
 * Invariant: colours and fonts are the style sheet's; coordinates are finite.
 */
#include "html.h"
#include "report_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 960, HEIGHT = 520, LEFT = 66, RIGHT = 158, TOP = 16, BOTTOM = 50, LINE = 15, BOXES = 2048, LABEL_CHARS = 26 };
#define CHAR 6.9 /* px of a label's character */

typedef struct box {
    double x0, y0, x1, y1;
} box;

typedef struct ceiling { /* of one or more types */
    char name[48];
    double gflops;
    bool used; /* by a row */
} ceiling;

typedef struct point {
    const model_row *row;
    int64_t index;
    double x, y, roof, radius, share; /* roof: y of the bound */
    bool labelled;
} point;

typedef struct plot {
    FILE *f;
    const model_report *reports;
    int n;
    const rft_machine *m;
    uint32_t threads;
    double x0, x1, y0, y1; /* log10 of FLOP/byte and of GFLOP/s */
    ceiling ceilings[RFT_MACHINE_PEAKS];
    int n_ceiling;
    box taken[BOXES]; /* by roofs, points and labels */
    int n_taken;
} plot;

static double px(const plot *p, double x) { return LEFT + (log10(x) - p->x0) / (p->x1 - p->x0) * (WIDTH - LEFT - RIGHT); }
static double py(const plot *p, double y) {
    return HEIGHT - BOTTOM - (log10(y) - p->y0) / (p->y1 - p->y0) * (HEIGHT - TOP - BOTTOM);
}

static double gflops_of(const model_row *row) {
    double us = report_time(row);
    return us > 0 ? 1e-3 * row->bench.flops / us : 0;
}

static bool drawn(const model_row *row) { return row->bench.intensity > 0 && gflops_of(row) > 0; }

bool report_has_plot(const model_report *reports, int n) {
    for (int i = 0; i < n; i++)
        for (int64_t j = 0; reports[i].machine && j < reports[i].n; j++)
            if (drawn(&reports[i].rows[j]))
                return true;
    return false;
}

static double memory_gbps(const plot *p, uint32_t level) {
    return rft_machine_roof(p->m, p->m->levels[level].read_gbps, p->threads);
}
static double dram_gbps(const plot *p) { return memory_gbps(p, p->m->n_levels - 1); }

/* ---- the ceilings of arithmetic, and what of the axes is shown ---- */

static void add_ceiling(plot *p, const char *type, double gflops) {
    for (int i = 0; i < p->n_ceiling; i++) {
        ceiling *c = &p->ceilings[i];
        if (strcmp(c->name, type) == 0) {
            c->gflops = fmax(c->gflops, gflops);
            return;
        }
    }
    ceiling *fresh = &p->ceilings[p->n_ceiling++];
    snprintf(fresh->name, sizeof fresh->name, "%.15s", type);
    fresh->gflops = gflops;
}

static int by_gflops(const void *a, const void *b) {
    double x = ((const ceiling *)a)->gflops, y = ((const ceiling *)b)->gflops;
    return (x < y) - (x > y);
}

/* Types that multiply as fast share a line. */
static void join_ceilings(plot *p) {
    int n = 0;
    qsort(p->ceilings, (size_t)p->n_ceiling, sizeof *p->ceilings, by_gflops);
    for (int i = 0; i < p->n_ceiling; i++) {
        ceiling *last = &p->ceilings[n ? n - 1 : 0], c = p->ceilings[i];
        size_t length = strlen(last->name);
        if (n && c.gflops > 0.95 * last->gflops && length + strlen(c.name) + 3 < sizeof last->name)
            snprintf(last->name + length, sizeof last->name - length, ", %.15s", c.name);
        else if (c.gflops > 0)
            p->ceilings[n++] = c;
    }
    p->n_ceiling = n;
}

static void mark_used(plot *p, const model_report *r, const model_row *row) {
    rft_linear_desc desc = model_row_desc(row);
    rft_bound b;
    if (!report_bound(r, &desc, row->layer.m, &b) || b.compute_seconds <= 0)
        return;
    double peak = 1e-9 * row->bench.flops / b.compute_seconds;
    for (int i = 0; i < p->n_ceiling; i++) {
        double ratio = peak / p->ceilings[i].gflops;
        p->ceilings[i].used = p->ceilings[i].used || (ratio > 0.94 && ratio < 1.06);
    }
}

static void find_ceilings(plot *p) {
    for (uint32_t i = 0; i < p->m->n_peaks; i++) {
        const rft_machine_peak *peak = &p->m->peaks[i];
        const char *type = strrchr(peak->op, '_');
        add_ceiling(p, type ? type + 1 : peak->op, rft_machine_roof(p->m, peak->gflops, p->threads));
    }
    join_ceilings(p);
    for (int i = 0; i < p->n; i++)
        for (int64_t j = 0; j < p->reports[i].n; j++)
            mark_used(p, &p->reports[i], &p->reports[i].rows[j]);
}

/* The nearest 1, 2 or 5 times a power of ten, outwards. */
static double outward(double v, bool up) {
    static const double steps[] = {1, 2, 5, 10};
    double decade = pow(10, floor(log10(v)));
    for (int i = 0; i < 4; i++) {
        int at = up ? i : 3 - i;
        if (up ? steps[at] * decade >= v * 0.999 : steps[at] * decade <= v * 1.001)
            return log10(steps[at] * decade);
    }
    return log10(v);
}

static void find_range(plot *p) {
    double least_x = INFINITY, most_x = 0, least_y = INFINITY, most_y = 0;
    for (int i = 0; i < p->n; i++)
        for (int64_t j = 0; j < p->reports[i].n; j++) {
            const model_row *row = &p->reports[i].rows[j];
            if (!drawn(row))
                continue;
            least_x = fmin(least_x, row->bench.intensity);
            most_x = fmax(most_x, row->bench.intensity);
            least_y = fmin(least_y, gflops_of(row));
            most_y = fmax(most_y, gflops_of(row));
        }
    for (int i = 0; i < p->n_ceiling; i++)
        most_y = fmax(most_y, p->ceilings[i].gflops);
    if (p->n_ceiling && dram_gbps(p) > 0)
        most_x = fmax(most_x, 2 * p->ceilings[0].gflops / dram_gbps(p));
    p->x0 = outward(least_x / 2, false);
    p->x1 = outward(most_x * 1.5, true);
    p->y0 = outward(least_y / 2, false);
    p->y1 = outward(most_y * 1.3, true);
}

/* ---- room for labels ---- */

static void take(plot *p, box b) {
    if (p->n_taken < BOXES)
        p->taken[p->n_taken++] = b;
}

static bool overlaps(const box *a, const box *b) { return a->x0 < b->x1 && b->x0 < a->x1 && a->y0 < b->y1 && b->y0 < a->y1; }

static bool untaken(const plot *p, const box *b) {
    for (int i = 0; i < p->n_taken; i++)
        if (overlaps(b, &p->taken[i]))
            return false;
    return true;
}

/* A line's way in boxes, between two distances from (x, y). */
static box step_box(double x, double y, double angle, double t, double half) {
    double at_x = x + t * cos(angle), at_y = y + t * sin(angle);
    return (box){at_x - half, at_y - half, at_x + half, at_y + half};
}

static void take_line(plot *p, double x, double y, double angle, double from, double to, double half) {
    for (double t = from; t < to; t += 2 * half)
        take(p, step_box(x, y, angle, t, half));
}

static bool line_untaken(const plot *p, double x, double y, double angle, double from, double to, double half) {
    for (double t = from; t < to; t += half) {
        box b = step_box(x, y, angle, t, half);
        if (!untaken(p, &b))
            return false;
    }
    return true;
}

/* ---- points, largest first ---- */

static int by_share(const void *a, const void *b) {
    double x = ((const point *)a)->share, y = ((const point *)b)->share;
    return (x < y) - (x > y);
}

static int find_points(plot *p, const model_report *r, point *points) {
    int n = 0;
    double total = report_total(r);
    for (int64_t i = 0; i < r->n; i++) {
        const model_row *row = &r->rows[i];
        if (!drawn(row))
            continue;
        point *q = &points[n++];
        *q = (point){.row = row, .index = i, .x = px(p, row->bench.intensity), .y = py(p, gflops_of(row))};
        q->share = total > 0 ? row->layer.runs * report_time(row) / total : 0;
        q->radius = 3.5 + 13 * sqrt(q->share);
        take(p, (box){q->x - q->radius, q->y - q->radius, q->x + q->radius, q->y + q->radius});
        q->roof = row->bench.bound_us > 0 ? py(p, 1e-3 * row->bench.flops / row->bench.bound_us) : q->y;
    }
    qsort(points, (size_t)n, sizeof *points, by_share);
    return n;
}

/* ---- axes ---- */

static void tick_text(const plot *p, double value, double x, double y, const char *anchor) {
    fprintf(p->f, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%g</text>\n", x, y, anchor, value);
}

static bool labelled(int step, double decades) { return step == 1 || (decades < 2.6 && (step == 2 || step == 5)); }

static void grid_line(const plot *p, int step, double x0, double y0, double x1, double y1) {
    fprintf(p->f, "<path class=\"grid%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", step == 1 ? " major" : "", x0, y0, x1, y1);
}

static void draw_x_axis(const plot *p) {
    for (int decade = (int)floor(p->x0); decade <= (int)p->x1; decade++)
        for (int step = 1; step < 10; step++) {
            double v = step * pow(10, decade), x = px(p, v);
            if (log10(v) < p->x0 - 1e-9 || log10(v) > p->x1 + 1e-9)
                continue;
            grid_line(p, step, x, TOP, x, HEIGHT - BOTTOM);
            if (labelled(step, p->x1 - p->x0))
                tick_text(p, v, x, HEIGHT - BOTTOM + 17, "middle");
        }
    fprintf(p->f, "<text class=\"axis\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">FLOP / byte</text>\n",
            LEFT + (WIDTH - LEFT - RIGHT) / 2, HEIGHT - 10);
}

static void draw_y_axis(const plot *p, bool tera) {
    double unit = tera ? 1e3 : 1;
    for (int decade = (int)floor(p->y0); decade <= (int)p->y1; decade++)
        for (int step = 1; step < 10; step++) {
            double v = step * pow(10, decade), y = py(p, v);
            if (log10(v) < p->y0 - 1e-9 || log10(v) > p->y1 + 1e-9)
                continue;
            grid_line(p, step, LEFT, y, WIDTH - RIGHT, y);
            if (labelled(step, p->y1 - p->y0))
                tick_text(p, v / unit, LEFT - 8, y + 4, "end");
        }
    int middle = TOP + (HEIGHT - TOP - BOTTOM) / 2;
    fprintf(p->f, "<text class=\"axis\" transform=\"translate(16 %d) rotate(-90)\" text-anchor=\"middle\">%s</text>\n", middle,
            tera ? "TFLOP / s" : "GFLOP / s");
}

/* ---- roofs ---- */

static void speed_text(char *out, size_t cap, double giga, const char *unit) {
    cell digits;
    bool tera = giga >= 1000;
    format_3(digits, tera ? 1e-3 * giga : giga);
    snprintf(out, cap, "%.12s %s%s/s", digits, tera ? "T" : "G", unit);
}

static void draw_ceilings(plot *p) {
    double free_y = TOP; /* labels come from above and keep apart */
    for (int i = 0; i < p->n_ceiling; i++) {
        const ceiling *c = &p->ceilings[i];
        char speed[48];
        double y = py(p, c->gflops), from = dram_gbps(p) > 0 ? px(p, c->gflops / dram_gbps(p)) : LEFT;
        double text_y = fmax(y + 4, free_y + 4);
        from = fmin(fmax(from, LEFT), WIDTH - RIGHT);
        speed_text(speed, sizeof speed, c->gflops, "FLOP");
        take(p, (box){from, y - 3, WIDTH - RIGHT, y + 3});
        fprintf(p->f, "<path class=\"roof%s\" d=\"M%.1f %.1fH%d\"/>\n", c->used ? "" : " spare", from, y, WIDTH - RIGHT);
        fprintf(p->f, "<text class=\"rooflabel%s\" x=\"%d\" y=\"%.1f\">", c->used ? "" : " spare", WIDTH - RIGHT + 8, text_y);
        html_short(p->f, c->name, 20);
        fprintf(p->f, " <tspan class=\"speed\">%s</tspan></text>\n", speed);
        free_y = text_y - 4 + LINE;
    }
}

/* Along a slope of that length from (x, y): as near to its beginning as there is room above it, else below, else nowhere. */
static void label_slope(plot *p, uint32_t level, double x, double y, double angle, double length, const char *kind) {
    enum { AHEAD = 14, HALF = 6 };
    static const int sides[] = {-11, 12}; /* of the text's middle */
    const char *name = p->m->levels[level].name;
    char speed[48];
    speed_text(speed, sizeof speed, memory_gbps(p, level), "B");
    double width = CHAR * (html_width(name) + (int)strlen(speed) + 1);
    for (int i = 0; i < 2; i++) {
        double from_x = x - sides[i] * sin(angle), from_y = y + sides[i] * cos(angle), at = AHEAD;
        while (at + width < length && !line_untaken(p, from_x, from_y, angle, at, at + width, HALF))
            at += HALF;
        if (at + width >= length)
            continue;
        take_line(p, from_x, from_y, angle, at, at + width, HALF);
        fprintf(p->f, "<text class=\"rooflabel%s\" transform=\"translate(%.1f %.1f) rotate(%.1f)\" x=\"%.0f\" y=\"4\">", kind,
                from_x, from_y, angle * 180 / acos(-1), at);
        html_text(p->f, name);
        fprintf(p->f, " <tspan class=\"speed\">%s</tspan></text>\n", speed);
        return;
    }
}

/* A level's slope from the left edge, or from where it enters from below, to the highest ceiling. A cache of which little would
 * be seen is left out. */
static void draw_slope(plot *p, uint32_t level, double top, bool is_memory) {
    double gbps = memory_gbps(p, level), x0 = pow(10, p->x0), x1 = gbps > 0 ? top / gbps : 0;
    const char *kind = is_memory ? "" : " spare";
    if (gbps <= 0)
        return;
    x0 = fmax(x0, pow(10, p->y0) / gbps);
    x1 = fmin(x1, pow(10, p->x1));
    double ax = px(p, x0), ay = py(p, x0 * gbps), bx = px(p, x1), by = py(p, x1 * gbps);
    if (x1 <= x0 || (!is_memory && bx - ax < 110))
        return;
    fprintf(p->f, "<path class=\"roof%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", kind, ax, ay, bx, by);
    double angle = atan2(by - ay, bx - ax);
    label_slope(p, level, ax, ay, angle, hypot(bx - ax, by - ay), kind);
    take_line(p, ax, ay, angle, 0, hypot(bx - ax, by - ay), 3);
}

static void draw_roofs(plot *p) {
    double top = p->n_ceiling ? p->ceilings[0].gflops : pow(10, p->y1);
    for (uint32_t i = 0; i < p->m->n_levels; i++)
        draw_slope(p, i, top, i == p->m->n_levels - 1);
    draw_ceilings(p);
}

/* ---- points and their labels ---- */

static void draw_point(const plot *p, int phase, const point *q, bool measured) {
    const bench_row *b = &q->row->bench;
    cell bound, us;
    format_us(bound, b->bound_us);
    format_us(us, b->us);
    if (measured && q->y - q->roof > q->radius)
        fprintf(p->f, "<path class=\"gap\" d=\"M%.1f %.1fV%.1f\"/>\n", q->x, q->y - q->radius, q->roof);
    fprintf(p->f, "<circle class=\"point%s\" data-row=\"r%d-%lld\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" tabindex=\"0\"><title>",
            measured ? "" : " bound", phase, (long long)q->index, q->x, q->y, q->radius);
    html_text(p->f, q->row->name);
    fprintf(p->f, ": %.0f %% of the time, bound %s us by %s", 100 * q->share, bound, b->bound);
    if (measured)
        fprintf(p->f, ", measured %s us", us);
    fputs("</title></circle>\n", p->f);
}

static bool is_free(const plot *p, const box *b) {
    bool inside = b->x0 >= LEFT && b->x1 <= WIDTH - RIGHT && b->y0 >= TOP && b->y1 <= HEIGHT - BOTTOM;
    return inside && untaken(p, b);
}

/* Below and to the right first: above and to the left the roof runs. */
static bool place(const plot *p, const point *q, double width, box *out) {
    double d = q->radius + 5;
    const box places[] = {
        {q->x + d, q->y - 7, q->x + d + width, q->y + 8},
        {q->x + d * 0.7, q->y + d * 0.7, q->x + d * 0.7 + width, q->y + d * 0.7 + LINE},
        {q->x - width / 2, q->y + d, q->x + width / 2, q->y + d + LINE},
        {q->x - width / 2, q->y + d + LINE, q->x + width / 2, q->y + d + 2 * LINE},
        {q->x - d - width, q->y - 7, q->x - d, q->y + 8},
        {q->x - d * 0.7 - width, q->y - d * 0.7 - LINE, q->x - d * 0.7, q->y - d * 0.7},
        {q->x - width / 2, q->y - d - LINE, q->x + width / 2, q->y - d},
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (is_free(p, &places[i])) {
            *out = places[i];
            return true;
        }
    return false;
}

/* Points that lie on each other share the label of the largest. */
static int gather(point *points, int n, int at) {
    int others = 0;
    points[at].labelled = true;
    for (int i = at + 1; i < n; i++)
        if (!points[i].labelled && hypot(points[i].x - points[at].x, points[i].y - points[at].y) < points[at].radius + 8) {
            points[i].labelled = true;
            others++;
        }
    return others;
}

static void label_points(plot *p, point *points, int n) {
    for (int i = 0; i < n; i++) {
        if (points[i].labelled)
            continue;
        int others = gather(points, n, i), shown = html_width(points[i].row->name);
        double width = CHAR * ((shown < LABEL_CHARS ? shown : LABEL_CHARS) + (others ? 5 : 0));
        box b;
        if (!place(p, &points[i], width, &b))
            continue;
        take(p, b);
        fprintf(p->f, "<text class=\"label\" x=\"%.1f\" y=\"%.1f\">", b.x0, b.y1 - 4);
        html_short(p->f, points[i].row->name, LABEL_CHARS);
        fprintf(p->f, others ? " +%d</text>\n" : "</text>\n", others);
    }
}

static void draw_phase(plot *p, int phase, point *points, int n) {
    fprintf(p->f, "<g class=\"phase-%d\" data-phase=\"%d\">\n", phase, phase);
    for (int i = 0; i < n; i++)
        draw_point(p, phase, &points[i], p->reports[phase].measured);
    label_points(p, points, n);
    fputs("</g>\n", p->f);
}

/* Points first have their room, then roofs theirs, so that labels find what is left. */
static void draw(plot *p) {
    point **points = cli_alloc((size_t)p->n, sizeof *points);
    int *n = cli_alloc((size_t)p->n, sizeof *n);
    for (int i = 0; i < p->n; i++) {
        points[i] = cli_alloc((size_t)p->reports[i].n, sizeof **points);
        n[i] = find_points(p, &p->reports[i], points[i]);
    }
    draw_roofs(p);
    for (int i = 0; i < p->n; i++) {
        draw_phase(p, i, points[i], n[i]);
        free(points[i]);
    }
    free(points);
    free(n);
}

void report_plot(FILE *f, const model_report *reports, int n) {
    plot *p = cli_alloc(1, sizeof *p);
    *p = (plot){.f = f, .reports = reports, .n = n, .m = reports->machine, .threads = (uint32_t)reports->threads};
    find_ceilings(p);
    find_range(p);
    fprintf(f, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Roofline plot\" xmlns=\"http://www.w3.org/2000/svg\">\n",
            WIDTH, HEIGHT);
    draw_x_axis(p);
    draw_y_axis(p, p->y1 > 4);
    draw(p);
    fputs("</svg>\n", f);
    free(p);
}
