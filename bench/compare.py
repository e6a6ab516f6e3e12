#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# compare.py - rows of `rooftile bench --json` as Markdown: a line a shape, and the geometric mean of each peer's ratio by m.
#   rooftile bench --shapes bench/shapes/baseline_f32.txt --vs onednn --json | bench/compare.py
#   bench/compare.py FILE...
# A ratio is the peer's time over ours in the same run: above 1 we are faster. Rows of several products (types, what multiplies,
# threads) are tables of their own, behind one that sums them up.

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


def percent(row, key="pct_roof"):
    return f"{row[key]:.0f}" if row.get(key) else ""


def is_codes(row):
    return row["w"].split(":")[0] not in ("f32", "bf16", "f16")


def code_cells(row):
    return [f"{row['packed_bytes'] / 1e6:.1f}", percent(row, "pct_read"), percent(row, "pct_peak")]


def table(results, names):
    codes = is_codes(results[0])
    head = ["n x k", "m", "µs", "GFLOP/s", "GB/s", "bound", "roof %"] + (["W MB", "read %", "peak %"] if codes else [])
    for name in names:
        head += [f"{name} µs", "ratio"]
    yield head + ["kernel"]
    yield ["---"] + ["---:"] * (len(head) - 1) + ["---"]
    for r in results:
        cells = [f"{r['n']} x {r['k']}", str(r["m"]), f"{r['us']:.0f}", f"{r['flops'] / r['us'] / 1e3:.0f}", f"{r['gbps']:.1f}", r["bound"], percent(r)]
        cells += code_cells(r) if codes else []
        for name in names:
            cells += peer_cell(r, name)
        yield cells + [r["kernel"]]


def mean(values):
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else None


def mean_ratio(results, name):
    value = mean(p["ratio"] for r in results for p in r["peer"] or [] if p["name"] == name and p.get("ratio"))
    return f"{value:.2f}" if value else ""


def means(results, names):
    yield ["m"] + [f"{name}" for name in names] + ["roof %", "shapes"]
    yield ["---:"] * (len(names) + 3)
    for m in sorted({r["m"] for r in results}):
        group = [r for r in results if r["m"] == m]
        roof = mean(r["pct_roof"] for r in group if r.get("pct_roof"))
        yield [str(m)] + [mean_ratio(group, name) for name in names] + [f"{roof:.0f}" if roof else "", str(len(group))]


def show(lines):
    for cells in lines:
        print("| " + " | ".join(cells) + " |")


def names_of(results):
    return sorted({p["name"] for r in results for p in r["peer"] or []})


def versions_of(results):
    return ", ".join(sorted({f"{p['name']} {p['version']}" for r in results for p in r["peer"] or []})) or "none"


def product(row):
    return f"x {row['x']}, w {row['w']}, y {row['y']}, compute {row['compute']}, {row['threads']} thread{'s' if row['threads'] > 1 else ''}"


def summary(groups):
    ms = sorted({r["m"] for results in groups.values() for r in results})
    yield ["product", "peer"] + [f"m = {m}" for m in ms]
    yield ["---", "---"] + ["---:"] * len(ms)
    for title, results in groups.items():
        for name in names_of(results):
            yield [title, name] + [mean_ratio([r for r in results if r["m"] == m], name) for m in ms]
        yield [title, "peak %"] + [f"{p:.0f}" if p else "" for p in (mean(r["pct_peak"] for r in results if r["m"] == m and r.get("pct_peak")) for m in ms)]


def show_one(results):
    first, names = results[0], names_of(results)
    print(f"x {first['x']}, w {first['w']}, y {first['y']}, {first['threads']} threads, {'cold' if first['cold'] else 'warm'} weights; peers: {versions_of(results)}\n")
    print("Geometric means of peer time / our time, and of the share of the roof:\n")
    show(means(results, names))
    print("\nEach shape:\n")
    show(table(results, names))


def show_several(groups):
    print("Geometric means of peer time / our time (read: the share of read bandwidth in the same rounds), and of the share of the arithmetic peak:\n")
    show(summary(groups))
    for title, results in groups.items():
        print(f"\n## {title}\n\nPeers: {versions_of(results)}\n")
        show(table(results, names_of(results)))


def main():
    groups = {}
    for row in rows():
        groups.setdefault(product(row), []).append(row)
    if not groups:
        sys.exit("compare.py: no rows with a time")
    if len(groups) == 1:
        show_one(next(iter(groups.values())))
    else:
        show_several(groups)


if __name__ == "__main__":
    main()
