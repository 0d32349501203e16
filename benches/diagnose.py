#!/usr/bin/env python3
"""Predicted against measured savings of a plan: `cold diagnose` of some commands, one row each.

Prints the table of docs/guides/diagnose.md as Markdown. Root, and a quiet machine: what others do is in the starts.
COLD=path of a release build with cold-launch beside it.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

COMMANDS = {
    "node, one module": "node -e 'require(\"http\")'",
    "javac -version": "javac -version",
    "python3, three modules": "/usr/bin/python3 -c 'import asyncio, ssl, http.client'",
    "gcc, one header checked": "gcc -fsyntax-only {work}/one.c",
    "perl, two modules": "perl -MPOSIX -MData::Dumper -e 1",
    "git log --stat, 20 commits": "git -C {root} log --stat -20",
    "firefox-esr --version": "firefox-esr --version",
}
NEAR = 20.0  # percent that a prediction may be off


def diagnosed(cold, command, seconds):
    line = [cold, "diagnose", "--quiet", "--json", "--for", f"{seconds}s", "--", *shlex.split(command)]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{shlex.join(line)}: {done.stderr}")
    return json.loads(done.stdout)


def ms(ns):
    return f"{ns / 1e6:.1f}" if isinstance(ns, (int, float)) else "unknown"


def row(name, found):
    """The row, and by how much the prediction is off, in percent; None where either is unknown."""
    plan = next((r for r in found["remedies"] if r["price"] == "plan"), {})
    predicted, measured = plan.get("predicted"), plan.get("measured") or {}
    saves, factor = measured.get("saves"), measured.get("factor") or {}
    known = all(isinstance(n, (int, float)) for n in (predicted, saves)) and saves
    off = (predicted / saves - 1) * 100 if known else None
    interval = factor.get("interval")
    told = f"[{interval[0]:.3f} … {interval[1]:.3f}]" if interval else "unknown"
    times = [ms((found.get(state) or {}).get("median")) for state in ("cold", "warm", "prefetched")]
    runs = (found.get("prefetched") or {}).get("runs", "unknown")
    cells = [name, *times, ms(predicted), ms(saves), "unknown" if off is None else f"{off:+.0f} %", told, str(runs)]
    return f"| {' | '.join(cells)} |", off


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--for", dest="seconds", type=int, default=16, help="seconds per command [default: 16]")
    parser.add_argument("--only", help="rows whose name contains this")
    parser.add_argument("--keep", type=pathlib.Path, help="put each answer as JSON into this directory")
    options = parser.parse_args()
    cold = os.environ.get("COLD")
    if not cold or not pathlib.Path(cold).is_file():
        sys.exit("COLD names no release build of cold")
    print("| command | cold | warm | by the plan | predicted saving | measured saving | off | ratio | runs |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |", flush=True)
    with tempfile.TemporaryDirectory() as work:
        pathlib.Path(work, "one.c").write_text("#include <stdio.h>\nint main(void) { return 0; }\n")
        root = pathlib.Path(__file__).resolve().parents[1]
        wrong, far = 0, 0
        for name, command in COMMANDS.items():
            if options.only and options.only not in name:
                continue
            found = diagnosed(cold, command.format(work=work, root=root), options.seconds)
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"{name.split(',')[0].replace(' ', '-')}.json").write_text(json.dumps(found))
            line, off = row(name, found)
            print(line, flush=True)
            far += off is None or abs(off) > NEAR
            wrong += off is not None and off < -100
        print(f"\nWrong in sign: {wrong}. More than {NEAR:.0f} % off, or unknown: {far}.")


if __name__ == "__main__":
    main()
