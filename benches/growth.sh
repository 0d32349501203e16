#!/bin/sh
# How often `cold spawn` finds the right class: programs whose cost per start is known, RUNS runs each of
# STARTS starts, and one that is constant while load comes and goes on the machine.
# Usage: benches/growth.sh [RUNS [STARTS [KIND…]]]; COLD=path of cold, SUBJECT=path of cold-subject.
# Kinds: constant gallop scan list file step drift; all without one.
# Fails when a class is right in fewer than 19 of 20 runs, or anything constant is ever called growing.
set -eu
runs=${1:-20}
starts=${2:-400}
[ $# -lt 2 ] && set -- || shift 2
kinds=" $* "
cold=${COLD:-$(ls -t target/*/release/cold target/*/debug/cold 2>/dev/null | head -n 1)}
subject=${SUBJECT:-$(ls -t target/*/release/cold-subject target/*/debug/cold-subject 2>/dev/null | head -n 1)}
[ -x "$cold" ] && [ -x "$subject" ] || { echo "build cold and cold-testbed first" >&2; exit 2; }
place=$(mktemp -d /var/tmp/cold-growth.XXXXXX)
trap 'kill $load 2>/dev/null; rm -rf "$place"' EXIT
load=

measure() { # KIND: class, growing or not, cause
    dir=$(mktemp -d "$place/left.XXXXXX")
    "$cold" -q spawn --json -n "$starts" -- "$subject" growing "$1" "$dir" --at $((starts / 2)) |
        python3 -c '
import json, sys
j = json.load(sys.stdin)["series"][0]["judged"]
v = j["verdict"]
t = j["time"]
cause = j["causes"][0]["what"] + " " + j["causes"][0]["name"] if j["causes"] else "-"
print(v["class"], "yes" if v["class"] in ("logarithmic", "linear", "quadratic") else "no",
      t["class"] if t else "-", "%.2f" % j["drift"], cause.replace(sys.argv[1], "DIR").replace(" ", ":"))' "$dir"
    rm -rf "$dir"
}

wrong=0
for case in constant:constant gallop:logarithmic scan:linear list:linear file:linear step:step drift:constant; do
    kind=${case%:*}
    want=${case#*:}
    case $kinds in "  " | *" $kind "*) ;; *) continue ;; esac
    if [ "$kind" = drift ]; then
        kind=constant
        # Load that comes and goes in steps of a second, on every CPU.
        (while :; do "$subject" spin 700 & "$subject" spin 1100 & wait; sleep 0.6; done) &
        load=$!
    fi
    : > "$place/rounds"
    i=0
    while [ "$i" -lt "$runs" ]; do
        measure "$kind" >> "$place/rounds"
        i=$((i + 1))
    done
    right=$(grep -c "^$want " "$place/rounds" || true)
    growing=$(awk '$2 == "yes"' "$place/rounds" | wc -l)
    echo "${case%:*}: $want in $right of $runs, growing in $growing; alone by time: $(awk '{ print $3 }' "$place/rounds" | sort | uniq -c | tr -s ' \n' ' ')"
    echo "    causes: $(awk '{ print $5 }' "$place/rounds" | sort | uniq -c | tr -s ' \n' ' ')"
    [ $((right * 20)) -ge $((runs * 19)) ] || wrong=1
    [ "$want" != constant ] || [ "$growing" -eq 0 ] || wrong=1
done
exit "$wrong"
