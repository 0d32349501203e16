#!/usr/bin/env python3
"""Plans against no plan, warm starts and rival ways of reading ahead, on this machine's own disk.

Usage: benches/prefetch/run.py [--rounds N] [--subjects a,b] [--evict all|files] [--output FILE]
COLD=path of a release build with cold-launch beside it.

Per subject: learn a plan (3 starts), then one interleaved `cold bench` of the plain command in the
states cold, prefetched and warm and of each rival in the state cold. Runs that were disturbed do not
count and are replaced. Writes a Markdown page and, beside it, the raw reports as JSON.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
RIVALS = {
    "whole": "whole files, page by page (as vmtouch -t)",
    "pread": "two threads, 1 MiB pread, the plan's ranges",
    "library": "one readahead call per file",
}


def subjects(work):
    """Name -> argv of those that are installed here."""
    page = work / "page.html"
    page.write_text("<h1>Hello</h1>\n")
    profile = work / "profile"
    document = work / "letter.txt"
    document.write_text("Hello\n")
    script = work / "app.js"
    script.write_text("require('http'); require('crypto'); require('zlib'); console.log(1)\n")
    found = {
        "python3": ["/usr/bin/python3", "-c", "import json, http.server, sqlite3, asyncio, email, decimal"],
        "firefox-esr": ["firefox-esr", "--headless", "--profile", str(profile), "-screenshot",
                        str(work / "shot.png"), f"file://{page}"],
        "chromium": ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}-c",
                     f"--screenshot={work / 'chromium.png'}", f"file://{page}"],
        "libreoffice": ["libreoffice", "--headless", f"-env:UserInstallation=file://{profile}-lo",
                        "--convert-to", "pdf", "--outdir", str(work), str(document)],
        "node": ["node", str(script)],
        "java": ["java", "-version"],
        "git": ["git", "-C", str(ROOT), "log", "--stat", "-n", "200"],
    }
    profile.mkdir()
    have = {}
    for name, argv in found.items():
        path = shutil.which(argv[0])
        if path:
            have[name] = [os.path.realpath(path) if name == "python3" else path, *argv[1:]]
    return have


def run(argv, ok=(0,), **options):
    """Runs a command; its output is the result. Ends the benchmark when it fails."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False, **options)
    if done.returncode not in ok:
        sys.exit(f"failed with {done.returncode}: {' '.join(map(str, argv))}")
    return done.stdout


def plan_list(plan, path):
    """The plan's reads in its order, for the rivals."""
    reads = [(r["need_ns"], r["offset"], r["bytes"], f["path"])
             for f in plan["files"] if f["kind"] == "regular" for r in f["reads"]]
    path.write_text("".join(f"{offset} {size} {name}\n" for _, offset, size, name in sorted(reads)))


def quote(argv):
    import shlex
    return " ".join(shlex.quote(str(a)) for a in argv)


def measure(cold, rival, name, argv, work, options):
    """The reports of one subject: (plain in three states, rivals cold), and its plan."""
    store = work / "plans"
    common = ["--evict", options.evict]
    run([cold, "-q", "prefetch", "--store", store, "learn", *common, "--json", "--", *argv])
    plan = json.loads(run([cold, "prefetch", "--store", store, "show", "--json", "--", *argv]))
    lists = work / f"{name}.list"
    plan_list(plan, lists)
    # Rivals are commands of their own; rounds are interleaved by alternating short benchmarks.
    plain, rivals = [], []
    for block in range(options.rounds):
        seed = str(1000 * block + 17)
        plain.append(json.loads(run(
            [cold, "-q", "bench", "--json", "--store", store, *common, "--states", "cold,prefetched,warm",
             "-r", "1", "--seed", seed, "--", *argv], ok=(0, 4))))
        rivals.append(json.loads(run(
            [cold, "-q", "bench", "--json", *common, "--states", "cold", "-r", "1", "--seed", seed]
            + [w for r in RIVALS for w in ("-n", r)]
            + [quote([rival, r, lists, *argv]) for r in RIVALS], ok=(0, 4))))
    return {"subject": name, "plan": plan, "plain": plain, "rivals": rivals}


def times(reports, command, state):
    """Time to ready per block, seconds; none where no run counts."""
    out = []
    for report in reports:
        index = [i for i, s in enumerate(report["series"]) if s["state"] == state
                 and (command is None or report["commands"][s["command"]]["name"] == command)]
        good = [r["ready"] / 1e9 for r in report["runs"] if r["series"] in index and not r["taints"]]
        out.append(good[-1] if good else None)
    return out


def median(values):
    values = sorted(v for v in values if v is not None)
    n = len(values)
    if n == 0:
        return None
    return (values[(n - 1) // 2] + values[n // 2]) / 2


def ratio(a, b):
    """Median of the paired ratios with their range, and pairs."""
    pairs = [x / y for x, y in zip(a, b) if x is not None and y is not None]
    if not pairs:
        return "no pair counts"
    return f"{median(pairs):.3f} [{min(pairs):.3f} … {max(pairs):.3f}], {len(pairs)}"


def spread(values):
    good = sorted(v for v in values if v is not None)
    if not good:
        return "no run counts"
    return f"{median(good):.3f} s [{good[0]:.3f} … {good[-1]:.3f}], {len(good)}"


def tables(results):
    """Table 1: against warm and the bound; table 2: against rivals; table 3: overhead when warm."""
    one = ["| subject | cold | prefetched | warm | prefetched / cold | prefetched / warm | lower bound | prefetched / max(warm, bound) |",
           "|---|---|---|---|---|---|---|---|"]
    two = ["| subject | " + " | ".join(f"prefetched / {RIVALS[r]}" for r in RIVALS) + " | prefetched / no plan |",
           "|---" * (len(RIVALS) + 2) + "|"]
    for r in results:
        cold, pre, warm = (times(r["plain"], None, s) for s in ("cold", "prefetched", "warm"))
        bound = (r["plan"]["bound"] or {}).get("overlapped_ns")
        bound = bound / 1e9 if bound else None
        floor = max([v for v in (median(warm), bound) if v is not None], default=None)
        best = median(pre)
        against = f"{best / floor:.3f}" if best and floor else "unknown"
        shown = f"{bound:.3f} s" if bound else "unknown"
        one.append(f"| {r['subject']} | {spread(cold)} | {spread(pre)} | {spread(warm)} | {ratio(pre, cold)} "
                   f"| {ratio(pre, warm)} | {shown} | {against} |")
        cells = [ratio(pre, times(r["rivals"], name, "cold")) for name in RIVALS]
        two.append(f"| {r['subject']} | " + " | ".join(cells) + f" | {ratio(pre, cold)} |")
    return one, two


def overhead(cold, subjects_, work, rounds):
    """Warm starts through the launcher against bare ones: wall time of the whole, interleaved."""
    import time
    launch = pathlib.Path(cold).with_name("cold-launch")
    lines = ["| subject | bare, warm | through cold-launch, warm | difference of medians |", "|---|---|---|---|"]
    for name, argv in subjects_.items():
        bare, through = [], []
        for i in range(3 + 2 * rounds):
            pair = [(bare, argv), (through, [launch, "--store", work / "plans", "--", *argv])]
            for kept, words in pair if i % 2 else reversed(pair):
                began = time.monotonic()
                subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, check=False)
                if i >= 3:
                    kept.append(time.monotonic() - began)
        lines.append(f"| {name} | {spread(bare)} | {spread(through)} "
                     f"| {(median(through) - median(bare)) * 1e3:+.2f} ms |")
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--subjects", default="")
    parser.add_argument("--evict", default="auto", choices=["auto", "all", "files"])
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/benchmarks/prefetch.md")
    options = parser.parse_args()
    builds = sorted(ROOT.glob("target/*/release/cold"), key=lambda p: p.stat().st_mtime)
    cold = os.environ.get("COLD") or (builds and str(builds[-1]))
    if not cold:
        sys.exit("no release build of cold: make, or set COLD")
    # Not below /tmp, which is no disk on many machines.
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="cold-bench-prefetch-") as name:
        work = pathlib.Path(name)
        rival = work / "rival"
        run(["cc", "-O2", "-static", "-pthread", "-o", rival, ROOT / "benches/prefetch/rival.c"])
        chosen = subjects(work)
        if options.subjects:
            chosen = {k: v for k, v in chosen.items() if k in options.subjects.split(",")}
        results = []
        for subject, argv in chosen.items():
            print(f"prefetch: {subject}", file=sys.stderr)
            results.append(measure(cold, rival, subject, argv, work, options))
        three = overhead(cold, chosen, work, options.rounds)
    one, two = tables(results)
    machine = results[0]["plain"][0]["machine"] if results else {}
    text = "\n".join([
        "# Plans against no plan and rivals", "",
        f"Written by `make bench-prefetch` ({options.rounds} interleaved rounds; medians, in brackets the least and "
        "the largest, then how many counted).", "",
        f"{machine.get('cpu', '')}, Linux {platform.release()}, {'; '.join(machine.get('devices', []))}. "
        f"Eviction: {machine.get('eviction', '')}.", "",
        "## 1 Against warm starts and the lower bound", "", *one, "",
        "## 2 Against rivals, in the same rounds", "",
        "The rivals read beside the program, which favours them over tools that read first and start then.", "",
        *two, "",
        "## 3 Warm starts through the launcher", "", *three, "",
    ])
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text)
    options.output.with_suffix(".json").write_text(json.dumps(results))
    print(text)


if __name__ == "__main__":
    main()
