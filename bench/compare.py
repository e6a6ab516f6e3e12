#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# compare.py - rows of `rooftile bench --json` as Markdown: a line a shape, and the geometric mean of each peer's ratio by m.
#   rooftile bench --shapes bench/shapes/baseline_f32.txt --vs onednn --json | bench/compare.py
#   bench/compare.py FILE...
# A ratio is the peer's time over ours in the same run: above 1 we are faster.

import fileinput
import json
import math
import sys


def rows():
    for line in fileinput.input():
        row = json.loads(line)
        if "us" in row:
            yield row


def peer_cell(row, name):
    for peer in row["peer"] or []:
        if peer["name"] == name and peer.get("ratio"):
            return f"{peer['us']:.0f}", f"{peer['ratio']:.2f}"
    return "", ""


def percent(row):
    return f"{row['pct_roof']:.0f}" if row.get("pct_roof") else ""


def table(results, names):
    head = ["n x k", "m", "µs", "GFLOP/s", "GB/s", "bound", "roof %"]
    for name in names:
        head += [f"{name} µs", "ratio"]
    yield head + ["kernel"]
    yield ["---"] + ["---:"] * (len(head) - 1) + ["---"]
    for r in results:
        cells = [f"{r['n']} x {r['k']}", str(r["m"]), f"{r['us']:.0f}", f"{r['flops'] / r['us'] / 1e3:.0f}", f"{r['gbps']:.1f}", r["bound"], percent(r)]
        for name in names:
            cells += peer_cell(r, name)
        yield cells + [r["kernel"]]


def means(results, names):
    yield ["m"] + [f"{name}" for name in names] + ["roof %", "shapes"]
    yield ["---:"] * (len(names) + 3)
    for m in sorted({r["m"] for r in results}):
        group = [r for r in results if r["m"] == m]
        cells = [str(m)]
        for name in names:
            logs = [math.log(p["ratio"]) for r in group for p in r["peer"] or [] if p["name"] == name and p.get("ratio")]
            cells.append(f"{math.exp(sum(logs) / len(logs)):.2f}" if logs else "")
        roofs = [math.log(r["pct_roof"]) for r in group if r.get("pct_roof")]
        yield cells + [f"{math.exp(sum(roofs) / len(roofs)):.0f}" if roofs else "", str(len(group))]


def show(lines):
    for cells in lines:
        print("| " + " | ".join(cells) + " |")


def main():
    results = list(rows())
    if not results:
        sys.exit("compare.py: no rows with a time")
    names = sorted({p["name"] for r in results for p in r["peer"] or []})
    versions = sorted({f"{p['name']} {p['version']}" for r in results for p in r["peer"] or []})
    first = results[0]
    print(f"x {first['x']}, w {first['w']}, y {first['y']}, {first['threads']} threads, {'cold' if first['cold'] else 'warm'} weights; peers: {', '.join(versions) or 'none'}\n")
    print("Geometric means of peer time / our time, and of the share of the roof:\n")
    show(means(results, names))
    print("\nEach shape:\n")
    show(table(results, names))


if __name__ == "__main__":
    main()
