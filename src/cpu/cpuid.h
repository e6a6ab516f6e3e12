/* SPDX-License-Identifier: Apache-2.0
 *
 * cpuid.h - which ISA levels this build has and this machine can run, by feature bits and OS state, never by model or brand.
 * Called by cpu_backend, cpu_choose and the info calls of api.
 */
#ifndef RFT_CPU_CPUID_H
#define RFT_CPU_CPUID_H

#include "cpu/cpu_kernel.h"

int rft__isa_count(void);
const rft__isa *rft__isa_at(int level); /* 0 is ref */
int rft__isa_find(const char *name);    /* level, or -1 */
bool rft__isa_runs(int level);          /* on this machine */
int rft__isa_here(void);                /* the highest that runs; one below it may not, see isa.def */
bool rft__isa_available(const char *name);
/* The highest level that runs and is allowed by cap (a name) or, when NULL, by RFT_MAX_ISA. -1: cap is no level's name. */
int rft__isa_cap(const char *cap);

const char *rft__amx_missing(void); /* NULL: tiles run here, and this process may use them */

const char *rft__cpu_isa_built(void); /* "ref,avx2,..." */
const char *rft__cpu_isa_here(void);  /* name of rft__isa_cap(NULL), or of rft__isa_here() when RFT_MAX_ISA is no name */
const char *rft__cpu_isa_missing(void); /* "avx512: ...": why the level above is not used; empty where that is the highest */
void rft__cpu_name(char *buf, size_t cap); /* brand string, trimmed */

#endif
