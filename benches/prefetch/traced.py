"""What one traced prefetched start read, by who asked for it, and what it waited for."""

import csv

# What a thread that is to run the program waits for.
COMING, OWN, NAMES, OTHER = "coming", "own", "names", "other"
WAITS = {
    COMING: "pages that were coming",
    OWN: "pages read by itself",
    NAMES: "names and inodes",
    OTHER: "anything else",
}
PAGE = 4096


def judge(tables):
    """Requests and bytes at the disk, waits in nanoseconds, late bytes, from the CSV tables of a recording."""
    def rows(name):
        with open(tables / f"{name}.csv", newline="") as f:
            return list(csv.DictReader(f))

    named = [r["pid"] for r in rows("processes") if r["name"] == "cold-launch"]
    # The launcher becomes the program; the helper is whoever else has its name.
    helpers = {pid for pid in named if pid != named[0]}
    reads = [r for r in rows("device_reads") if r["in_tree"] == "true"]
    transfers = rows("transfers")
    by_helper = {r["request"]: int(r["completed"]) for r in reads if r["pid"] in helpers and r["completed"]}
    coming = arrivals(transfers, by_helper)
    threads = {(r["pid"], r["tid"]) for r in rows("threads") if r["in_tree"] == "true"}
    return {
        **requests(reads, transfers, helpers),
        **waits(rows("stalls"), helpers, threads, coming),
        "late_bytes": late(rows("touches"), helpers, coming),
    }


def requests(reads, transfers, helpers):
    """Of the helper, blocks of the file system are counted apart: lookups read more of them than is planned."""
    blocks = {r["request"] for r in transfers if r["file_path"].startswith("/dev/")}
    result = {f"{kind}{what}": 0 for kind in ("", "metadata_", "other_") for what in ("requests", "bytes")}
    for r in reads:
        kind = "other_" if r["pid"] not in helpers else "metadata_" if r["request"] in blocks else ""
        result[kind + "requests"] += 1
        result[kind + "bytes"] += int(r["bytes"])
    return result


def arrivals(transfers, completed):
    """When each page came that the helper read: (file, page) to nanoseconds."""
    pages = {}
    for t in transfers:
        if (at := completed.get(t["request"])) is not None:
            first = int(t["first_page"])
            pages.update(((t["file"], page), at) for page in range(first, first + int(t["pages"])))
    return pages


def waits(stalls, helpers, threads, coming):
    """Time in which a main thread waited, by what for. Several that wait at once count once."""
    spans = {kind: [] for kind in WAITS}
    for s in stalls:
        if s["pid"] in helpers or s["tid"] != s["pid"] or (s["pid"], s["tid"]) not in threads:
            continue
        if s["cause"] in ("fault", "read", "exec") and s["page"]:
            kind = COMING if (s["file"], int(s["page"])) in coming else OWN
        else:
            kind = NAMES if s["cause"] in ("lookup", "exec") else OTHER
        if end := s["woken"] or s["ended"]:
            spans[kind].append((int(s["began"]), int(end)))
    return {f"wait_{kind}": union(of_kind) for kind, of_kind in spans.items()}


def union(spans):
    """Length of the union of intervals."""
    total = reached = 0
    for began, ended in sorted(spans):
        total += max(0, ended - max(began, reached))
        reached = max(reached, ended)
    return total


def late(touches, helpers, coming):
    """Bytes of the pages that the helper read and the program wanted before they had come."""
    pages = set()
    for t in touches:
        if t["pid"] in helpers or t["kind"] not in ("fault", "read"):
            continue
        first, at = int(t["first_page"]), int(t["at"])
        pages.update(key for page in range(first, first + int(t["pages"]))
                     if coming.get(key := (t["file"], page), at) > at)
    return len(pages) * PAGE
