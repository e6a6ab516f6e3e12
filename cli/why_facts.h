/* SPDX-License-Identifier: Apache-2.0
 *
 * why_facts.h - what decides the speed of one layer: facts as cmd_why.c collects them, and their two forms.
 */
#ifndef WHY_FACTS_H
#define WHY_FACTS_H

#include "model_session.h"

#define WHY_OTHERS 3
#define WHY_ADVICE 6
#define WHY_TEXT   200

typedef struct why_other { /* the bound with W, or X and W, of another type */
    char type[WEIGHT_TEXT];
    double bound_us;
} why_other;

typedef struct why_facts {
    const model_session *s;
    const model_row *row;
    bool has_bound;
    double compute_us, memory_us; /* the two roofs at this m */
    int64_t turn_m;               /* the least m at which arithmetic takes as long as memory; 0: beyond all that is sensible */
    why_other other[WHY_OTHERS];
    int n_other;
    double apart_bytes; /* that the epilogue would move as passes of its own */
    double share,
        linear_share; /* of the linear layers' bound time; of the linear layers in the step's bytes or FLOPs; 0: not known */
    int rank;         /* among the layers by that time, from 1 */
    char advice[WHY_ADVICE][WHY_TEXT];
    int n_advice;
} why_facts;

void why_collect(const model_session *s, const model_row *row, why_facts *f);
void why_text(const why_facts *f);
void why_json(const why_facts *f);

#endif
