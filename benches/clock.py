#!/usr/bin/env python3
"""How far need times are the same whatever the disk: one program recorded warm and cold, with read-ahead of nothing,
128 KiB and 8 MiB, each page's need time compared with that of the first warm start.

Writes its table into docs/concepts/dependency-clock.md with --write. Root only (it sets read_ahead_kb of the disk and
puts it back). usage: benches/clock.py [--write] [--of PREFIX] DISK -- COMMAND…   (DISK as in /sys/block)
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/concepts/dependency-clock.md"
BEGIN, END = "<!-- benches/clock.py writes this -->\n", "<!-- end -->"
STARTS = [("warm", None), ("warm", None), ("cold", 128), ("cold", 128), ("cold", 0), ("cold", 8192)]


def needs(recording, prefix):
    """Ready by clock and wall, and of each page both times."""
    example = ["cargo", "run", "--quiet", "--release", "-p", "cold-prefetch", "--example", "need_times", "--", recording]
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into the documentation")
    parser.add_argument("--of", default="/usr", help="only pages of files below this")
    parser.add_argument("--cold", default=None, help="the release build to use")
    parser.add_argument("disk")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    cold = given.cold or max(ROOT.glob("target/*/release/cold"), key=lambda p: p.stat().st_mtime)
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    knob = pathlib.Path(f"/sys/block/{given.disk}/queue/read_ahead_kb")
    before = knob.read_text()
    rows, first = [], None
    with tempfile.TemporaryDirectory() as place:
        try:
            for n, (state, ahead) in enumerate(STARTS):
                knob.write_text(str(ahead) if ahead is not None else before)
                recording = f"{place}/{n}.cold"
                trace = [cold, "trace", "--state", state, "--evict", "files", "--no-stacks", "-o", recording, "--"]
                subprocess.run(trace + command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                ready, pages = needs(recording, given.of)
                first = first or (ready, pages)
                both = [(pages[k], first[1][k][0]) for k in pages if k in first[1]]
                scale = first[0][0] / ready[0]
                name = state if ahead is None else f"{state}, {ahead} KiB"
                rows.append([name, f"{ready[1]:.0f}", f"{ready[0]:.0f}", f"{len(both):,}",
                             spread([p[1] - f for p, f in both], first[0][0]),
                             spread([p[0] - f for p, f in both], first[0][0]),
                             spread([p[0] * scale - f for p, f in both], first[0][0])])
                print(rows[-1], file=sys.stderr)
        finally:
            knob.write_text(before)
    head = ["start", "ready, ms", "by the clock", "pages", "wall clock", "dependency clock", "the same, scaled"]
    table = ["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]]
    text = (f"`{' '.join(command)}`, Linux {subprocess.run(['uname', '-r'], capture_output=True, text=True).stdout.strip()}"
            f", pages of files below {given.of}; differences from the first start as parts of its ready: median, and what "
            "nine tenths of the pages keep.\n\n" + "\n".join(table) + "\n")
    if given.write:
        page = PAGE.read_text()
        head_, _, rest = page.partition(BEGIN)
        PAGE.write_text(head_ + BEGIN + "\n" + text + "\n" + END + rest.partition(END)[2])
    else:
        print(text)


if __name__ == "__main__":
    main()
