"""What a prefetched start takes beyond a warm one, by reason: `cold diagnose` gives each moment of the path to ready one."""

import csv
import json

LAUNCHER = "launcher"
# What the table tells apart, by the kinds of `cold diagnose --json`.
CAUSES = {
    LAUNCHER: ("the launcher, and what it waits for", ()),
    "pages": ("waited for the disk: mapped pages", ("disk_fault",)),
    "reads": ("… reads", ("disk_read",)),
    "names": ("… names, inodes, loading", ("disk_lookup", "disk_exec")),
    "writes": ("… writing, unknown", ("disk_write", "disk_other")),
    "kernel": ("kernel's work for missing pages", ("reading",)),
    "paths": ("resolving paths", ("lookup", "lookup_missed")),
    "loading": ("loader, processes", ("loader", "processes")),
    "program": ("program's own work", ("program",)),
    "cpu": ("waited for a CPU", ("runnable",)),
    "others": ("locks, sleep, outside", ("lock", "sleep", "outside")),
    "unknown": ("not known", ("unknown",)),
}
OF_KIND = {kind: cause for cause, (_, kinds) in CAUSES.items() for kind in kinds}


def causes(diagnosis, tables):
    """Nanoseconds of the path to ready by cause, of one recorded start; `None` where the recording does not tell."""
    told = json.loads(diagnosis)
    if not (path := told.get("path")):
        return None
    began, ended = launcher(tables)
    sums = dict.fromkeys(CAUSES, 0)
    for piece in path["pieces"]:
        start, end = piece["from"], piece["to"]
        inside = max(0, min(end, ended) - max(start, began))
        sums[LAUNCHER] += inside
        sums[OF_KIND[piece["kind"]]] += end - start - inside
    assert sum(sums.values()) == path["until"] - path["start"], "the causes do not sum to the start"
    return sums


def launcher(tables):
    """From the first instruction of `cold-launch` to that of the program that it becomes; nothing without one."""
    with open(tables / "processes.csv", newline="") as f:
        images = [r for r in csv.DictReader(f) if r["how"] == "exec"]
    first = next((r for r in images if r["executable_path"].endswith("/cold-launch")), None)
    if first is None:
        return 0, 0
    began = int(first["began"])
    after = [int(r["began"]) for r in images if r["pid"] == first["pid"] and int(r["began"]) > began]
    return (began, min(after)) if after else (0, 0)


def mean(starts):
    """Mean of each cause in nanoseconds: means of the causes sum to the mean of the starts, medians would not."""
    return {cause: sum(s[cause] for s in starts) / len(starts) for cause in CAUSES}


def row(result, prefetched, warm, bound):
    """Cells in seconds: what is left to the bound, what of it each cause takes, what the disk forbids, and the rest.

    `prefetched`, `warm` and `bound` as measured. The causes, less `forbidden`, and the rest sum to what is left.
    """
    by_plan, without = result.get("causes_prefetched"), result.get("causes_warm")
    if not by_plan or not without or None in by_plan or None in without:
        return None
    a, b = mean(by_plan), mean(without)
    more = {cause: (a[cause] - b[cause]) / 1e9 for cause in CAUSES}
    left = prefetched - max(warm, bound)
    forbidden = max(0.0, bound - warm)
    return left, more, forbidden, left - sum(more.values()) + forbidden
