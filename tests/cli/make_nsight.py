#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a small database with the tables that `nsys export --type sqlite` makes: FILE [KIND]

A decode step of one block, four times: a product, an attention and a collective under ranges of emit_nvtx, a norm outside of any;
then a product that a range called "decode step" has around it. KIND damages it: "view" puts a query in place of the kernels' table,
"columns" leaves columns out, "empty" has no kernels.
"""
import sqlite3
import sys

path, kind = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
db = sqlite3.connect(path)
db.executescript("""
    CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, correlationId INTEGER, globalPid INTEGER,
        bytes INTEGER, copyKind INTEGER);
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,
        correlationId INTEGER, nameId INTEGER);
    CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER);
    INSERT INTO TARGET_INFO_GPU VALUES (0, 0, 'NVIDIA H200');
""")
if kind == "view":
    db.execute("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
               "SELECT i AS start, i AS end, i AS correlationId, 0 AS globalPid, 0 AS demangledName, 0 AS shortName FROM n")
elif kind == "columns":
    db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER)")
else:
    db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
               "correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER)")

names = ["nvjet_tst_64x8_64x16_4x1_v_bz_TNT", "void flash_fwd_splitkv_kernel<128>(Flash_fwd_params)", "void rms_norm_kernel<bf16>()",
         "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "aten::addmm, seq = 7, op_id = 3, sizes = [[4096], [1, 4096], [4096, 4096], [], []]"]
db.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(names, 1))
PROCESS = 4242 << 24
THREAD = PROCESS | 4243
now, call = 1000, 100


def kernel(name, ns, text=None, text_id=None):
    global now, call
    call += 1
    now += 50000
    if text or text_id:
        db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?, ?)", (now - 2000, now + 8000, text, THREAD, text_id))
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, 1)", (now, now + 4000, THREAD, call))
    if not kind:
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, ?, ?, ?, ?)",
                   (now + 10000, now + 10000 + ns, call, PROCESS, name, name))


begin = now
for _ in range(4):
    kernel(1, 9000, text_id=5)
    kernel(3, 2000)
    kernel(2, 3000, "aten::_flash_attention_forward, op_id = 9, sizes = [[1, 1, 32, 128]]")
    kernel(4, 12000)
db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, 'decode step', ?, NULL)", (begin, now + 100000, THREAD))
kernel(1, 30000, "aten::mm, op_id = 4, sizes = [[8, 4096], [4096, 512]]")
if not kind:
    db.executescript("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, correlationId INTEGER, globalPid INTEGER);"
                     "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (500, 7500, 1, 0);"
                     "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER);")
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1, 5001, 0, 1, ?, 4096, 1)", (PROCESS,))
db.commit()
