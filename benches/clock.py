#!/usr/bin/env python3
"""How far need times are the same whatever the disk: one program recorded warm and cold, with read-ahead of nothing,
128 KiB and 8 MiB, each page's need time compared with that of the first warm start. And of the plans that each cold start
makes together with another warm one.

Writes its table into docs/concepts/dependency-clock.md with --write. Root only (it sets read_ahead_kb of the disk and
puts it back). usage: benches/clock.py [--write] [--of PREFIX] DISK -- COMMAND…   (DISK as in /sys/block)

With --disks the same on test disks, several starts of each kind: COLD=… benches/clock.py --disks fast,cloud --subjects node
"""

import argparse
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benches"))
import simulate  # noqa: E402

PAGE = ROOT / "docs/concepts/dependency-clock.md"
ON_ONE = "<!-- benches/clock.py writes this -->\n", "<!-- end -->"
ON_DISKS = "<!-- benches/clock.py --disks writes this -->\n", "<!-- end of it -->"
HEAD = ["start", "ready, ms", "by the clock", "pages", "wall clock", "dependency clock", "scaled", "with a warm start",
        "scaled"]
STARTS = [("warm", None), ("warm", None), ("cold", 128), ("cold", 128), ("cold", 0), ("cold", 8192)]


def needs(*recordings, prefix):
    """Ready by clock and wall, and of each page both times; of a cold and a warm start those of the plan that both make."""
    example = ["cargo", "run", "--quiet", "--release", "-p", "cold-prefetch", "--example", "need_times", "--", *recordings]
    pages, ready = {}, None
    for line in subprocess.run(example, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines():
        path, page, clock, wall = line.split("\t")
        if path == "ready":
            ready = (float(clock), float(wall))
        elif path.startswith(prefix):
            pages[path, int(page)] = (float(clock), float(wall))
    return ready, pages


def spread(differences, ready):
    differences = sorted(abs(d) * 100 / ready for d in differences)
    return f"{statistics.median(differences):.1f} and {differences[len(differences) * 9 // 10]:.1f} %"


def compared(rows, reference, reference_ready):
    """Cells of a table: of each (name, starts) by the wall clock and by this one, as it is and scaled, the middle start of
    several; each start is a (ready, pages) from `needs`, and that of its plan, or None."""
    def off(ready, pages, which=0):
        both = [(pages[k][which], reference[k]) for k in pages if k in reference]
        scale = reference_ready / ready[0]
        return [p - r for p, r in both], [p * scale - r for p, r in both]

    def cells(start, plan):
        return [*start[0][::-1], sum(k in reference for k in start[1]), off(*start, which=1)[0], *off(*start),
                *(off(*plan) if plan else ())]

    for name, starts in rows:
        middle = sorted((cells(*s) for s in starts), key=lambda c: statistics.fmean(map(abs, c[4])))[len(starts) // 2]
        wall, clock, pages, *differences = middle
        told = [spread(d, reference_ready) for d in differences]
        yield [name, f"{wall:.0f}", f"{clock:.0f}", f"{pages:,}", *told, *[""] * (len(HEAD) - 4 - len(told))]


class Disks(simulate.Bench):
    """The same on test disks, with the subjects of benches/simulate.py."""

    def starts(self, chosen):
        for preset in self.options.disks.split(","):
            rest = {name: argv for name, argv in chosen.items() if f"clock {preset} {name}" not in self.results}
            if rest and not self.over():
                self.on(preset, rest, lambda disk: self.record_all(disk, rest))

    def record_all(self, disk, rest):
        for name, argv in rest.items():
            if self.over():
                return
            print(f"clock: {disk.preset}: {name}", file=sys.stderr)
            simulate.subjects.settle(argv, self.environment)
            made = {}
            for state, ahead in dict.fromkeys(STARTS):
                self.knob(disk).write_text("128" if ahead is None else str(ahead))
                for n in range(self.options.repeat):
                    kind = f"{state}, {ahead} KiB" if ahead is not None else state
                    at = self.work / f"{disk.preset}-{name}-{kind}-{n}.cold".replace(" ", "")
                    self.cold("trace", "--overwrite", "--state", state, "--evict", "files", "--no-stacks", "-o", at, "--", *argv)
                    made.setdefault(kind, []).append(str(at))
            # They are read later: on this disk is nothing but what the programs need.
            self.keep(f"clock {disk.preset} {name}", made)

    def tables(self, chosen):
        for name in chosen:
            rows, warm = [], []
            for preset in self.options.disks.split(","):
                kinds = self.results.get(f"clock {preset} {name}", {})
                for state, made in kinds.items():
                    plans = [None if state == "warm" else needs(*both, prefix=self.options.of)
                             for both in zip(made, kinds["warm"], strict=True)]
                    starts = [needs(at, prefix=self.options.of) for at in made]
                    rows.append((f"{preset}, {state}", list(zip(starts, plans, strict=True))))
                    warm += starts if state == "warm" else []
            if not warm:
                continue
            needed = {}
            for _, pages in warm:
                for page, (need, _) in pages.items():
                    needed.setdefault(page, []).append(need)
            # What most warm starts touched: of the others some only mapped it around a fault.
            reference = {page: statistics.median(times) for page, times in needed.items() if 2 * len(times) > len(warm)}
            ready = statistics.median(ready[0] for ready, _ in warm)
            yield name, list(compared(rows, reference, ready))


def on_disks(given):
    given.work.mkdir(mode=0o700, parents=True, exist_ok=True)
    bench = Disks(given)
    chosen = simulate.subjects.make(bench.run, given.subjects.split(","))
    bench.starts(chosen)
    text = (f"Linux {platform.release()}, pages of files below "
            f"{given.of}; differences from the median of the warm starts on all these disks as parts of its ready: median, and "
            f"what nine tenths of the pages keep; the middle one of {given.repeat} starts. With a warm start: by the plan that "
            "it makes with one of the warm starts on its disk.\n")
    head = ["disk, start", *HEAD[1:]]
    for name, rows in bench.tables(chosen):
        text += f"\n`{name}`:\n\n" + table(head, rows) + "\n"
    return text


def table(head, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into the documentation")
    parser.add_argument("--of", default="/usr", help="only pages of files below this")
    parser.add_argument("--cold", default=None, help="the release build to use")
    parser.add_argument("--disks", help="these test disks instead, separated by commas (COLD=, as benches/simulate.py has it)")
    parser.add_argument("--subjects", default="python3,node,firefox-esr", help="what is started on them")
    parser.add_argument("--repeat", type=int, default=3, help="starts of each kind on them")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/var/tmp/cold-clock-bench"))
    parser.add_argument("--max-time", type=float, default=0, help="seconds until no further program is begun")
    parser.add_argument("disk", nargs="?")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.disks:
        put(on_disks(given), ON_DISKS, given.write)
    elif given.disk:
        put(on_one(given), ON_ONE, given.write)
    else:
        parser.error("DISK -- COMMAND…, or --disks")


def put(text, between, write):
    if not write:
        return print(text)
    begin, end = between
    head, _, rest = PAGE.read_text().partition(begin)
    PAGE.write_text(head + begin + "\n" + text + "\n" + end + rest.partition(end)[2])


def on_one(given):
    cold = given.cold or max(ROOT.glob("target/*/release/cold"), key=lambda p: p.stat().st_mtime)
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    knob = pathlib.Path(f"/sys/block/{given.disk}/queue/read_ahead_kb")
    before = knob.read_text()
    rows, warm = [], []
    with tempfile.TemporaryDirectory() as place:
        try:
            for n, (state, ahead) in enumerate(STARTS):
                knob.write_text(str(ahead) if ahead is not None else before)
                recording = f"{place}/{n}.cold"
                trace = [cold, "trace", "--state", state, "--evict", "files", "--no-stacks", "-o", recording, "--"]
                subprocess.run(trace + command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                start, plan = needs(recording, prefix=given.of), None
                if state == "warm":
                    warm.append((recording, start))
                else:
                    # The first warm start is what all are compared with.
                    plan = needs(recording, warm[-1][0], prefix=given.of)
                ready, pages = warm[0][1]
                first = {page: need for page, (need, _) in pages.items()}
                name = state if ahead is None else f"{state}, {ahead} KiB"
                rows += compared([(name, [(start, plan)])], first, ready[0])
                print(rows[-1], file=sys.stderr)
        finally:
            knob.write_text(before)
    return (f"`{' '.join(command)}`, Linux {platform.release()}"
            f", pages of files below {given.of}; differences from the first start as parts of its ready: median, and what "
            "nine tenths of the pages keep.\n\n" + table(HEAD, rows) + "\n")


if __name__ == "__main__":
    main()
