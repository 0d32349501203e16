#!/bin/sh
# Residency of a tree: `cold cache show` against `vmtouch`, interleaved in one run, metadata warm.
# Usage: benches/residency.sh [TREE [ROUNDS]]; COLD=path of a release build.
# Prints every pair and the median ratio of wall times (above 1: cold is faster). Budget: 4.
set -eu
tree=${1:-/usr}
rounds=${2:-7}
cold=${COLD:-$(ls -t target/*/release/cold target/release/cold 2>/dev/null | head -n 1)}
[ -x "$cold" ] || { echo "no release build of cold: cargo build --release, or set COLD" >&2; exit 2; }
command -v vmtouch >/dev/null || { echo "vmtouch is missing: apt install vmtouch" >&2; exit 2; }

seconds() { # wall seconds of "$@"
    start=$(date +%s%N)
    "$@" >/dev/null 2>&1
    end=$(date +%s%N)
    echo "$start $end" | awk '{ printf "%.4f\n", ($2 - $1) / 1e9 }'
}

echo "tree $tree, $rounds rounds, load $(cut -d' ' -f1 /proc/loadavg), $(nproc) CPUs"
"$cold" -q cache show -n 0 "$tree" # warms the metadata
ratios=$(mktemp)
trap 'rm -f "$ratios"' EXIT
i=0
while [ "$i" -lt "$rounds" ]; do
    # The order alternates, so that drift meets both.
    if [ $((i % 2)) -eq 0 ]; then
        c=$(seconds "$cold" -q cache show -n 0 "$tree"); v=$(seconds vmtouch "$tree")
    else
        v=$(seconds vmtouch "$tree"); c=$(seconds "$cold" -q cache show -n 0 "$tree")
    fi
    echo "$c $v" | awk '{ printf "cold %.3f s  vmtouch %.3f s  ratio %.2f\n", $1, $2, $2 / $1 }' | tee -a "$ratios"
    i=$((i + 1))
done
awk '{ print $NF }' "$ratios" | sort -n | awk '{ r[NR] = $1 } END {
    m = NR % 2 ? r[(NR + 1) / 2] : (r[NR / 2] + r[NR / 2 + 1]) / 2
    printf "median ratio %.2f (min %.2f, max %.2f)\n", m, r[1], r[NR] }'
