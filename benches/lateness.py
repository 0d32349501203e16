"""By how much a test disk answers later than its figures ask for, while programs start from it.

A punctual one (`cold-testdisk create --punctual`) is not to be late at all. Whether it succeeds is told by the kernel's count
of reads and of their time, which the disk does not see. Of a usual one this tells what the way there and back adds.
"""

import csv
import io
import pathlib
import subprocess


def during(disk, work):
    """What `work()` answers, and by how many milliseconds the mean read of the disk was late meanwhile: what the kernel waited
    for it beyond the time from its issue to when it was due. Where the disk knows no time of issue, it counts from arrival."""
    number, took = counted(disk)
    logged = len(log_of(disk))
    answer = work()
    number, took = (now - before for now, before in zip(counted(disk), (number, took), strict=True))
    wanted = sum(log_of(disk)[logged:]) / 1e6
    return answer, (took - wanted) / max(number, 1)


def counted(disk):
    """Reads that the kernel sent to the disk, and the milliseconds that they took in all."""
    fields = pathlib.Path(f"/sys/block/{pathlib.Path(disk.info['device']).name}/stat").read_text().split()
    return int(fields[0]), int(fields[3])


def log_of(disk):
    """How many nanoseconds each read that the disk logged was to take."""
    log = subprocess.run([disk.tool, "log", disk.mount], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [int(row["due_ns"]) - int(row["issued_ns"] or row["arrival_ns"])
            for row in csv.DictReader(io.StringIO(log)) if row["op"] == "read"]
