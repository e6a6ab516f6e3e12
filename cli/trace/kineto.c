/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto.c - traces of torch.profiler: an object with `traceEvents`, or that list alone. See readers.h.
 * Hundreds of megabytes are usual: events are cut out one by one, and of each only what the timeline needs is kept.
 */
#define _GNU_SOURCE
#include "trace/json_cut.h"
#include "trace/readers.h"
#include "trace/timeline.h"
#include "trace/torch_ops.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MOST_EVENT_BYTES ((size_t)4 << 20)

typedef enum event_kind { IGNORED, OP, NOTE, LAUNCH, KERNEL } event_kind;

static event_kind kind_of(const char *category) {
    static const struct {
        const char *category; /* older versions begin them with capitals */
        event_kind kind;
    } kinds[] = {{"cpu_op", OP},          {"operator", OP},    {"user_annotation", NOTE}, {"cuda_runtime", LAUNCH},
                 {"cuda_driver", LAUNCH}, {"runtime", LAUNCH}, {"kernel", KERNEL},        {"gpu_memcpy", KERNEL},
                 {"gpu_memset", KERNEL},  {"memcpy", KERNEL},  {"memset", KERNEL}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcasecmp(category, kinds[i].category) == 0)
            return kinds[i].kind;
    return IGNORED;
}

static const char *text_at(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Ids of processes and threads are numbers, on a GPU also words; they only tell threads apart. */
static uint64_t thread_of(const json_t *event) {
    const uint64_t process = (uint64_t)json_integer_value(json_object_get(event, "pid"));
    return process * 0x9e3779b97f4a7c15u + (uint64_t)json_integer_value(json_object_get(event, "tid"));
}

static int64_t id_at(const json_t *args, const char *key) { return json_integer_value(json_object_get(args, key)); }

static bool add_op(trace *t, timeline *l, const json_t *event, event_kind kind, double start, double us) {
    const json_t *args = json_object_get(event, "args");
    const torch_args a = {json_object_get(args, "Input Dims"), json_object_get(args, "Input type"),
                          json_object_get(args, "Input Strides"), json_object_get(args, "Concrete Inputs")};
    const trace_call call = torch_call(text_at(event, "name"), &a);
    const int64_t id = json_object_get(args, "External id") ? id_at(args, "External id") : id_at(args, "external id");
    return timeline_host(l, kind == OP ? HOST_OP : HOST_NOTE, thread_of(event), start, us, id, trace_intern(t, &call));
}

static bool add_launch(trace *t, timeline *l, const json_t *event, double start, double us) {
    const trace_call call = {.group = TRACE_OTHER, .name = "launch"};
    const int64_t correlation = id_at(json_object_get(event, "args"), "correlation");
    return correlation == 0 || timeline_host(l, HOST_LAUNCH, thread_of(event), start, us, correlation, trace_intern(t, &call));
}

static bool add_kernel(trace *t, timeline *l, const json_t *event, double us) {
    const json_t *args = json_object_get(event, "args");
    return timeline_kernel(l, t, text_at(event, "name"), id_at(args, "correlation"), id_at(args, "External id"), us);
}

/* False: it is no event of the format. */
static bool add_event(trace *t, timeline *l, const json_t *event) {
    const json_t *duration = json_object_get(event, "dur"), *start = json_object_get(event, "ts");
    const event_kind kind = kind_of(text_at(event, "cat"));
    if (!json_is_object(event))
        return false;
    if (kind == IGNORED || strcmp(text_at(event, "ph"), "X") != 0)
        return true;
    if (!json_is_number(duration) || !json_is_number(start))
        return false;
    const double from = json_number_value(start), us = json_number_value(duration);
    switch (kind) {
    case LAUNCH:
        return add_launch(t, l, event, from, us);
    case KERNEL:
        return add_kernel(t, l, event, us);
    default:
        return add_op(t, l, event, kind, from, us);
    }
}

static bool holds(const json_piece *piece, const char *word) { return memmem(piece->p, piece->length, word, strlen(word)); }

/* Arrows, counters and the frames of Python, most of many files, are not parsed. */
static bool is_wanted(const json_piece *piece) { return holds(piece, "\"dur\"") && !holds(piece, "\"python_function\""); }

static void read_event(trace *t, timeline *l, const json_piece *piece) {
    json_t *event = piece->length <= MOST_EVENT_BYTES ? json_loadb(piece->p, piece->length, 0, NULL) : NULL;
    t->skipped += !event || !add_event(t, l, event);
    json_decref(event);
}

static bool read_events(trace *t, timeline *l, const json_piece *list, char why[CLI_WHY]) {
    const char *at = list->p, *end = list->p + list->length;
    json_piece piece;
    bool broken = !json_enter(&at, end, '[');
    while (!broken && json_next(&at, end, &piece, &broken))
        if (is_wanted(&piece))
            read_event(t, l, &piece);
    if (broken)
        snprintf(why, CLI_WHY, "its traceEvents are no list");
    return !broken;
}

/* The name of the first of them. */
static void read_devices(trace *t, const json_piece *list) {
    json_t *devices = list->length <= MOST_EVENT_BYTES ? json_loadb(list->p, list->length, 0, NULL) : NULL;
    snprintf(t->device, sizeof t->device, "%s", text_at(json_array_get(devices, 0), "name"));
    json_decref(devices);
}

static bool read_object(trace *t, timeline *l, const char *at, const char *end, char why[CLI_WHY]) {
    json_piece key, value;
    bool broken = !json_enter(&at, end, '{'), found = false, good = true;
    while (!broken && good && json_next_member(&at, end, &key, &value, &broken)) {
        if (json_is_key(&key, "traceEvents")) {
            found = true;
            good = read_events(t, l, &value, why);
        } else if (json_is_key(&key, "deviceProperties")) {
            read_devices(t, &value);
        }
    }
    if (good && (broken || !found))
        snprintf(why, CLI_WHY,
                 broken ? "the JSON ends within an object, list or text: the file is cut off or damaged"
                        : "its JSON has no traceEvents, which torch.profiler writes");
    return good && found && !broken;
}

bool trace_read_kineto(trace *t, const char *bytes, size_t size, char why[CLI_WHY]) {
    const char *at = bytes, *end = bytes + size;
    timeline l = {0};
    json_piece list;
    t->format = "torch.profiler";
    bool array = json_enter(&at, end, '[');
    at = bytes;
    bool good = array ? json_cut(&at, end, &list) && read_events(t, &l, &list, why) : read_object(t, &l, at, end, why);
    if (!good && !*why)
        snprintf(why, CLI_WHY, "the JSON ends within a list or text: the file is cut off or damaged");
    if (good)
        timeline_settle(&l, t);
    timeline_free(&l);
    return good;
}
