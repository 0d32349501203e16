"""By how much a test disk answers later than its figures ask for, while a program starts from it.

Loop, FUSE, timers and processors that halted meanwhile take their time, and so does the disk itself, which is a program:
the less of the processor's caches the started one leaves it, the more. So single reads of a program that only waits are
answered sooner than those of a start: on sata-ssd 64 KiB were 0.11 ms late, those of Firefox 0.17 to 0.20.
"""

import csv
import io
import shutil
import subprocess

SECTOR = 512
FEWEST = 20  # requests from which a line is drawn


def of_start(bench, disk, argv):
    """Milliseconds for each request, and for each MiB of one, of one recorded cold start: a line through those requests that
    nobody shared the disk with, from the driver to their end, less what the disk's log says that its figures ask for.
    The tenth that is latest and the tenth that is least late count for nothing: they hold what else went on. The recorder's
    own part, some µs, is in it."""
    start, tables = bench.work / "lateness.cold", bench.work / "lateness"
    bench.cold("trace", "--overwrite", "--evict", "files", "--no-stacks", "-o", start, "--", *argv)
    shutil.rmtree(tables, ignore_errors=True)
    bench.cold("report", "--csv", tables, start)
    with open(tables / "device_reads.csv", newline="") as rows:
        # Several rows are one request for several files.
        requests = {row["request"]: row for row in csv.DictReader(rows)
                    if row["dev"].startswith("7:") and row["issued"] and row["completed"]}
    log = subprocess.run([disk.tool, "log", disk.mount], stdout=subprocess.PIPE, text=True, check=True).stdout
    figures = {(int(r["offset"]), int(r["bytes"])): int(r["model_ns"])
               for r in csv.DictReader(io.StringIO(log)) if r["op"] == "read"}
    late = []
    for begin, end, row in alone(requests.values()):
        size = int(row["bytes"])
        figure = figures.get((int(row["sector"]) * SECTOR, size))
        if figure is not None:
            late.append((end - begin - figure, size))
    return line(late)


def alone(requests):
    """Those that found the disk idle and were over when the next one came: from, to, row."""
    rows = sorted((int(r["issued"]), int(r["completed"]), r) for r in requests)
    out, busy = [], 0
    for number, (begin, end, row) in enumerate(rows):
        if begin > busy and (number + 1 == len(rows) or rows[number + 1][0] > end):
            out.append((begin, end, row))
        busy = max(busy, end)
    return out


def line(late):
    """Least squares through (nanoseconds, bytes), as milliseconds each and for each MiB, neither below nothing."""
    late = sorted(late)[len(late) // 10:len(late) - len(late) // 10]
    if len(late) < FEWEST:
        raise RuntimeError(f"{len(late)} requests had the disk for themselves: too few to tell how late it is")
    points = [(size / (1 << 20), ns / 1e6) for ns, size in late]
    x, y = (sum(p[n] for p in points) / len(points) for n in (0, 1))
    spread = sum((p[0] - x) ** 2 for p in points)
    slope = max(sum((p[0] - x) * (p[1] - y) for p in points) / spread, 0) if spread else 0
    return max(y - slope * x, 0), slope
