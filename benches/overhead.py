#!/usr/bin/env python3
"""What recording costs: cold starts with a recorder against cold starts without one.

A round is two starts without a recorder (cold bench), one with `cold trace --no-stacks`, one with `cold trace` (or one of
these two: --kinds), in random order. A recorded start is compared with the mean of the two of its round; these two with each other are the control (A/A).
On the machine's own disk, or on test disks (root), where files are shared with nobody and service times are known.
Writes docs/benchmarks/overhead.md. Results are kept as JSON below --work; a stopped benchmark goes on.
COLD=path of a release build, with cold-testdisk beside it.
"""

import argparse
import json
import os
import pathlib
import platform
import random
import signal
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benches"))
import simulate  # noqa: E402
from simulate import subjects  # noqa: E402

OWN = "own"
BUDGET = 1.03  # a cold start of Firefox without stacks
KINDS = {"--no-stacks": ["--no-stacks"], "with stacks": []}
FROM = 4000  # bootstrap resamples


class Overhead(simulate.Bench):
    def plain(self, argv):
        """Milliseconds to ready of a start without a recorder."""
        made = json.loads(self.cold("bench", "--json", "--evict", "files", "-r", "1", "--states", "cold", "--", *argv,
                                    ok=(0, 4)))
        return simulate.times(made)[0][0]

    def traced(self, argv, flags):
        made = json.loads(self.cold("trace", "--json", "--overwrite", "--evict", "files", "-o", self.work / "start.cold",
                                    *flags, "--", *argv))
        if made["headline"]["lost"]:
            raise RuntimeError(f"events were lost: {made['headline']['lost']}")
        return made["headline"]["ready"] / 1e6

    def round(self, argv):
        starts = {"A": lambda: self.plain(argv), "B": lambda: self.plain(argv)}
        for kind in self.options.kinds:
            starts[kind] = lambda flags=KINDS[kind]: self.traced(argv, flags)
        order = list(starts)
        random.shuffle(order)
        return {kind: starts[kind]() for kind in order}

    def rounds(self, disk, chosen):
        for name, argv in chosen.items():
            subjects.settle(argv, self.environment)
            key = f"{disk} {name}"
            while len(self.results.get(key, [])) < self.options.rounds and not self.over():
                self.keep(key, [*self.results.get(key, []), self.round(argv)])
                print(f"overhead: {key}: round {len(self.results[key])} of {self.options.rounds}", file=sys.stderr)

    def all(self, disk, chosen):
        if all(len(self.results.get(f"{disk} {n}", [])) >= self.options.rounds for n in chosen):
            return
        if disk == OWN:
            self.rounds(disk, chosen)
        else:
            self.on(disk, chosen, lambda _: self.rounds(disk, chosen))


def interval(ratios):
    """Median of the ratios, and the middle 95 % of the medians of resampled ones."""
    medians = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(FROM))
    return statistics.median(ratios), medians[FROM // 40], medians[-FROM // 40]


def cell(ratios):
    if len(ratios) < 2:
        return "not measured"
    return "{:.3f} [{:.3f} … {:.3f}], {} rounds".format(*interval(ratios), len(ratios))


def write(bench, names):
    random.seed(1)
    head = ["disk", "program", "untraced, ms", *(f"`{k}`" if k[0] == "-" else k for k in KINDS), "A/A"]
    rows, within = [], []
    for disk in bench.options.disks:
        for name in names:
            rounds = bench.results.get(f"{disk} {name}", [])
            if len(rounds) < 2:
                continue
            plain = [(r["A"] + r["B"]) / 2 for r in rounds]
            ratios = {kind: [r[kind] / p for r, p in zip(rounds, plain) if kind in r] for kind in KINDS}
            if len(ratios["--no-stacks"]) > 1 and interval(ratios["--no-stacks"])[2] < BUDGET:
                within.append(f"{name} on `{disk}`")
            rows.append([disk, name, f"{statistics.median(plain):.0f}",
                         *(cell(ratios[kind]) for kind in KINDS), cell([r["A"] / r["B"] for r in rounds])])
    text = ["# What recording costs", "",
            "`benches/overhead.py` writes this page. Cold starts with a recorder (`cold trace`) against cold starts without one "
            "(`cold bench`), in rounds of random order: two without, one with `--no-stacks`, one with stacks, or one of these. The ratio is that of a "
            "recorded start to the mean of the two others of its round: median over the rounds, and its 95 % interval "
            "(bootstrap). A/A is the ratio of those two. Time is the time to ready: the end of the program.", "",
            f"Linux {platform.release()}, {os.cpu_count()} CPUs; {time.strftime('%d %B %Y')}.", "",
            f"| {' | '.join(head)} |", "|" + " --- |" * len(head), *(f"| {' | '.join(row)} |" for row in rows), "",
            f"The whole interval without stacks lies below {BUDGET} for {', '.join(within) or 'none'}.", ""]
    bench.options.output.write_text("\n".join(text))
    print(f"overhead: wrote {bench.options.output}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subjects", default="firefox-esr")
    parser.add_argument("--disks", default=f"{OWN},sata-ssd,cloud")
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--kinds", default=",".join(KINDS), help="with which recorders (--kinds=--no-stacks)")
    parser.add_argument("--max-time", type=float, help="stop after so many seconds; go on with the same command")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/var/tmp/cold-bench-overhead"))
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/benchmarks/overhead.md")
    options = parser.parse_args()
    options.disks = options.disks.split(",")
    options.kinds = [kind for kind in KINDS if kind in options.kinds.split(",")]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options.work.mkdir(parents=True, exist_ok=True)
    bench = Overhead(options)
    chosen = subjects.make(bench.run, options.subjects.split(","))
    for disk in options.disks:
        bench.all(disk, chosen)
    write(bench, list(chosen))


if __name__ == "__main__":
    main()
