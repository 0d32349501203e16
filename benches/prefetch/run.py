#!/usr/bin/env python3
"""Plans against no plan, warm starts and rival ways of reading ahead.

Writes docs/benchmarks/prefetch.md. Every result is kept as JSON below --work, so that a benchmark that
was stopped (or given --max-time) goes on where it was; a change of the program needs --fresh.
COLD=path of a release build with cold-launch (and for test disks cold-testdisk) beside it.
"""

import argparse
import json
import os
import pathlib
import platform
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
import types

import disks
import harm
import left
import page
import subjects
import traced

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWN = "own"
ARRANGED = "+arranged"  # the same disk, where `cold layout disk` has put what the plan reads one behind the other
DISKS = (OWN, "sata-ssd", "cloud", "hdd", f"cloud{ARRANGED}", f"hdd{ARRANGED}")
BLOCK = 5  # rounds between two looks at the clock; each block observes every command once more
MANY = 10  # rounds below which the page says so
LOGGED = 3  # recorded starts by the plan, and warm ones
SLOW = 2.0  # seconds of a cold start from which a block has one round


class Results:
    """JSON files of one directory, written at once."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def has(self, name):
        return (self.directory / f"{name}.json").exists()

    def get(self, name):
        return json.loads((self.directory / f"{name}.json").read_text()) if self.has(name) else None

    def put(self, name, value):
        part = self.directory / f"{name}.part"
        part.write_text(json.dumps(value))
        part.rename(self.directory / f"{name}.json")

    def all(self):
        return [json.loads(p.read_text()) for p in sorted(self.directory.glob("*.json"), key=lambda p: p.stat().st_ctime)]


class Enough(Exception):
    """The time is over; what is there is kept."""


class Bench:
    def __init__(self, options, tools, work):
        self.options, self.tools, self.work = options, tools, work
        self.run = work / "run"
        self.run.mkdir(parents=True, exist_ok=True)
        self.environment = subjects.environment(self.run)
        self.began = time.monotonic()
        self.recorded = 0

    def check_time(self):
        if self.options.max_time and time.monotonic() - self.began > self.options.max_time:
            raise Enough

    def cold(self, *words, ok=(0,)):
        done = subprocess.run([self.tools.cold, "-q", *map(str, words)], stdout=subprocess.PIPE, text=True,
                              env=self.environment, check=False)
        if done.returncode not in ok:
            raise RuntimeError(f"cold {shlex.join(map(str, words))} failed with {done.returncode}")
        return done.stdout

    def learn(self, store, argv):
        """The plan, learnt and, unless --quick, tuned."""
        exact = ["--exact-need"] if self.options.exact_need else []
        self.cold("prefetch", "--store", store, "learn", *exact, "--evict", self.options.evict, "--json", "--", *argv)
        if not self.options.quick:
            self.cold("prefetch", "--store", store, "tune", "--evict", self.options.evict, "--json", "--", *argv,
                      ok=(0, 3, 4))
        return json.loads(self.cold("prefetch", "--store", store, "show", "--json", "--", *argv))

    def arrange(self, store, argv):
        """Puts what the plan reads one behind the other; how long that took, by the clock."""
        began = time.monotonic()
        made = self.cold("layout", "disk", "--store", store, "--plan", pathlib.Path(argv[0]).name, "--json")
        return {"took_s": time.monotonic() - began, "told": [json.loads(line) for line in made.splitlines()]}

    def block(self, store, name, argv, rounds, seed):
        """Rounds of the plain command in three states, and of the rivals; which comes first is drawn."""
        lists = self.run / f"{name}.list"
        common = ["--json", "--evict", self.options.evict, "-r", rounds, "--seed", seed]
        # Each rival has what the launcher reads; it runs as part of the start.
        rivals = [w for r in page.RIVALS if r != "none" for w in ("-n", r)]
        lines = [shlex.join(map(str, [self.tools.rival, r, lists, *argv])) for r in page.RIVALS if r != "none"]
        calls = {
            "main": ["bench", *common, "--store", store, "--states", "cold,prefetched,warm", "--", *argv],
            "rivals": ["bench", *common, "--states", "cold", *rivals, *lines],
        }
        if self.options.no_rivals:
            del calls["rivals"]
        order = list(calls)
        random.Random(seed).shuffle(order)
        return {kind: json.loads(self.cold(*calls[kind], ok=(0, 4))) for kind in order}

    def subject(self, disk, name, argv, results):
        """Goes on with one subject on one disk until it has its rounds."""
        result = results.get(name)
        store = self.run / "plans"
        if result is None:
            self.check_time()
            print(f"prefetch: {disk}: {name}: learning", file=sys.stderr)
            if not subjects.settle(argv, self.environment):
                print(f"prefetch: {name} fails here and is left out", file=sys.stderr)
                return
            plan = self.learn(store, argv)
            result = {"disk": disk, "subject": name, "argv": argv, "tuned": not self.options.quick,
                      "exact": self.options.exact_need, "rounds": 0,
                      "plan": {k: v for k, v in plan.items() if k != "files"}, "blocks": [],
                      "used": [f["path"] for f in plan["files"] if f["kind"] != "block_device"],
                      "reads": reads_of(plan)}
            if disk.endswith(ARRANGED):
                result["arranged"] = self.arrange(store, argv)
            results.put(name, result)
        (self.run / f"{name}.list").write_text(result["reads"])
        while result["rounds"] < self.options.rounds:
            self.check_time()
            missing = self.options.rounds - result["rounds"]
            slow = (result["plan"]["learnt"]["cold_ready_ns"] or 0) / 1e9 > SLOW
            rounds = min(missing, 1 if slow else BLOCK)
            print(f"prefetch: {disk}: {name}: {result['rounds']} of {self.options.rounds} rounds", file=sys.stderr)
            result["blocks"].append(self.block(store, name, argv, rounds, 1000 + result["rounds"]))
            result["rounds"] += rounds
            results.put(name, result)
        if "logs" not in result:
            self.check_time()
            plan = json.loads(self.cold("prefetch", "--store", store, "show", "--json", "--", *argv))
            result["logged"] = asked_for(plan)
            launch = [self.tools.launch, "--store", store, "--", *argv]
            by_plan = [self.tables(self.logged("cold", launch)) for _ in range(LOGGED)]
            result["logs"] = [traced.judge(tables) for tables, _ in by_plan]
            result["causes_prefetched"] = [left.causes(diagnosis, tables) for tables, diagnosis in by_plan]
            warm = [self.tables(self.logged("warm", argv)) for _ in range(LOGGED)]
            result["causes_warm"] = [left.causes(diagnosis, tables) for tables, diagnosis in warm]
            result["bound"] = self.bound(store, argv, page.median(page.times(result["blocks"], "main", "warm")))
            results.put(name, result)

    def bound(self, store, argv, warm):
        """The plan's least time, with the measured warm starts, and recorded ones that tell what threads wait for."""
        if warm is None:
            return None
        exact = ["--exact-need"] if self.options.exact_need else []
        recorded = ["--recording", self.logged("cold", argv, *exact)]
        if exact:
            recorded += ["--warm-recording", self.logged("warm", argv)]
        shown = self.cold("prefetch", "--store", store, "show", "--json", "--warm", warm, *recorded, "--", *argv)
        return json.loads(shown)["bound"]

    def logged(self, state, argv, *flags):
        """A recorded start."""
        self.recorded += 1
        made = self.work / f"logged-{self.recorded % (2 * LOGGED)}.cold"
        self.cold("trace", "--overwrite", "-o", made, "--state", state, "--evict", self.options.evict, *flags, "--", *argv)
        return made

    def tables(self, recorded):
        """The tables of a recorded start, and its diagnosis."""
        tables = recorded.with_suffix(".csv")
        shutil.rmtree(tables, ignore_errors=True)
        self.cold("report", "--csv", tables, recorded)
        return tables, self.cold("diagnose", "--json", recorded)

    def own_disk(self, chosen):
        results = Results(self.work / "results" / OWN)
        for name, argv in chosen.items():
            self.subject(OWN, name, argv, results)

    def test_disk(self, name_of_disk, chosen):
        """The same command lines from a test disk."""
        preset = name_of_disk.removesuffix(ARRANGED)
        results = Results(self.work / "results" / name_of_disk)
        rest = {n: a for n, a in chosen.items()
                if (r := results.get(n)) is None or r["rounds"] < self.options.rounds or "logs" not in r}
        if not rest:
            return
        self.check_time()
        used = set()
        for name, argv in rest.items():
            used |= self.files_of(name, argv)
        # The inputs are copied as a whole; a copy of where they lie would hide the results behind it.
        used = {path for path in used if path != str(self.work) and not path.startswith(f"{self.work}/")}
        with disks.TestDisk(self.tools.testdisk, preset) as disk:
            print(f"prefetch: {name_of_disk}: copying", file=sys.stderr)
            left_out = {"plans", "plans-harm", *harm.FILES, *(() if "git" in rest else ("tree",))}
            pairs = disks.fill(disk, self.run, used, left_out)

            def work():
                if "git" in rest:
                    # The copies have times and inodes of their own, for which git would read all of them.
                    subjects.quietly(["git", "-C", self.run / "tree", "update-index", "-q", "--refresh"])
                for name, argv in rest.items():
                    # A disk made anew has no plan yet: what was measured with an older one stays.
                    if results.has(name):
                        self.learn(self.run / "plans", argv)
                        if name_of_disk != preset:
                            self.arrange(self.run / "plans", argv)
                    self.subject(name_of_disk, name, argv, results)

            try:
                finished = disks.inside(pairs, work)
            finally:
                os.sync()
            if not finished:
                raise Enough

    def files_of(self, name, argv):
        """What starts of the subject use, as seen on the own disk."""
        own = Results(self.work / "results" / OWN).get(name)
        if own is None:
            subjects.settle(argv, self.environment)
            store = self.work / "sets"
            self.cold("prefetch", "--store", store, "learn", "--starts", "2", "--state", "warm", "--json", "--", *argv)
            plan = json.loads(self.cold("prefetch", "--store", store, "show", "--json", "--", *argv))
            return {f["path"] for f in plan["files"] if f["kind"] != "block_device"}
        return set(own["used"])


def reads_of(plan):
    """The plan's reads in its order, for the rivals: "offset bytes path"."""
    reads = sorted((r["need_ns"], r["offset"], r["bytes"], f["path"])
                   for f in plan["files"] if f["kind"] == "regular" for r in f["reads"])
    return "".join(f"{offset} {size} {path}\n" for _, offset, size, path in reads)


def asked_for(plan):
    """What the plan asks the disk for: of files, and of the file system's own blocks."""
    sums = {"requests": 0, "bytes": 0, "block_requests": 0, "block_bytes": 0}
    for f in plan["files"]:
        kind = "block_" if f["kind"] == "block_device" else ""
        sums[f"{kind}requests"] += len(f["reads"])
        sums[f"{kind}bytes"] += sum(r["bytes"] for r in f["reads"])
    return sums


def find_tools(work):
    builds = sorted(ROOT.glob("target/*/release/cold"), key=lambda p: p.stat().st_mtime)
    cold = pathlib.Path(os.environ.get("COLD") or (builds and builds[-1]) or "")
    if not cold.is_file():
        sys.exit("no release build of cold: make, or set COLD")
    rival = work / "rival"
    subprocess.run(["cc", "-O2", "-static", "-pthread", "-o", rival, ROOT / "benches/prefetch/rival.c"], check=True)
    return types.SimpleNamespace(cold=cold, launch=cold.with_name("cold-launch"),
                                 testdisk=cold.with_name("cold-testdisk"), rival=rival)


def estimate(options, chosen):
    """A rough time, said beforehand: minutes per subject by disk, from runs on a machine with 2 cores."""
    per_round = {"own": 8, "sata-ssd": 15, "cloud": 40, "hdd": 90}
    seconds = sum((per_round[d.removesuffix(ARRANGED)] * options.rounds + (30 if options.quick else 150)) * len(chosen)
                  * (0.35 if d == OWN else 1) for d in options.disks)
    print(f"prefetch: {len(chosen)} subjects ({', '.join(chosen)}) on {', '.join(options.disks)}, {options.rounds} "
          f"rounds: about {seconds / 60:.0f} minutes in all, less what is done already", file=sys.stderr)


def facts(results):
    """Machine, kernel and disks, as the reports say."""
    lines = []
    seen = set()
    for r in results:
        machine = next((b["main"]["machine"] for b in r["blocks"]), None)
        if not machine:
            continue
        if not lines:
            lines += [f"- {machine['cpu']}, {machine['memory'] / 2**30:.0f} GiB, Linux {platform.release()}; "
                      f"{r['blocks'][0]['main']['started'][:10]}", f"- Eviction: {machine['eviction']}"]
        if r["disk"] not in seen:
            seen.add(r["disk"])
            device = r["plan"].get("device") or {}
            lines.append(f"- disk `{r['disk']}`: {'; '.join(machine['devices'])}; measured: "
                         f"{device.get('latency_ns', 0) / 1e3:.0f} µs for a scattered read, "
                         f"{1e3 / device['ns_per_byte']:.0f} MB/s" if device.get("ns_per_byte") else "")
    names = list(subjects.argvs(pathlib.Path("/")))
    for disk in (d for d in DISKS if d in seen or not d.endswith(ARRANGED)):
        there = {r["subject"]: r["rounds"] for r in results if r["disk"] == disk}
        if missing := [n for n in names if n not in there]:
            lines.append(f"- not measured on `{disk}`: {', '.join(missing)}")
        if few := [f"{n} ({k})" for n, k in there.items() if k < MANY]:
            lines.append(f"- fewer than {MANY} rounds on `{disk}`: {', '.join(few)}")
    return lines


def write(options, work):
    results = [r for d in DISKS for r in Results(work / "results" / d).all() if r["blocks"]]
    rows = Results(work / "results" / "harm").all()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page.page(results, rows, [*facts(results), *(f"- {n}" for n in options.note)]))
    print(f"prefetch: wrote {options.output}", file=sys.stderr)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--subjects", default="", help="comma-separated; all that are installed by default")
    parser.add_argument("--disks", default=OWN, help=f"comma-separated of {', '.join(DISKS)} (root)")
    parser.add_argument("--quick", action="store_true", help="plans are learnt, not tuned")
    parser.add_argument("--exact-need", action="store_true", help="plans are learnt with cold prefetch learn --exact-need")
    parser.add_argument("--no-rivals", action="store_true", help="leave out table 2")
    parser.add_argument("--no-harm", action="store_true", help="leave out table 3")
    parser.add_argument("--evict", default="auto", choices=["auto", "all", "files"])
    parser.add_argument("--max-time", type=float, help="stop after so many seconds; go on with the same command")
    parser.add_argument("--note", action="append", default=[], help="a line for the page: what was special")
    parser.add_argument("--page-only", action="store_true", help="measure nothing, write what is there")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    # Not below /tmp, which is no disk on many machines.
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/var/tmp/cold-bench-prefetch"))
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/benchmarks/prefetch.md")
    options = parser.parse_args()
    options.disks = options.disks.split(",")
    if unknown := set(options.disks) - set(DISKS):
        parser.error(f"unknown disks: {', '.join(unknown)}")
    return options


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.fresh:
        shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True, exist_ok=True)
    if options.page_only:
        write(options, options.work)
        return
    bench = Bench(options, find_tools(options.work), options.work)
    chosen = subjects.make(bench.run, [s for s in options.subjects.split(",") if s])
    estimate(options, chosen)
    try:
        for disk in options.disks:
            bench.own_disk(chosen) if disk == OWN else bench.test_disk(disk, chosen)
        if OWN in options.disks and not options.no_harm:
            bench.check_time()
            done = Results(options.work / "results" / "harm")
            checks = harm.Harm(bench.tools, bench.run, options.rounds, bench.environment, options.evict)
            harm.measure(checks, chosen, bench.run / "plans", done, bench.check_time)
    except Enough:
        print("prefetch: stopped before the end; the same command goes on", file=sys.stderr)
    write(options, options.work)


if __name__ == "__main__":
    main()
