#!/usr/bin/env python3
"""Starts that nobody wraps, served by `cold service`, against launched, cold and warm ones.

`learn` starts each program twice cold under a service that learns by itself. `measure` starts it further: cold (the
service is paused), launched (paused, by cold-launch), served and warm, in random order, rounds interleaved.
`keep` lets a program take memory until nearly no file is cached, waits 30 s, and starts the five most used ones; in turns
with the same and nothing taken. `table` prints what was measured.
`storm` starts thousands of programs: one that the kernel tells of and one that it does not, start by start in turns, so that
both meet the same machine; without a service, again without one, with one, and with a listener alone that reads nothing
(what the kernel takes to tell of a start).

Root; all but `table` empty the whole machine's cache or measure: nothing else should run. Results are JSON below --work.
COLD=path of a release build, with cold-launch beside it.
"""

import argparse
import json
import mmap
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
HOST = "x86_64-unknown-linux-gnu"
COLD = pathlib.Path(os.environ.get("COLD", ROOT / f"target/{HOST}/release/cold"))
LAUNCH = COLD.with_name("cold-launch")

# Options of one dash and more than a letter may hold a password, so their starts are not learnt.
PROGRAMS = {
    "python3": ["/usr/bin/python3", "-c", "import json, ssl, sqlite3"],
    "php": ["php", "--version"],
    "ruby": ["ruby", "--version"],
    "emacs": ["emacs", "--batch"],
    "javac": ["javac", "--version"],
    "perl": ["perl", "-e", "use POSIX; use Socket; use File::Find; 1"],
    "git": ["git", "--no-pager", "--git-dir", "{git}", "log", "-n", "1"],
    "node": ["node", "-e", "0"],
    "npm": ["npm", "--version"],
    "java": ["java", "--version"],
    "gcc": ["gcc", "-c", "{c}", "-o", "/dev/null"],
    "clang": ["clang", "-c", "{c}", "-o", "/dev/null"],
    "vim": ["vim", "-e", "-s", "-c", "q"],
    "ssh": ["ssh", "-V"],
    "curl": ["curl", "--version"],
    "wget": ["wget", "--version"],
    "gdb": ["gdb", "--batch"],
    "sqlite3": ["sqlite3", ":memory:", "select 1"],
    "psql": ["psql", "--version"],
    "systemctl": ["systemctl", "--version"],
    "journalctl": ["journalctl", "--version"],
    "openssl": ["openssl", "version"],
    "cmake": ["cmake", "--version"],
    "rustc": ["rustc", "--version"],
    "qemu": ["qemu-system-x86_64", "--version"],
    "convert": ["convert", "-version"],
    "tclsh": ["tclsh", "/dev/null"],
    "go": ["go", "version"],
    "docker": ["docker", "--version"],
    "gpg": ["gpg", "--version"],
    "apt-get": ["apt-get", "--version"],
    "bpftool": ["bpftool", "version"],
    "groff": ["groff", "--version"],
    "objdump": ["objdump", "--version"],
    "soffice": ["soffice", "--version"],
    "firefox-esr": ["firefox-esr", "--headless", "--profile", "{work}/firefox", "--screenshot", "{work}/f.png", "file://{c}"],
    "chromium": ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir={work}/chromium",
                 "--screenshot={work}/c.png", "file://{c}"],
}

# Scripts and proxies, by the program that is cold behind them: plans are by interpreter and script, or of that program.
BEHIND = {"soffice": "soffice.bin", "firefox-esr": "firefox-esr", "chromium": "chromium", "rustc": "rustc", "convert": "convert-im6.q16"}

# Starts two programs in turns, the order by chance, as a shell of a build would at most; mean nanoseconds of each, without
# the slowest tenth.
STORM = """#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
extern char **environ;
static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
int main(int c, char **v) {
    int all = atoi(v[1]), seed = 1;
    double *took[2] = { calloc(all, sizeof(double)), calloc(all, sizeof(double)) };
    for (int n = 0; n < all; n++) {
        seed = seed * 1103515245 + 12345;
        for (int i = 0; i < 2; i++) {
            int which = i ^ ((seed >> 16) & 1), s;
            char *a[] = { v[2 + which], 0 };
            struct timespec from, to;
            pid_t p;
            clock_gettime(CLOCK_MONOTONIC, &from);
            if (posix_spawn(&p, a[0], 0, 0, a, environ)) return 1;
            waitpid(p, &s, 0);
            clock_gettime(CLOCK_MONOTONIC, &to);
            took[which][n] = (to.tv_sec - from.tv_sec) * 1e9 + to.tv_nsec - from.tv_nsec;
        }
    }
    for (int which = 0; which < 2; which++) {
        double sum = 0;
        int most = all - all / 10;
        qsort(took[which], all, sizeof(double), order);
        for (int n = 0; n < most; n++) sum += took[which][n];
        printf("%f\\n", sum / most);
    }
    return 0;
}
"""
# Is told of what is executed on the root's file system, as the service is, and never reads it.
UNREAD = """#include <fcntl.h>
#include <sys/fanotify.h>
#include <unistd.h>
int main(void) {
    int f = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_CLOEXEC | FAN_UNLIMITED_QUEUE, O_RDONLY);
    if (f < 0 || fanotify_mark(f, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN_EXEC, AT_FDCWD, "/")) return 1;
    char c = 1;
    if (write(1, &c, 1) != 1) return 1;
    while (read(0, &c, 1) > 0) { }
    return 0;
}
"""


def which(name):
    return shutil.which(name) or ""


class Bench:
    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(options.work)
        self.work.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.service = None
        source = self.work / "a.c"
        source.write_text("int main(void) { return 0; }\n")
        (self.work / "firefox").mkdir(exist_ok=True)
        values = {"{c}": str(source), "{work}": str(self.work), "{git}": str(ROOT / ".git")}
        common = subprocess.run(["git", "-C", ROOT, "rev-parse", "--git-common-dir"], capture_output=True, text=True)
        if common.returncode == 0:
            values["{git}"] = str((ROOT / common.stdout.strip()).resolve())
        wanted = options.only.split(",") if options.only else list(PROGRAMS)
        self.programs = {}
        for name in wanted:
            argv = PROGRAMS[name]
            for word, value in values.items():
                argv = [a.replace(word, value) for a in argv]
            if which(argv[0]):
                self.programs[name] = [which(argv[0]), *argv[1:]]

    # ----- the service

    def at(self):
        return ["--state", str(self.work / "state"), "--store", str(self.work / "plans")]

    def ask(self, *words):
        done = subprocess.run([COLD, "service", *words, *self.at()], capture_output=True, text=True, check=True)
        return json.loads(done.stdout) if "--json" in words else done.stdout

    def status(self):
        return self.ask("status", "--json")

    def begin(self, *flags):
        command = [COLD, "--quiet", "service", "run", *flags, *self.at()]
        self.service = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        self.until(lambda: self.status()["service"] is not None, 20)

    def end(self):
        if self.service:
            self.service.send_signal(signal.SIGTERM)
            self.service.wait(20)
            self.service = None

    def until(self, condition, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return True
            time.sleep(0.05)
        return False

    # ----- starts

    def drop(self):
        os.sync()
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")

    def start(self, argv):
        """Milliseconds from spawn to exit."""
        return self.timed(argv)[0]

    def timed(self, argv):
        """The same, and milliseconds of CPU time."""
        null = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)]
        began = time.perf_counter()
        pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=null)
        used = os.wait4(pid, 0)[2]
        return (time.perf_counter() - began) * 1e3, (used.ru_utime + used.ru_stime) * 1e3

    # ----- what is measured

    def learn(self):
        known = self.work / "learnt.json"
        told = json.loads(known.read_text()) if known.exists() else {}
        end = time.monotonic() + self.options.max_time
        # `cold service status`, which asks how far it is, would be noticed and recorded itself.
        self.begin("--no-keep", "--control-every", "0", "--except", str(COLD.parent))
        for name, argv in self.programs.items():
            if time.monotonic() > end:
                break
            if told.get(name) == "learnt":
                continue
            own = os.path.realpath(argv[0])

            def is_own(of):
                return own in (of["executable"], of["script"]) or os.path.basename(of["executable"]) == BEHIND.get(name)

            self.drop()
            self.start(argv)
            # What this program started, or others did, may wait to be learnt as well.
            noticed = self.until(lambda: any(is_own(w) for w in self.learning()["waiting"]), 4)
            armed = noticed and self.until(lambda: self.learning()["armed"], 4)
            self.drop()
            self.start(argv)

            # Another program that starts meanwhile may be learnt, too, so what is asked for is this one's plan.
            # The service tells of a plan only when a start has followed it.
            def has_plan():
                listed = subprocess.run([COLD, "prefetch", "--store", self.work / "plans", "list", "--json"],
                                        capture_output=True, text=True)
                return listed.returncode == 0 and any(is_own(p) for p in json.loads(listed.stdout)["plans"])

            def reasons():
                return [w["why"] for w in self.learning()["waiting"] if is_own(w) and w["why"]]

            self.until(lambda: has_plan() or reasons(), 15 if armed else 1)
            if has_plan():
                told[name] = "learnt"
            else:
                why = reasons()
                nothing = ("recorded, and nothing came of it" if armed else "noticed, and no recorder waited for it" if noticed
                           else "was not cold enough to be noticed")
                told[name] = why[-1] if why else nothing
            print(f"{name}: {told[name]} ({self.learning()['cpu_ns'] / 1e9:.1f} s of CPU time for learning so far)", flush=True)
        self.end()
        known.write_text(json.dumps(told))

    def learning(self):
        return self.status()["service"]["learning"]

    def learnt(self):
        told = json.loads((self.work / "learnt.json").read_text())
        return {name: argv for name, argv in self.programs.items() if told.get(name) == "learnt"}

    def measure(self):
        programs = self.learnt()
        self.begin("--no-keep", "--no-learn", "--control-every", "0")
        times = {name: {} for name in programs}
        end = time.monotonic() + self.options.max_time
        rounds = 0
        while rounds < self.options.rounds and time.monotonic() < end:
            for name, argv in programs.items():
                kinds = ["cold", "launched", "served", "warm"]
                random.shuffle(kinds)
                for kind in kinds:
                    self.ask("resume" if kind == "served" else "pause")
                    if kind == "warm":
                        self.start(argv)
                    else:
                        self.drop()
                    launch = [str(LAUNCH), "--store", str(self.work / "plans"), "--", *argv]
                    took = self.start(launch if kind == "launched" else argv)
                    times[name].setdefault(kind, []).append(took)
            rounds += 1
            (self.work / "times.json").write_text(json.dumps(times))
            print(f"round {rounds}", flush=True)
        (self.work / "status.json").write_text(json.dumps(self.status()))
        self.end()

    def keep(self):
        """Rest, or rest behind a hog (or with --drop behind a dropped cache, which takes names and inodes, too), then the
        five most used. Rest alone is the control: whoever has not run for a while finds the processor's own caches empty,
        too. Before both the cache is dropped and each is started three times, so that both find what starts have read."""
        programs = {name: self.programs[name] for name in list(self.learnt())[:5]}
        self.begin("--no-learn", "--control-every", "0")
        times = {name: {} for name in programs}
        end = time.monotonic() + self.options.max_time
        rounds = 0
        while rounds < self.options.rounds and time.monotonic() < end:
            rounds += 1
            for kind in random.sample(("rested", "after"), 2):
                self.drop()
                for name, argv in programs.items():
                    times[name].setdefault("warm", []).append([self.timed(argv) for _ in range(3)][-1])
                cached = None
                if kind == "after":
                    cached = self.drop() if self.options.drop else hog()
                before = vmstat()
                time.sleep(self.options.rest)
                after = vmstat()
                for name, argv in random.sample(sorted(programs.items()), len(programs)):
                    times[name].setdefault(kind, []).append(self.timed(argv))
                stolen = sum(after[n] - before[n] for n in ("pgsteal_file", "pgsteal_anon"))
                kept = self.status()["service"]["kept"]
                times.setdefault("rests", []).append({"kind": kind, "stolen": stolen, "kept": kept, "cached_kib": cached})
                hogged = f", KiB of files cached before and behind the hog: {cached}" if cached else ""
                print(f"{kind} {rounds}: {stolen} pages reclaimed in the rest, kept {kept}{hogged}", flush=True)
            (self.work / "keep.json").write_text(json.dumps(times))
        self.end()
        columns = {"warm": "one after the other", "rested": "after rest", "after": "emptied, after rest"}
        print(f"{rounds} rounds\n")
        print("| | " + " | ".join(f"{head}: time | CPU time" for head in columns.values())
              + " | emptied / after rest: time | CPU time |")
        print("|---" * (2 * len(columns) + 3) + "|")
        for name in programs:
            cells = {kind: [sorted(of) for of in zip(*times[name][kind])] for kind in columns}
            middle = {kind: [statistics.median(of) for of in v] for kind, v in cells.items()}
            shown = " | ".join(f"{middle[kind][0]:.1f} ({v[0][0]:.1f}–{v[0][-1]:.1f}) | {middle[kind][1]:.1f}"
                               for kind, v in cells.items())
            ratios = " | ".join(f"{e / r:.2f}" for e, r in zip(middle["after"], middle["rested"]))
            print(f"| `{name}` | {shown} | {ratios} |")

    def storm(self):
        """Starts in turns of a program on the disk, which is told of, and of one in memory, which nobody listens to, both with
        loaders there: their ratio with nothing listening, nothing again, the service, a listener that never reads."""
        storm, unread = self.compiled("storm", STORM), self.compiled("unread", UNREAD)
        ratios = {"nothing": [], "nothing again": [], "service": [], "told, unread": []}
        own, took = [], []
        end = time.monotonic() + self.options.max_time
        with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
            loader = shutil.copy(os.path.realpath("/lib64/ld-linux-x86-64.so.2"), memory)
            told = self.compiled("ends", "int main(void) { return 0; }\n")
            untold = self.compiled("ends", "int main(void) { return 0; }\n", memory, f"-Wl,--dynamic-linker={loader}")
            while len(took) < self.options.rounds and time.monotonic() < end:
                for kind in random.sample(list(ratios), len(ratios)):
                    listener = None
                    if kind == "service":
                        self.begin("--no-keep", *([] if self.options.learn else ["--no-learn"]))
                    elif kind == "told, unread":
                        listener = subprocess.Popen([unread], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                        listener.stdout.read(1)
                    # The first ones find out that it is a storm.
                    subprocess.run([storm, str(self.options.starts // 2), told, untold], check=True, stdout=subprocess.PIPE)
                    before = self.computed()
                    done = subprocess.run([storm, str(self.options.starts), told, untold], check=True, stdout=subprocess.PIPE)
                    disk, other = (float(line) for line in done.stdout.split())
                    ratios[kind].append(disk / other)
                    if kind == "service":
                        own.append((self.computed() - before) / self.options.starts)
                    elif kind == "nothing":
                        took.append(disk)
                    self.end()
                    if listener:
                        listener.communicate()
        (self.work / "storm.json").write_text(json.dumps({"ratios": ratios, "own": own, "took": took}))
        for kind in list(ratios)[1:]:
            costs = [b / a - 1 for b, a in zip(ratios[kind], ratios["nothing"])]
            means = sorted(statistics.fmean(random.choices(costs, k=len(costs))) for _ in range(4000))
            print(f"{kind}: {statistics.fmean(costs):+.2%} [{means[100]:+.2%} … {means[-101]:+.2%}], median "
                  f"{statistics.median(costs):+.2%}, {len(costs)} rounds")
        print(f"a start takes {statistics.median(took) / 1e3:.0f} µs; the service computes {statistics.median(own) / 1e3:.2f} µs "
              "for each pair of starts, on whichever processor")

    def computed(self):
        """CPU time of the service so far, nanoseconds."""
        tasks = pathlib.Path(f"/proc/{self.service.pid}/task").glob("*/schedstat") if self.service else []
        return sum(int(task.read_text().split()[0]) for task in tasks)

    def compiled(self, name, text, place=None, *flags):
        source, program = self.work / f"{name}.c", pathlib.Path(place or self.work) / name
        source.write_text(text)
        subprocess.run(["cc", "-O2", "-o", program, source, *flags], check=True)
        return program

    def table(self):
        times = json.loads((self.work / "times.json").read_text())
        sizes = {p["executable"]: p for p in json.loads((self.work / "status.json").read_text())["programs"]}
        print("| | plan, MB | cold | launched | served | warm | served / launched | served / cold |")
        print("|---|---|---|---|---|---|---|---|")
        all_ratios = []
        for name, kinds in times.items():
            cell = {k: f"{statistics.median(v):.1f} ({min(v):.0f}–{max(v):.0f})" for k, v in kinds.items()}
            real = os.path.realpath(self.programs[name][0])
            followed = sizes.get(real, {})
            size = f"{followed['bytes'] / max(followed['followed'], 1) / 1e6:.1f}" if followed else "unknown"
            median = {k: statistics.median(v) for k, v in kinds.items()}
            ratio = median["served"] / median["launched"]
            all_ratios.append(ratio)
            print(f"| `{name}` | {size} | {cell['cold']} | {cell['launched']} | {cell['served']} | {cell['warm']} "
                  f"| {ratio:.2f} | {median['served'] / median['cold']:.2f} |")
        print(f"\n{len(all_ratios)} programs; served / launched: median {statistics.median(all_ratios):.2f}, "
              f"{sum(r <= 1.05 for r in all_ratios)} at most 1.05")


def vmstat():
    lines = pathlib.Path("/proc/vmstat").read_text().splitlines()
    return {name: int(value) for name, value in (line.split() for line in lines)}


def memory_kib(name):
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return int(dict(line.split(":") for line in lines)[name].split()[0])


def cached_kib():
    """Kibibytes of files that are cached."""
    return memory_kib("Cached") - memory_kib("Shmem")


def hog():
    """Takes memory, touches it until less than 24 MiB of files are in the cache, and ends; killed first where there is too
    little. Kibibytes of files that were cached before and afterwards."""
    before = cached_kib()
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return before, cached_kib()
    try:
        pathlib.Path("/proc/self/oom_score_adj").write_text("1000")
        memory = mmap.mmap(-1, memory_kib("MemTotal") << 10)
        chunk = b"\1" * (1 << 20)
        for at in range(0, len(memory) - len(chunk), len(chunk)):
            memory[at:at + len(chunk)] = chunk
            if at % (16 << 20) == 0 and cached_kib() < 24 << 10:
                break
    finally:
        os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["learn", "measure", "keep", "storm", "table"])
    parser.add_argument("--work", default="/var/tmp/cold-service-bench")
    parser.add_argument("--only", help="names of programs, separated by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--drop", action="store_true", help="keep: the cache is dropped, no hog takes the memory")
    parser.add_argument("--rest", type=float, default=30, help="keep: seconds before the starts")
    parser.add_argument("--learn", action="store_true", help="in storms the service learns, as it usually does")
    parser.add_argument("--starts", type=int, default=3000, help="of a batch of a storm")
    parser.add_argument("--max-time", type=float, default=270, help="seconds until no further round begins")
    options = parser.parse_args()
    if os.geteuid() != 0 and options.what != "table":
        sys.exit("benches/service.py: needs root")
    bench = Bench(options)
    try:
        getattr(bench, options.what)()
    finally:
        bench.end()


if __name__ == "__main__":
    main()
