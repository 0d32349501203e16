"""By how much a test disk answers later than its figures ask for, while a program starts from it.

Loop, FUSE, timers and processors that halted meanwhile take their time, and so does the disk itself, which is a program:
the less of the processor's caches the started one leaves it, the more. So single reads of a program that only waits are
answered sooner than those of a start: on sata-ssd 64 KiB were 0.11 ms late, those of Firefox 0.17 to 0.20. A recorder takes
some of the caches, too, so what each request is late by is that of starts without one.
"""

import csv
import io
import pathlib
import shutil
import subprocess

SECTOR = 512
FEWEST = 20  # requests from which a line is drawn
UNRECORDED = 5  # starts without a recorder, an odd number


def of_start(bench, disk, argv):
    """Milliseconds for each request, and for each MiB of one. The second from one recorded start in the usual window, the
    first from unrecorded ones in windows of a page, where hardly two requests are in flight."""
    bench.knob(disk).write_text("128")
    slope = of_bytes(bench, disk, argv)
    bench.knob(disk).write_text("4")
    late, size = of_each(bench, disk, argv)
    bench.knob(disk).write_text("128")
    return max(late - slope * size, 0), slope


def of_each(bench, disk, argv):
    """How late requests of unrecorded cold starts are, in milliseconds, and their size in MiB: means of a start, and of several
    starts the middle one: three of java in one go were once late by 0.157, five others in the same night by 0.069."""
    return sorted(of_one(bench, disk, argv) for _ in range(UNRECORDED))[UNRECORDED // 2]


def of_one(bench, disk, argv):
    """The same of one start, by the kernel's count of reads and of their time, and by the disk's log."""
    number, took = counted(disk)
    logged = len(log_of(disk))
    bench.cold("bench", "--json", "--evict", "files", "-r", 1, "--states", "cold", "--", *argv, ok=(0, 4))
    number, took = (now - before for now, before in zip(counted(disk), (number, took), strict=True))
    rows = log_of(disk)[logged:]
    figures = sum(int(row["model_ns"]) for row in rows) / 1e6
    return (took - figures) / number, sum(int(row["bytes"]) for row in rows) / len(rows) / (1 << 20)


def counted(disk):
    """Reads that the kernel sent to the disk, and the milliseconds that they took in all."""
    fields = pathlib.Path(f"/sys/block/{pathlib.Path(disk.info['device']).name}/stat").read_text().split()
    return int(fields[0]), int(fields[3])


def log_of(disk):
    """What the disk read, as it logs it itself."""
    log = subprocess.run([disk.tool, "log", disk.mount], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [row for row in csv.DictReader(io.StringIO(log)) if row["op"] == "read"]


def of_bytes(bench, disk, argv):
    """Milliseconds for each MiB of a request, of one recorded cold start: a line through those requests that nobody shared the
    disk with, from the driver to their end, less what the disk's log says that its figures ask for. The tenth that is
    latest and the tenth that is least late count for nothing: they hold what else went on."""
    start, tables = bench.work / "lateness.cold", bench.work / "lateness"
    bench.cold("trace", "--overwrite", "--evict", "files", "--no-stacks", "-o", start, "--", *argv)
    shutil.rmtree(tables, ignore_errors=True)
    bench.cold("report", "--csv", tables, start)
    with open(tables / "device_reads.csv", newline="") as rows:
        # Several rows are one request for several files.
        requests = {row["request"]: row for row in csv.DictReader(rows)
                    if row["dev"].startswith("7:") and row["issued"] and row["completed"]}
    figures = {(int(r["offset"]), int(r["bytes"])): int(r["model_ns"]) for r in log_of(disk)}
    late = []
    for begin, end, row in alone(requests.values()):
        size = int(row["bytes"])
        figure = figures.get((int(row["sector"]) * SECTOR, size))
        if figure is not None:
            late.append((end - begin - figure, size))
    return slope_of(late)


def alone(requests):
    """Those that found the disk idle and were over when the next one came: from, to, row."""
    rows = sorted((int(r["issued"]), int(r["completed"]), r) for r in requests)
    out, busy = [], 0
    for number, (begin, end, row) in enumerate(rows):
        if begin > busy and (number + 1 == len(rows) or rows[number + 1][0] > end):
            out.append((begin, end, row))
        busy = max(busy, end)
    return out


def slope_of(late):
    """Least squares through (nanoseconds, bytes), as milliseconds for each MiB, not below nothing."""
    late = sorted(late)[len(late) // 10:len(late) - len(late) // 10]
    if len(late) < FEWEST:
        raise RuntimeError(f"{len(late)} requests had the disk for themselves: too few to tell how late it is")
    points = [(size / (1 << 20), ns / 1e6) for ns, size in late]
    x, y = (sum(p[n] for p in points) / len(points) for n in (0, 1))
    spread = sum((p[0] - x) ** 2 for p in points)
    return max(sum((p[0] - x) * (p[1] - y) for p in points) / spread, 0) if spread else 0
