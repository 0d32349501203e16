#!/usr/bin/env python3
"""Predicted starts against measured ones, on test disks, with several read-ahead windows, and with plans.

Each subject is recorded on the test disk that adds nothing, cold with exact needs and warm, and `cold probe pauses` measures
what waits cost it by their length. From that, `cold simulate --warm --pauses` predicts its start on each other test disk
with each window. Then it is started there (cold bench, without any recorder), and the medians are
compared. On the machine's own disk libraries would be cached that others use.
Root only. Writes docs/benchmarks/simulate.md. Results are kept as JSON below --work; a stopped benchmark goes on.
COLD=path of a release build with cold-testdisk beside it.
"""

import argparse
import functools
import itertools
import json
import os
import pathlib
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benches"), str(ROOT / "benches/prefetch")]
import disks  # noqa: E402
import lateness  # noqa: E402
import subjects  # noqa: E402

GONE = {"refaults", "pages_reclaimed", "caches_dropped"}  # taints of a start whose pages went while it went on
WARM = 3  # recorded warm starts, an odd number
ATTEMPTS = 3  # at a cell all of whose starts were disturbed, at each warm recording and at each lesson
SLOW = 10.0  # seconds of a start from which one round has to do
QUICK = 8.0  # seconds that all measured starts take at least, as far as four times the rounds reach: short ones vary most


class Bench:
    def __init__(self, options):
        self.options, self.work = options, options.work
        self.run = self.work / "run"
        self.run.mkdir(parents=True, exist_ok=True)
        self.environment = subjects.environment(self.run)
        self.kept = self.work / "results.json"
        self.results = json.loads(self.kept.read_text()) if self.kept.exists() else {}
        self.began = time.monotonic()
        cold = os.environ.get("COLD")
        if not cold or not pathlib.Path(cold).is_file():
            sys.exit("COLD names no release build of cold")
        self.cold_path = pathlib.Path(cold)

    def keep(self, key, value):
        """At once and whole; results of a child count as the parent's."""
        if self.kept.exists():
            self.results = json.loads(self.kept.read_text())
        self.results[key] = value
        part = self.kept.with_suffix(".part")
        part.write_text(json.dumps(self.results))
        part.rename(self.kept)

    def over(self):
        return self.options.max_time and time.monotonic() - self.began > self.options.max_time

    def cold(self, *words, ok=(0,)):
        done = subprocess.run([self.cold_path, "-q", *map(str, words)], stdout=subprocess.PIPE, text=True,
                              env=self.environment, check=False)
        if done.returncode not in ok:
            raise RuntimeError(f"cold {' '.join(map(str, words))} failed with {done.returncode}")
        return done.stdout

    def files_of(self, name, argv):
        """What starts of it use."""
        if f"used {name}" not in self.results:
            subjects.settle(argv, self.environment)
            store = self.work / "plans"
            self.cold("prefetch", "--store", store, "learn", "--starts", "2", "--state", "warm", "--json", "--", *argv)
            plan = json.loads(self.cold("prefetch", "--store", store, "show", "--json", "--", *argv))
            self.keep(f"used {name}", [f["path"] for f in plan["files"] if f["kind"] != "block_device"])
        return {p for p in self.results[f"used {name}"] if p != str(self.work) and not p.startswith(f"{self.work}/")}

    def record(self, chosen):
        rest = {name: argv for name, argv in chosen.items() if f"recorded {name}" not in self.results}

        def work(_):
            for name, argv in rest.items():
                if self.over():
                    return
                subjects.settle(argv, self.environment)
                for n in range(self.options.recordings):
                    print(f"simulate: {name}: recording {n + 1}", file=sys.stderr)
                    self.cold("trace", "--overwrite", "--evict", "files", "--exact-need", "--no-stacks", "-o",
                              self.recording(name, n), "--", *argv)
                self.record_warm(name, argv)
                self.pause(name, argv)
                self.keep(f"recorded {name}", self.options.recordings)

        if rest:
            self.on("fast", rest, work)

    def record_warm(self, name, argv):
        """The middle one of three: one alone may be a slow one, and what programs compute is taken from it."""
        took = []
        for n in range(ATTEMPTS * WARM):
            at = self.recording(name, f"warm-{n}")
            self.cold("trace", "--overwrite", "--state", "warm", "--no-stacks", "-o", at, "--", *argv)
            # Others may have emptied the cache before it: then it tells nothing, and there is no answer.
            if self.cold("simulate", self.recording(name, 0), "--json", "--disk", "fast", "--warm", at, ok=(0, 2)):
                took.append((json.loads(self.cold("report", "--json", at))["headline"]["ready"], at))
            if len(took) == WARM:
                break
        else:
            sys.exit(f"{name}: no {WARM} of {ATTEMPTS * WARM} warm starts found their pages in the cache")
        shutil.rmtree(self.recording(name, "warm"), ignore_errors=True)
        sorted(took)[WARM // 2][1].rename(self.recording(name, "warm"))

    def plans(self, preset, chosen):
        """Learns a plan on a disk, predicts from the first recorded start what it brings there, and measures that."""
        rest = {n: a for n, a in chosen.items() if f"plan {preset} {n}" not in self.results}
        if not rest or self.over():
            return

        def work(disk):
            for name, argv in rest.items():
                if self.over():
                    return
                print(f"simulate: {preset}: {name}: plan", file=sys.stderr)
                subjects.settle(argv, self.environment)
                store, kept = self.work / f"plans-{preset}", self.work / f"kept-{preset}-{name}"
                for _ in range(ATTEMPTS):
                    shutil.rmtree(kept, ignore_errors=True)
                    self.cold("prefetch", "--store", store, "learn", "--fresh", "--exact-need", "--evict", "files",
                              "--keep", kept, "--json", "--", *argv)
                    told = self.predict_plan(name, argv, preset, store, kept)
                    if told:
                        break
                else:
                    sys.exit(f"{name}: the warm start of {ATTEMPTS} lessons did not find its pages in the cache")
                # Ratios of single starts would tell nothing.
                rounds = max(self.options.rounds, self.rounds(told[0]))
                made = json.loads(self.cold("bench", "--json", "--evict", "files", "-r", rounds, "--store", store, "--states",
                                            "cold,prefetched,warm", "--", *argv, ok=(0, 4)))
                took = {made["series"][n]["state"]: times(made, n) for n in range(len(made["series"]))}
                self.keep(f"plan {preset} {name}", {
                    "told": told, "took": [took["cold"], took["prefetched"]], "warm": took["warm"],
                    "computes": self.computes(kept / "start-2.cold")})

        self.on(preset, rest, work)

    def predict_plan(self, name, argv, preset, store, kept):
        """The times (ms) without and with the plan, on a test disk that is as late as it was in the program's cold starts with
        this window. How late it is while a plan is read, many requests at once, says nothing of a request that is waited for.
        None where others had emptied the cache before the lesson's warm start."""
        late = max(self.results.get(f"late {preset} {name} 128") or 0, 0)
        ask = ["simulate", "--store", store, kept / "start-1.cold", "--plan", pathlib.Path(argv[0]).name, "--policy", self.policy(),
               "--read-ahead-kb", "128", "--disk", f"{preset}+{late:.3f}", "--json", *self.law(name)]
        text = self.cold(*ask, "--warm", kept / "start-2.cold", ok=(0, 2))
        if not text:
            return None
        rows = {r["reader"]: r for r in reversed(json.loads(text)["disks"][0]["rows"])}
        return [rows[reader]["time_ns"] / 1e6 for reader in ("kernel", "plan")]

    def on(self, preset, chosen, work):
        """Does work(disk) where the files of these subjects are those of a test disk."""
        used = set().union(*(self.files_of(name, argv) for name, argv in chosen.items()))
        with disks.TestDisk(self.cold_path.with_name("cold-testdisk"), preset, punctual=True) as disk:
            print(f"simulate: {preset}: copying", file=sys.stderr)
            pairs = disks.fill(disk, self.run, used, set() if "git" in chosen else {"tree"})
            # What it makes lies beside the inputs, not on the disk.
            done = disks.inside(pairs, lambda: work(disk))
            self.results = json.loads(self.kept.read_text())
            os.sync()
            if not done:
                sys.exit(f"the part on {preset} failed: see above")

    def pause(self, name, argv):
        """Measures what waits cost this program by their length."""
        print(f"simulate: {name}: pauses", file=sys.stderr)
        text = self.cold("probe", "pauses", "--json", "--repeat", self.options.pauses, "--", *argv)
        self.paused(name).write_text(text)
        self.keep(f"pauses {name}", json.loads(text)["result"]["found"])

    def paused(self, name):
        return self.work / f"{name}-pauses.json"

    def law(self, name):
        """Flags by which a simulation takes it; none where the program's starts did not tell."""
        found = self.results.get(f"pauses {name}")
        return ["--pauses", self.paused(name)] if found and "most_ns" in found["cooling"] else []

    def recording(self, name, n):
        return self.work / f"{name}-{n}.cold"

    @staticmethod
    def knob(disk):
        return pathlib.Path(f"/sys/block/{pathlib.Path(disk.info['device']).name}/queue/read_ahead_kb")

    def predict(self, name, preset, window, late=0.0):
        """Of the start by each recording its time (ms), its requests and the bytes that it reads, on a test disk whose reads are
        over so many milliseconds late."""
        out = []
        for n in range(self.options.recordings):
            ask = ["simulate", self.recording(name, n), "--json", "--policy", self.policy(), "--read-ahead-kb", window,
                   "--disk", f"{preset}+{late:.3f}", *self.law(name)]
            made = json.loads(self.cold(*ask, "--warm", self.recording(name, "warm")))
            row = next(r for r in made["disks"][0]["rows"] if r["reader"] == "kernel" and r["read_ahead_bytes"] == window << 10)
            out.append((row["time_ns"] / 1e6, row["requests"], row["read_bytes"]))
        return out

    def warm(self, name):
        """Milliseconds of the recorded warm start: what predictions took for computing."""
        key = f"warm {name}"
        if key not in self.results:
            self.keep(key, self.computes(self.recording(name, "warm")))
        return self.results[key]

    def computes(self, recording):
        """Milliseconds that a recorded warm start takes on a disk that adds nothing."""
        made = json.loads(self.cold("simulate", recording, "--json", "--policy", self.policy(), "--read-ahead-kb", "128",
                                    "--disk", "fast"))
        return next(r["time_ns"] / 1e6 for r in made["disks"][0]["rows"] if r["reader"] == "kernel")

    def policy(self):
        major, minor = map(int, platform.release().split(".")[:2])
        known = [(5, 10), (6, 1), (6, 12), (6, 16), (6, 17), (6, 18), (7, 0)]
        at = max(v for v in known if v <= (major, minor))
        return f"linux-{at[0]}" if at[0] == 7 else f"linux-{at[0]}.{at[1]}"

    def rounds(self, expected_ms):
        """How often a start of so many milliseconds is measured."""
        if expected_ms / 1e3 > SLOW:
            return 1
        return max(self.options.rounds, min(4 * self.options.rounds, round(QUICK * 1e3 / expected_ms)))

    def measure(self, name, argv, preset, disk):
        for window in self.options.windows:
            key = f"{preset} {name} {window}"
            if key in self.results or self.over():
                continue
            self.knob(disk).write_text(str(window))
            rounds = self.rounds(statistics.median(p[0] for p in self.predict(name, preset, window)))
            ask = ["bench", "--json", "--evict", "files", "-r", rounds, "--states", "cold,warm", "--", *argv]
            for attempt in range(ATTEMPTS):
                print(f"simulate: {preset}: {name}: {window} KiB, {rounds} rounds{' again' * attempt}", file=sys.stderr)
                text, late = lateness.during(disk, functools.partial(self.cold, *ask, ok=(0, 4)))
                made = json.loads(text)
                took = {made["series"][n]["state"]: times(made, n) for n in range(len(made["series"]))}
                if not spoilt(took["cold"]):
                    break
            self.keep(f"late {key}", late)
            self.keep(f"predicted {key}", self.predict(name, preset, window, max(late, 0)))
            self.keep(f"warm {key}", took["warm"])
            self.keep(key, took["cold"])

    def test_disk(self, preset, chosen):
        rest = {n: a for n, a in chosen.items()
                if any(f"{preset} {n} {w}" not in self.results for w in self.options.windows)}
        for name in chosen:
            self.warm(name)
        if not rest or self.over():
            return

        def work(disk):
            for name, argv in rest.items():
                # Files of a copy have times of their own: caches that name them are made anew.
                subjects.settle(argv, self.environment)
                self.measure(name, argv, preset, disk)

        self.on(preset, rest, work)


def times(report, series=0):
    """Time in ms, requests, bytes and taints of the undisturbed runs; of all of them, where none is."""
    all_runs = [r for r in report["runs"] if r["series"] == series]
    runs = [r for r in all_runs if not r["taints"]] or all_runs
    return [(r["ready"] / 1e6, r["read_requests"], r["read_bytes"], sorted({t["kind"] for t in r["taints"]}))
            for r in runs]


def spoilt(took):
    """What disturbed each of these starts, in a word or two; empty where one of them is evidence."""
    if not all(t[3] for t in took):
        return ""
    return "pages went" if all(GONE & set(t[3]) for t in took) else "disturbed"


def slower(results, preset, name, window):
    """By how many milliseconds warm starts between the measured cold ones took longer than the recorded one."""
    return statistics.median(t[0] for t in results[f"warm {preset} {name} {window}"]) - results[f"warm {name}"]


def table(results, options, names):
    rows, worst = [], {}
    for preset in options.disks:
        for name in names:
            cells = []
            for window in options.windows:
                key = f"{preset} {name} {window}"
                took, told = results.get(key), results.get(f"predicted {key}")
                if not took or not told:
                    cells.append("")
                    continue
                m = statistics.median(t[0] for t in took)
                p = statistics.median(t[0] for t in told) + slower(results, preset, name, window)
                off = p / m - 1
                why = spoilt(took)
                if not why:
                    worst.setdefault(preset, []).append(abs(off))
                cells.append(f"{m:.0f} → {p:.0f} ({off * 100:+.0f} %{', ' * bool(why)}{why})")
            if any(cells):
                rows.append(f"| {preset} | {name} | {' | '.join(cells)} |")
    head = [f"| disk | program | {' | '.join(f'{w} KiB' for w in options.windows)} |",
            "| --- | --- |" + " --- |" * len(options.windows)]
    said = [f"- `{d}`: {within(es)}." for d, es in worst.items()]
    if any("pages went" in row for row in rows):
        said.append("- Where *pages went*, they were reclaimed while each of the measured starts went on (`cold bench` marks "
                    "these), and read again: not counted.")
    if any("disturbed" in row for row in rows):
        said.append(f"- *Disturbed*: `cold bench` marked each start of {ATTEMPTS} series: not counted.")
    return [*head, *rows, "", *said]


def within(errors):
    """How exact that is, in words."""
    return (f"{sum(e <= .1 for e in errors)} of {len(errors)} within 10 %, median error {statistics.median(errors) * 100:.0f} %, "
            f"largest {max(errors) * 100:.0f} %")


def read_table(results, options, names):
    """What was read: requests and MB, measured → predicted. Disturbed starts count for nothing."""
    rows, off = [], {"requests": [], "bytes": []}
    for preset in options.disks:
        for name in names:
            cells = []
            for window in options.windows:
                took, told = (results.get(f"{before}{preset} {name} {window}") for before in ("", "predicted "))
                if not took or not told or spoilt(took):
                    cells.append(spoilt(took) if took and told else "")
                    continue
                parts = []
                for at, what, unit in ((1, "requests", 1), (2, "bytes", 1e6)):
                    (m, p), digits = ((statistics.median(t[at] for t in ts) / unit for ts in (took, told)), 0 if unit == 1 else 1)
                    off[what].append(abs(p / m - 1))
                    parts.append(f"{m:,.{digits}f} → {p:,.{digits}f} ({(p / m - 1) * 100:+.1f} %)")
                cells.append(", ".join(parts))
            if any(cells):
                rows.append(f"| {preset} | {name} | {' | '.join(cells)} |")
    if not rows:
        return []
    return ["", "## What was read", "", "Requests and MB, medians of the same starts, measured → predicted.", "",
            f"| disk | program | {' | '.join(f'{w} KiB' for w in options.windows)} |",
            "| --- | --- |" + " --- |" * len(options.windows), *rows, "",
            *(f"- {what}: {sum(e <= .05 for e in es)} of {len(es)} within 5 %, median error {statistics.median(es) * 100:.1f} %, "
              f"largest {max(es) * 100:.0f} %" for what, es in off.items() if es)]


def plan_table(results, options, names):
    rows, off = [], []
    for preset in dict.fromkeys([*options.disks, *options.plans.split(",")]):
        for name in names:
            one = results.get(f"plan {preset} {name}")
            if not one:
                continue
            took = [statistics.median(t[0] for t in state) for state in one["took"]]
            # By as much as the machine computes slower, or faster, than when the warm start was recorded.
            slower = statistics.median(t[0] for t in one["warm"]) - one["computes"]
            told = [t + slower for t in one["told"]]
            is_ratio, told_ratio = took[1] / took[0], told[1] / told[0]
            off.append(abs(told_ratio / is_ratio - 1))
            rows.append(f"| {preset} | {name} | {took[0]:.0f}, {took[1]:.0f} | {told[0]:.0f}, {told[1]:.0f} | "
                        f"{is_ratio:.2f}, {told_ratio:.2f} ({(told_ratio / is_ratio - 1) * 100:+.0f} %) |")
    if not rows:
        return []
    return ["", "## With a plan", "",
            "Learnt on the disk itself with exact needs (`cold prefetch learn --exact-need`), not tuned; predicted from the "
            "first and, for what is computed, the second of the starts that it was learnt from, and raised by as much as warm "
            "starts in turn with the measured ones take longer.", "",
            "| disk | program | measured cold, prefetched, ms | predicted | ratio measured, predicted |",
            "| --- | --- | --- | --- | --- |", *rows, "",
            f"{sum(e <= .15 for e in off)} of {len(off)} ratios within 15 %."]


def late_ms(results, options, preset, name):
    """By how many milliseconds the disk was late in each window, in words."""
    each = (results.get(f"late {preset} {name} {window}") for window in options.windows)
    return [f"{late:.3f}" for late in each if late is not None]


def laws(bench, names):
    """What waits were taken to cost, in words."""
    told = []
    for name in names:
        law = (bench.results.get(f"pauses {name}") or {}).get("cooling", {})
        if "most_ns" in law:
            told.append(f"{name} {law['most_ns'] / 1e6:.2f}, {law['sleep_ns'] / 1e6:.1f}, {law['work_ns'] / 1e6:.1f}")
        else:
            told.append(f"{name} not told")
    return ("What a program computes longer after a wait at most, the wait by which that is 63 % of it, and the work by "
            f"which 63 % of it is over, in ms: {'; '.join(told)}.")


def write(bench, names):
    options = bench.options
    counts = sorted({len(v) for k, v in bench.results.items() if k.split(" ")[0] in options.disks and isinstance(v, list)
                     and len(v) > 1})
    rounds = " to ".join(map(str, sorted({counts[0], counts[-1]}))) if counts else str(options.rounds)
    late = "; ".join(f"`{d}` " + ", ".join(f"{n} {' '.join(each)}" for n in names
                                           if (each := late_ms(bench.results, options, d, n))) for d in options.disks)
    shares = [1 + slower(bench.results, *key) / bench.results[f"warm {key[1]}"]
              for key in itertools.product(options.disks, names, options.windows)
              if f"warm {key[0]} {key[1]} {key[2]}" in bench.results]
    computed = f"warm starts took {min(shares):.2f} to {max(shares):.2f} of the recorded time" if shares else "not measured"
    text = ["# Predicted and measured starts", "",
            "`benches/simulate.py` writes this page. Each program is recorded on the test disk that adds nothing, cold with "
            "exact needs and warm, and stopped again and again (`cold probe pauses`); `cold simulate --warm --pauses` predicts its "
            "start on each other test disk with each `read_ahead_kb`; then it is started there cold, without a "
            "recorder. Warm starts are made in turn with the cold ones: by as much as they take longer than the recorded warm one, "
            "a prediction is raised, because the machine does not always compute as fast as when it recorded "
            f"({computed}).", "",
            f"Linux {platform.release()}, {os.cpu_count()} CPUs; {time.strftime('%d %B %Y')}. Time to ready in ms: median "
            f"of {rounds} measured starts (the quicker the more, one where it takes more than {SLOW:.0f} s) → median prediction "
            f"from {options.recordings} recordings. The disk is punctual: in the measured starts the mean read was over so many ms "
            "after its figures ask for it, by the kernel's own counts (`benches/lateness.py`), which predictions take; in windows "
            f"of {', '.join(map(str, options.windows))} KiB: {late}. {laws(bench, names)}", "",
            *table(bench.results, options, names), *read_table(bench.results, options, names),
            *plan_table(bench.results, options, names), ""]
    options.output.write_text("\n".join(text))
    print(f"simulate: wrote {options.output}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subjects", default="python3,java,node,firefox-esr,chromium")
    parser.add_argument("--disks", default="sata-ssd,cloud,hdd")
    parser.add_argument("--windows", default="16,128,512,2048", help="read_ahead_kb")
    parser.add_argument("--plans", default="sata-ssd,cloud", help="test disks on which plans are learnt and measured, too")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--recordings", type=int, default=3)
    parser.add_argument("--pauses", type=int, default=3, help="rounds of cold probe pauses")
    parser.add_argument("--max-time", type=float, help="stop after so many seconds; go on with the same command")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/var/tmp/cold-bench-simulate"))
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/benchmarks/simulate.md")
    options = parser.parse_args()
    options.disks, options.windows = options.disks.split(","), [int(w) for w in options.windows.split(",")]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options.work.mkdir(parents=True, exist_ok=True)
    bench = Bench(options)
    chosen = subjects.make(bench.run, options.subjects.split(","))
    for name, argv in chosen.items():
        bench.files_of(name, argv)
    bench.record(chosen)
    recorded = {n: a for n, a in chosen.items() if f"recorded {n}" in bench.results}
    for preset in options.disks:
        bench.test_disk(preset, recorded)
    for preset in options.plans.split(",") if options.plans else []:
        bench.plans(preset, recorded)
    write(bench, list(recorded))


if __name__ == "__main__":
    main()
