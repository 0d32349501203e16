#!/usr/bin/env python3
"""Programs of which others have published what a prefetcher reads and saves, started here with a plan of ours.

Paralfetch (Ryu and others, FAST 2023; 860 QVO on SATA, Linux 5.4) names the requests of five programs, for metadata and for
data, and the mean gain of sixteen; FAST (Joo and others, USENIX FAST 2011) that of twenty-two, and the requests of Eclipse.
That is not in Debian 12: Freeplane is the like of it here, a program of Java made of OSGi bundles. Counted here: one recorded
cold start of each on the test disk. Measured here: cold starts, starts by a plan that was learnt there, and warm ones,
interleaved. GIMP, VLC, Okular and Freeplane need an X server, for instance `Xvfb :99` and DISPLAY=:99. The last two do not end
by themselves: they are ended when their window is mapped, which `xev` tells (Debian: x11-utils).
Root. COLD=path of a release build, with cold-testdisk and cold-launch beside it. Results are kept as JSON below --work; a stopped
benchmark goes on.
"""

import argparse
import atexit
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benches"))
import simulate  # noqa: E402
from simulate import subjects  # noqa: E402

# Of Paralfetch's table 1: requests for metadata and their KiB, requests for data and theirs. Writer is measured as a
# conversion by `soffice`.
PARALFETCH = {"chromium": (612, 3048, 1135, 130728), "gimp": (489, 2620, 1026, 38512),
              "libreoffice": (552, 2800, 729, 83824), "okular": (1093, 5720, 426, 23640), "vlc": (682, 5420, 444, 20192)}
# Of FAST's table 3: requests of all kinds.
ECLIPSE = 4163
SHOWN = {name: "{} ({:,}), {:,} ({:,})".format(*theirs) for name, theirs in PARALFETCH.items()}
SHOWN["freeplane"] = f"Eclipse: {ECLIPSE:,} in all"

# Ends when its window is there: whoever watches the display writes into the FIFO then.
UNTIL_MAPPED = """#!/bin/sh
fifo=$1; shift
"$@" &
read -r _ < "$fifo"
kill $!
wait
"""
PAGE = (b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /Font << /F 5 0 R >> >> >>",
        b"<< /Length 43 >>\nstream\nBT /F 24 Tf 72 720 Td (A first start) Tj ET\nendstream",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")


def pdf():
    """A page with a line of text."""
    text, places = b"%PDF-1.4\n", []
    for number, part in enumerate(PAGE, 1):
        places.append(len(text))
        text += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return text + b"xref\n0 %d\n0000000000 65535 f \n%strailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(PAGE) + 1, table, len(PAGE) + 1, len(text))


def tell_of_windows(fifo):
    """Writes a line into the FIFO, where somebody reads it, whenever a window of a program's own is mapped."""
    events = subprocess.Popen(["xev", "-root", "-event", "substructure"], stdout=subprocess.PIPE, text=True)
    atexit.register(events.kill)
    mapped = False
    for line in events.stdout:
        if mapped and "override NO" in line:
            try:
                with open(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK), "w") as reader:
                    reader.write("\n")
            except OSError:
                pass  # nobody waits for this one
        mapped = line.startswith("MapNotify")


def freeplane(run):
    """As its launcher script starts it, without the picture before its window."""
    home = pathlib.Path("/usr/share/freeplane")
    told = {"basedirectory": home, "userfpdir": run / "freeplane", "globalresourcedir": home / "resources", "nosplash": "true"}
    return ["java", "-Xmx512m", *(f"-Dorg.freeplane.{name}={value}" for name, value in told.items()),
            "-jar", str(home / "freeplanelauncher.jar")]


def windowed(run, fifo, wanted):
    """Command lines that end when their window is there, by name; those that have all they take."""
    page = run / "page.pdf"
    argvs = {"okular": ["okular", str(page)], "freeplane": freeplane(run)}
    found = {name: argv for name, argv in argvs.items() if name in wanted and shutil.which(name)}
    if not (found and shutil.which("xev") and "DISPLAY" in os.environ):
        return {}
    page.write_bytes(pdf())
    if not fifo.exists():
        os.mkfifo(fifo)
    threading.Thread(target=tell_of_windows, args=(fifo,), daemon=True).start()
    ending = {}
    for name, argv in found.items():
        # A script each, as each has a plan of its own.
        script = run / f"{name}-until-mapped"
        script.write_text(UNTIL_MAPPED)
        script.chmod(0o755)
        ending[name] = [str(script), str(fifo), *argv]
    return ending


class Published(simulate.Bench):
    def count(self, argv):
        """What a cold start reads from the test disk: requests and bytes, for metadata and for data."""
        start, tables = self.work / "start.cold", self.work / "tables"
        self.cold("trace", "--overwrite", "--evict", "all", "--no-stacks", "-o", start, "--", *argv)
        shutil.rmtree(tables, ignore_errors=True)
        self.cold("report", "--csv", tables, start)
        counts = {"metadata": [0, 0], "data": [0, 0]}
        seen = set()
        with open(tables / "device_reads.csv", newline="") as rows:
            for row in csv.DictReader(rows):
                if row["request"] in seen or not row["dev"].startswith("7:"):
                    continue
                seen.add(row["request"])
                kind = counts["metadata" if row["metadata"] == "true" else "data"]
                kind[0] += 1
                kind[1] += int(row["bytes"])
        return counts

    def subject(self, disk, name, argv):
        key = f"{disk} {name}"
        if self.over():
            return
        subjects.settle(argv, self.environment)
        print(f"published: {key}: counting", file=sys.stderr)
        counts = self.count(argv)
        print(f"published: {key}: learning", file=sys.stderr)
        store = self.work / f"plans-{disk}"
        self.cold("prefetch", "--store", store, "learn", "--fresh", "--evict", "all", "--json", "--", *argv)
        plan = json.loads(self.cold("prefetch", "--store", store, "show", "--json", "--", *argv))
        print(f"published: {key}: measuring", file=sys.stderr)
        made = json.loads(self.cold("bench", "--json", "--evict", "all", "-r", self.options.rounds, "--store", store,
                                    "--states", "cold,prefetched,warm", "--", *argv, ok=(0, 4)))
        took = {made["series"][n]["state"]: [run[0] for run in simulate.times(made, n)] for n in range(len(made["series"]))}
        reads = [(len(f["reads"]), sum(r["bytes"] for r in f["reads"]), f["kind"]) for f in plan["files"]]
        blocks = [r for r in reads if r[2] == "block_device"]
        files = [r for r in reads if r[2] != "block_device"]
        planned = {"metadata": [sum(r[n] for r in blocks) for n in (0, 1)], "data": [sum(r[n] for r in files) for n in (0, 1)]}
        self.keep(key, {"counts": counts, "planned": planned, "took": took})


def cells(counts):
    return [f"{n} ({size >> 10:,})" for n, size in (counts["metadata"], counts["data"])]


def table(bench, disk):
    head = ["program", "published reads: metadata, data (KiB)", "a cold start here: metadata", "data", "our plan: metadata",
            "data", "cold, prefetched, warm, ms", "less than cold"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for name, shown in SHOWN.items():
        found = bench.results.get(f"{disk} {name}")
        if not found:
            continue
        took = [simulate.statistics.median(found["took"][state]) for state in ("cold", "prefetched", "warm")]
        row = [f"`{name}`", shown, *cells(found["counts"]), *cells(found["planned"]),
               f"{', '.join(f'{t:.0f}' for t in took)} ({len(found['took']['cold'])})", f"-{1 - took[1] / took[0]:.1%}"]
        print(f"| {' | '.join(row)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subjects", default=",".join(SHOWN))
    parser.add_argument("--disk", default="sata-ssd")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--max-time", type=float, help="stop after so many seconds; go on with the same command")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/var/tmp/cold-bench-published"))
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    bench = Published(options)
    wanted = options.subjects.split(",")
    chosen = subjects.make(bench.run, wanted)
    chosen |= windowed(bench.run, bench.work / "mapped", wanted)
    rest = {name: argv for name, argv in chosen.items() if f"{options.disk} {name}" not in bench.results}

    def work(_):
        for name, argv in rest.items():
            bench.subject(options.disk, name, argv)

    if rest:
        bench.on(options.disk, rest, work)
    table(bench, options.disk)


if __name__ == "__main__":
    main()
