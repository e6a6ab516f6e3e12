#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The page of `rooftile model --html`: well-formed, whole, without anything from outside, and hostile names stay text. Where there
# is a Chromium it also runs the page: no script error, a click sorts. Called by ctest with the path of the tool.

. "$(dirname "$0")/common.sh"
page=$work/page.html
hostile='<script>alert(1)</script>"'"'"'&'$'\xe2\x80\xae'

has() { grep -qF -- "$1" "$page" || fail "the page should have: $1"; }
lacks() { if grep -qF -- "$1" "$page"; then fail "the page should not have: $1"; fi; }

# Well-formed but for style and script, nothing from outside, and points that lead to rows of all layers.
is_whole() { # ROWS of each phase, PHASES
    python3 - "$page" "$1" "$2" 2>"$work/err" <<'PYTHON' || fail "the page is not whole"
import re, sys
import xml.etree.ElementTree as tree
text = open(sys.argv[1], encoding="utf-8").read()
rows, phases = int(sys.argv[2]), int(sys.argv[3])
assert text.startswith("<!DOCTYPE html>\n")
assert not re.search(r"\b(src|href|url|import|fetch)\b *[=(]", text), "something is loaded"
assert set(re.findall(r"https?://[^\"]*", text)) <= {"http://www.w3.org/2000/svg"}
bare = re.sub(r"<(style|script)>.*?</\1>", "", text, flags=re.S)
page = tree.fromstring(bare)
ids = [e.get("id") for e in page.iter() if e.get("id")]
assert len(ids) == len(set(ids)), "an id is there twice"
for phase in range(phases):
    for row in range(rows):
        assert f"r{phase}-{row}" in ids, f"row {row} of phase {phase} is missing"
points = [e.get("data-row") for e in page.iter() if e.tag.endswith("circle")]
assert len(points) in (0, rows * phases) and all(p in ids for p in points), points
for table in page.iter("table"):
    widths = {len(list(r)) for r in table.iter("tr")}
    assert len(widths) == 1, f"rows of {widths} cells"
for e in page.iter():
    for name, value in e.attrib.items():
        if name in ("cx", "cy", "r", "x", "y", "d"): assert "nan" not in value and "inf" not in value, value
PYTHON
}

test_described() {
    python3 - "$root/bench/models/llama-3.1-8b.json" "$work/config.json" "$hostile" <<'PYTHON'
import json, sys
config = json.load(open(sys.argv[1]))
config["_name_or_path"] = sys.argv[3]
json.dump(config, open(sys.argv[2], "w"))
PYTHON
    run 0 model "$work/config.json" --machine h100 --phase decode:1 --phase prefill:1x512 --html "$page"
    grep -q 'NVIDIA H100 80GB HBM3, 132 SMs (spec)' "$work/out" || fail "the text names the machine"
    is_whole 8 2
    lacks '<script>alert'
    has '<title>&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;'$'\xef\xbf\xbd'
    for name in attn_q attn_k attn_v attn_output ffn_up ffn_gate ffn_down lm_head; do has "<bdi>$name</bdi>"; done
    has 'Memory bounds this phase'
    has 'Arithmetic bounds this phase'
    has 'The largest costs, and what to do'
    has 'HBM <tspan'
    has 'data sheet, '
    if [ "$(wc -c <"$page")" -gt 100000 ]; then fail "the page has $(wc -c <"$page") bytes"; fi
}

# Names of tensors, where the architecture is not known: markup, quotes, bytes that are no UTF-8.
test_hostile_tensors() {
    LC_ALL=C sed 's/llama/mamba/g; s/attn_q/<b>\&"'"'"'/g; s/attn_k/\xff\xfe<i>x/g' "$root/tests/fuzz/corpus/gguf/q4_0.gguf" >"$work/bad.gguf"
    timeout "$limit" "$tool" model "$work/bad.gguf" --machine epyc-9654 --html "$page" >"$work/out" 2>"$work/err"
    case $? in
    0) has '&lt;b&gt;&amp;&quot;&#39;' && is_whole "$(grep -c '<tr id=' "$page")" 1 ;;
    3) echo "the reader refuses names that are no UTF-8" ;;
    *) fail "names of tensors: exit code" ;;
    esac
    LC_ALL=C sed 's/llama/mamba/g; s/attn_q/<b>\&"'"'"'/g' "$root/tests/fuzz/corpus/gguf/q4_0.gguf" >"$work/bad.gguf"
    run 0 model "$work/bad.gguf" --machine epyc-9654 --html "$page"
    has '&lt;b&gt;&amp;&quot;&#39;'
    lacks '<b>&'
    is_whole "$(grep -c '<tr id=' "$page")" 1
}

test_measured() {
    run 0 model "$root/tests/fuzz/corpus/gguf/q4_0.gguf" --html "$page"
    has 'no machine profile'
    lacks '<figure>'
    is_whole "$(grep -c '<tr id=' "$page")" 1
    "$tool" roofline --seconds 0.3 >/dev/null || fail "roofline"
    timeout "$limit" "$tool" model "$root/tests/fuzz/corpus/gguf/q4_0.gguf" --phase decode:1 --phase prefill:1x4 --run --time 0.01 \
        --rounds 2 --html "$page" >"$work/out" 2>"$work/err" # 1: above a roof of so short a measurement
    if [ $? -gt 1 ]; then fail "model --run --html"; fi
    has 'tokens/s measured'
    has 'err/limit'
    is_whole "$(grep -c '<tr id="r0' "$page")" 2
}

test_ranks() {
    run 0 model "$root/bench/models/mixtral-8x7b.json" --phase decode:8 --ep 8 --machine h100 --html "$page"
    is_whole "$(grep -c '<tr id=' "$page")" 1
    has 'One of the ranks'
    has 'is the step of all 8 ranks: each has 1 of 8 sequences'
    has '<tr><th scope="row">dispatch</th>'
    has '262.1 kB to 524.3 kB by routing'
}

test_refusals() {
    run 4 model "$work/config.json" --machine h100 --html "$work/none/page.html"
    grep -q -- '--html .*: No such file' "$work/err" || fail "the message names the flag and the reason"
    if [ -w /dev/full ]; then run 4 model "$work/config.json" --machine h100 --html /dev/full; fi
    run 2 model "$work/config.json" --machine h100 --run --html "$page"
    run 2 model "$work/config.json" --machine none --html "$page"
}

browser() {
    local name
    for name in chromium chromium-browser google-chrome; do command -v "$name" && return; done
    return 1
}

dom() { # URL
    timeout 60 "$chromium" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --enable-logging=stderr \
        --dump-dom "$1" >"$work/dom" 2>"$work/err"
}

# A script behind the page's own clicks on "bound", lights a point, and writes what became of it into the page.
test_browser() {
    local chromium
    chromium=$(browser) || { echo "skipped: the page is not run, since there is no chromium"; return; }
    run 0 model "$work/config.json" --machine h100 --phase decode:1 --phase prefill:1x512 --html "$page"
    cat >"$work/probe.js" <<'JS'
const button = [...document.querySelectorAll("section.phase thead button")].find(b => b.textContent.startsWith("bound"));
button.click();
const first = document.querySelector("section.phase tbody th").textContent;
document.querySelector("circle[data-row]").dispatchEvent(new Event("mouseenter"));
document.body.append("probe " + first + " " + !tip.hidden + " " + document.querySelectorAll("tr.lit").length + " probe");
JS
    python3 - "$page" "$work/probe.js" "$work/probed.html" <<'PYTHON'
import sys
page, probe = (open(name, encoding="utf-8").read() for name in sys.argv[1:3])
open(sys.argv[3], "w", encoding="utf-8").write(page.replace("</body>", "<script>" + probe + "</script></body>"))
PYTHON
    dom about:blank
    if [ ! -s "$work/dom" ]; then echo "skipped: $chromium does not run here"; return; fi
    dom "file://$work/probed.html"
    grep -q 'data-ready="yes"' "$work/dom" || fail "the page's script did not end"
    grep -q 'probe lm_head true 1 probe' "$work/dom" || fail "sorting by bound puts lm_head first, and a point shows its row"
    if grep -E 'CONSOLE.*(Error|Refused|error)' "$work/err"; then fail "the page has script errors"; fi
}

command -v python3 >/dev/null || { echo "skipped: pages are made and looked at by python3, which is not here"; exit 77; }
test_described
test_hostile_tensors
test_measured
test_ranks
test_refusals
test_browser
[ "$failures" -eq 0 ] && echo "pages are whole"
exit "$((failures > 0))"
