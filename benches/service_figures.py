#!/usr/bin/env python3
"""The figures of `cold service status` against a stopwatch of our own and the log of the disk that the programs lie on.

Copies python3, node, git and java with their libraries to a test disk (cold-testdisk), lets a service in the foreground
learn them, and starts each of them cold, and now and then three times more at once (warm). Prints for each program what
was started and what `status` counted; what the disk was asked for by starts that were followed and by controls, and what
`status` says was asked for; what followed starts read that no control ever did (in vain); and what was saved by the
stopwatch (mean of the controls less each followed start) and by `status`.

Root; empties the whole machine's cache: nothing else should run. COLD=path of a release build, with cold-testdisk beside it.
"""

import argparse
import csv
import io
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
COLD = pathlib.Path(os.environ.get("COLD", ROOT / "target/x86_64-unknown-linux-gnu/release/cold"))
PAGE = 4096
# Every so many rounds warm starts follow each cold one.
WARM_EVERY = 6


class Disk:
    def __init__(self, mount, preset):
        self.mount, self.tool = mount, COLD.with_name("cold-testdisk")
        mount.mkdir(mode=0o755, parents=True, exist_ok=True)
        argv = [self.tool, "create", "--preset", preset, "--size", "2G", "--mount", mount, "--json"]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        json.loads(self.process.stdout.readline())

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.stdin.close()
        self.process.wait(30)
        self.mount.rmdir()

    def log(self):
        done = subprocess.run([self.tool, "log", self.mount], capture_output=True, text=True, check=True)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def add(self, program, libraries):
        """A program with what `ldd` says it needs."""
        told = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
        for line in told.splitlines():
            library = line.partition("=>")[2].partition("(")[0].strip()
            if library.startswith("/") and not (libraries / os.path.basename(library)).exists():
                shutil.copy(os.path.realpath(library), libraries / os.path.basename(library))

    def programs(self):
        mount, libraries = self.mount, self.mount / "lib"
        libraries.mkdir()
        (mount / "bin").mkdir()
        out = subprocess.run(["python3", "-c", "import sys; print(sys.base_prefix, sys.executable)"], capture_output=True, text=True)
        prefix, python = out.stdout.split()
        if prefix == "/usr":
            sys.exit("benches/service_figures.py: needs a python3 that lies in a directory of its own")
        without = shutil.ignore_patterns("test", "site-packages", "share", "include", "*.a")
        shutil.copytree(prefix, mount / "python", symlinks=True, ignore=without)
        self.add(os.path.realpath(python), libraries)
        for name in ("node", "git"):
            shutil.copy(shutil.which(name), mount / "bin" / name)
            self.add(shutil.which(name), libraries)
        for module in (mount / "python/lib").glob("*/lib-dynload/*.so"):
            self.add(module, libraries)
        java = pathlib.Path(os.path.realpath(shutil.which("java"))).parents[1]
        without = shutil.ignore_patterns("jmods", "src.zip", "docs", "demo", "man", "legal")
        shutil.copytree(java, mount / "java", ignore_dangling_symlinks=True, ignore=without)
        repository = mount / "repo"
        shutil.copytree(ROOT / "docs", repository)
        git = ["git", "-C", repository, "-c", "user.name=a", "-c", "user.email=b@c"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
            subprocess.run([*git, *words], check=True)
        subprocess.run(["chmod", "-R", "a+rX", mount], check=True)
        real = os.path.realpath(mount / "python/bin/python3")
        return {
            "python3": [real, "-c", "import json, ssl, sqlite3, asyncio, unittest"],
            "node": [f"{mount}/bin/node", "-e", "require('http'); require('crypto'); require('zlib')"],
            "git": [f"{mount}/bin/git", "--no-pager", "--git-dir", f"{repository}/.git", "log", "--stat"],
            "java": [f"{mount}/java/bin/java", "--version"],
        }


class Bench:
    def __init__(self, options):
        self.options, self.work = options, pathlib.Path(options.work)
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(mode=0o700, parents=True)
        self.at = ["--state", str(self.work / "state"), "--store", str(self.work / "plans")]
        self.disk, self.service, self.starts = None, None, []

    def status(self):
        done = subprocess.run([COLD, "service", "status", "--json", *self.at], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def learning(self):
        return self.status()["service"]["learning"]

    def until(self, condition, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return True
            time.sleep(0.1)
        return False

    def start(self, name, kind):
        """One start, and what the disk was asked for meanwhile and a quarter of a second after."""
        if kind != "warm":
            os.sync()
            pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")
        before, argv = len(self.disk.log()), self.programs[name]
        libraries = f"{self.disk.mount}/lib"
        env = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": libraries, "HOME": "/nonexistent", "LC_ALL": "C", "PYTHONDONTWRITEBYTECODE": "1"}
        null = [(os.POSIX_SPAWN_OPEN, n, "/dev/null", os.O_RDWR, 0) for n in range(3)]
        at, began = time.time_ns(), time.perf_counter_ns()
        status = os.waitpid(os.posix_spawn(argv[0], argv, env, file_actions=null), 0)[1]
        took = time.perf_counter_ns() - began
        if status != 0:
            sys.exit(f"benches/service_figures.py: {name} failed: {status:#x}")
        time.sleep(0.25)
        reads = [(int(r["offset"]), int(r["bytes"])) for r in self.disk.log()[before:] if r["op"] == "read"]
        self.starts.append({"name": name, "kind": kind, "at": at, "took": took, "reads": reads})

    def run(self):
        self.disk = Disk(pathlib.Path(self.options.mount), self.options.disk)
        self.programs = self.disk.programs()
        command = [COLD, "--quiet", "service", "run", "--no-keep", "--only", str(self.disk.mount), *self.at]
        self.service = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        self.until(lambda: self.status()["service"] is not None, 20)
        for name in self.programs:
            learnt = self.learning()["learnt"]
            self.start(name, "first")
            self.until(lambda: self.learning()["armed"], 5)
            for _ in range(3):
                self.start(name, "recorded")
                if self.until(lambda: self.learning()["learnt"] > learnt, 12):
                    break
        time.sleep(1)
        end = time.monotonic() + self.options.max_time
        for n in range(self.options.rounds):
            if time.monotonic() > end:
                break
            for name in random.sample(list(self.programs), len(self.programs)):
                self.start(name, "cold")
                for _ in range(3 if n % WARM_EVERY == WARM_EVERY - 1 else 0):
                    time.sleep(0.5)
                    self.start(name, "warm")
        time.sleep(1)
        status = self.status()
        self.end()
        (self.work / "figures.json").write_text(json.dumps({"starts": self.starts, "status": status}))
        self.show(status)

    def show(self, status):
        service = status["service"]
        read = sum(b for s in self.starts for _, b in s["reads"]) / 1e6
        print(f"the disk gave {read:.1f} MB in all; the service asked for {service['bytes'] / 1e6:.1f} MB and had "
              f"{service['own']['read_bytes']} bytes read; saved {status['saved']}")
        db = sqlite3.connect(self.work / "state/history.db")
        rows = db.execute("SELECT executable, at_ns, what, bytes, wall_ns FROM starts JOIN programs p ON p.id = program ORDER BY at_ns").fetchall()
        for start in self.starts:
            # Written down when its mark was seen; no other start of this program is so near.
            mine = [r for r in rows if r[0] == self.programs[start["name"]][0] and 0 <= r[1] - start["at"] <= start["took"] + 500_000_000]
            start["row"] = mine[0] if mine else None
        for name, argv in self.programs.items():
            self.show_one(name, [p for p in status["programs"] if p["executable"] == argv[0]])

    def show_one(self, name, told):
        mine = [s for s in self.starts if s["name"] == name]
        of = {what: [s for s in mine if s["kind"] == "cold" and s["row"] and s["row"][2] == what] for what in ("followed", "control")}
        kinds = {kind: sum(s["kind"] == kind for s in mine) for kind in ("first", "recorded", "cold", "warm")}
        counted = {key: sum(p[key] for p in told) for key in ("followed", "controls", "common", "skipped", "warm")}
        found_cold = [s for s in mine if s["kind"] == "warm" and s["row"]]
        print(f"{name}: started {kinds}; status {counted}; warm ones found cold: "
              f"{[sum(b for _, b in s['reads']) for s in found_cold]} bytes of the disk each")
        for what, starts in of.items():
            if starts:
                times, read = [s["took"] / 1e6 for s in starts], [sum(b for _, b in s["reads"]) for s in starts]
                lead = [(s["took"] - s["row"][4]) / 1e6 for s in starts if s["row"][4]]
                print(f"  {what} {len(starts)}: {statistics.median(times):.1f} ms ({min(times):.0f}–{max(times):.0f}), mark "
                      f"{statistics.median(lead):.1f} ms before the end; disk {sum(read) / 1e6:.1f} MB, asked for "
                      f"{sum(s['row'][3] for s in starts) / 1e6:.1f} MB")
        if not (of["followed"] and of["control"]):
            return
        needed = set().union(*map(pages, of["control"]))
        vain = statistics.median(len(pages(s) - needed) * PAGE for s in of["followed"])
        without = statistics.fmean(s["took"] for s in of["control"])
        saved = sum(without - s["took"] for s in of["followed"]) / 1e9
        said = [{k: round(v / 1e9, 2) for k, v in p["saved"].items() if k.endswith("ns")} for p in told if p["saved"]]
        print(f"  in vain {vain / 1e6:.2f} MB of a start (median); saved {saved:.2f} s by the stopwatch, status {said}")

    def end(self):
        if self.service:
            self.service.send_signal(signal.SIGTERM)
            self.service.wait(20)
            self.service = None
        if self.disk:
            self.disk.end()
            self.disk = None


def pages(start):
    return {page for offset, size in start["reads"] for page in range(offset // PAGE, (offset + size - 1) // PAGE + 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", default="/var/tmp/cold-service-figures")
    parser.add_argument("--mount", default="/var/tmp/cold-service-disk")
    parser.add_argument("--disk", default="cloud", help="preset of the test disk")
    parser.add_argument("--rounds", type=int, default=36)
    parser.add_argument("--max-time", type=float, default=240, help="seconds until no further round begins")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("benches/service_figures.py: needs root")
    bench = Bench(options)
    try:
        bench.run()
    finally:
        bench.end()


if __name__ == "__main__":
    main()
