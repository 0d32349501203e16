"""By how much a test disk answers later than its figures ask for, while programs start from it.

Loop, FUSE, timers and processors that halted meanwhile take their time, and so does the disk itself, which is a program:
the less of the processor's caches the started one leaves it, the more. So single reads of a program that only waits are
answered sooner than those of a start; and requests of one program in small windows sooner than those in large ones, and
today sooner than tomorrow. No disk that is more than a program does that. So how late it was is taken from what it did in the
starts that are compared: by the kernel's count of reads and of their time, and by the disk's own log.
"""

import csv
import io
import pathlib
import subprocess

FEWEST = 20  # requests from which a mean is taken
UNRECORDED = 3  # starts that tell how late it is before anything is measured


def of_start(bench, disk, argv):
    """Milliseconds for each request of unrecorded cold starts in the usual window."""
    bench.knob(disk).write_text("128")
    _, late = during(disk, lambda: bench.cold("bench", "--json", "--evict", "files", "-r", UNRECORDED, "--states", "cold", "--",
                                              *argv, ok=(0, 4)))
    return late


def during(disk, work):
    """What `work()` answers, and by how many milliseconds each read of the disk was late meanwhile: on its way to the disk and
    back, which is what the kernel's time has more than the log's, and in the disk. Who waits in it behind others is not late,
    so the second is taken from requests that found it idle and were over when the next one came. Who waits on the way, because
    one thread takes all requests, counts as late: in large windows that is most of it."""
    number, took = counted(disk)
    logged = len(log_of(disk))
    answer = work()
    number, took = (now - before for now, before in zip(counted(disk), (number, took), strict=True))
    rows = log_of(disk)[logged:]
    in_disk = sum(done - arrival for arrival, done, _ in rows) / 1e6
    late = [done - arrival - figure for arrival, done, figure in alone(rows)]
    if len(late) < FEWEST:
        raise RuntimeError(f"{len(late)} requests had the disk for themselves: too few to tell how late it is")
    return answer, max((took - in_disk) / number, 0) + max(sum(late) / len(late) / 1e6, 0)


def counted(disk):
    """Reads that the kernel sent to the disk, and the milliseconds that they took in all."""
    fields = pathlib.Path(f"/sys/block/{pathlib.Path(disk.info['device']).name}/stat").read_text().split()
    return int(fields[0]), int(fields[3])


def log_of(disk):
    """What the disk read, as it logs it itself, in nanoseconds: when it came, when it was answered, what its figures ask for."""
    log = subprocess.run([disk.tool, "log", disk.mount], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [(int(row["arrival_ns"]), int(row["done_ns"]), int(row["model_ns"]))
            for row in csv.DictReader(io.StringIO(log)) if row["op"] == "read"]


def alone(rows):
    """Those that found the disk idle and were over when the next one came."""
    rows, out, busy = sorted(rows), [], 0
    for number, row in enumerate(rows):
        if row[0] > busy and (number + 1 == len(rows) or rows[number + 1][0] > row[1]):
            out.append(row)
        busy = max(busy, row[1])
    return out
