#!/bin/sh
# Spawn-to-exit of an empty static program as `cold bench` measures it, against a posix_spawn + waitpid
# loop in C with the same quiet time between starts, and that loop against itself (A/A), interleaved in
# one run. Usage: benches/spawn.sh [ROUNDS [STARTS [SPAWN_ROUNDS]]]; COLD=path of a release build.
# Then `cold spawn`'s own median against the same loop without a quiet time, in the same way.
# Prints the medians of every round and the median ratio (above 1: cold reports more). Budget: 1.05.
set -eu
rounds=${1:-7}
starts=${2:-100}
cold=${COLD:-$(ls -t target/*/release/cold target/release/cold 2>/dev/null | head -n 1)}
[ -x "$cold" ] || { echo "no release build of cold: cargo build --release, or set COLD" >&2; exit 2; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat > "$dir/empty.c" <<'C'
int main(void) { return 0; }
C
cat > "$dir/loop.c" <<'C'
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
extern char **environ;
static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static int order(const void *a, const void *b) {
    long long x = *(const long long *)a, y = *(const long long *)b;
    return (x > y) - (x < y);
}
int main(int argc, char **argv) {
    int n = atoi(argv[1]);
    long long *t = calloc(n, sizeof *t);
    for (int i = 0; i < n; i++) {
        struct timespec gap = {0, 20000000};
        if (argc < 4) nanosleep(&gap, 0);
        char *args[] = {argv[2], 0};
        pid_t pid;
        int status;
        long long start = now();
        if (posix_spawn(&pid, argv[2], 0, 0, args, environ)) return 1;
        waitpid(pid, &status, 0);
        t[i] = now() - start;
    }
    qsort(t, n, sizeof *t, order);
    printf("%lld\n", t[n / 2]);
}
C
cc -O2 -static -o "$dir/empty" "$dir/empty.c"
cc -O2 -static -o "$dir/loop" "$dir/loop.c"

measured() { # median in ns as cold bench reports it
    "$cold" -q bench --states warm --runs "$starts" --idle-gap 20 --export-json - -- "$dir/empty" |
        python3 -c 'import json, sys
t = sorted(json.load(sys.stdin)["results"][0]["times"]); print(int(t[len(t) // 2] * 1e9))'
}

echo "$rounds rounds of $starts starts, load $(cut -d' ' -f1 /proc/loadavg), $(nproc) CPUs"
i=0
while [ "$i" -lt "$rounds" ]; do
    a=$("$dir/loop" "$starts" "$dir/empty")
    c=$(measured)
    b=$("$dir/loop" "$starts" "$dir/empty")
    echo "$a $b $c" | awk '{ printf "loop %d ns  again %d ns (A/A %.3f)  cold %d ns  ratio %.3f\n",
        $1, $2, $2 / $1, $3, $3 / (($1 + $2) / 2) }' | tee -a "$dir/rounds"
    i=$((i + 1))
done
ratio() { # FILE
    awk '{ print $NF }' "$1" | sort -n | awk '{ r[NR] = $1 } END {
    m = NR % 2 ? r[(NR + 1) / 2] : (r[NR / 2] + r[NR / 2 + 1]) / 2
    printf "median ratio %.3f (min %.3f, max %.3f)\n", m, r[1], r[NR] }'
}
[ "$rounds" -eq 0 ] || ratio "$dir/rounds"

spawned() { # median in ns as cold spawn reports it, of its own empty programs in between
    "$cold" -q spawn --json --no-observe -n 2000 --method posix-spawn -- "$dir/empty" |
        python3 -c 'import json, sys
print(int(json.load(sys.stdin)["series"][0]["times"]["p50"]))'
}
echo "cold spawn"
i=0
while [ "$i" -lt "${3:-7}" ]; do
    a=$("$dir/loop" 2000 "$dir/empty" at-once)
    c=$(spawned)
    b=$("$dir/loop" 2000 "$dir/empty" at-once)
    echo "$a $b $c" | awk '{ printf "loop %d ns  again %d ns (A/A %.3f)  cold %d ns  ratio %.3f\n",
        $1, $2, $2 / $1, $3, $3 / (($1 + $2) / 2) }' | tee -a "$dir/spawned"
    i=$((i + 1))
done
ratio "$dir/spawned"
