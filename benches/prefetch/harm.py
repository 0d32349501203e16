"""Table 3: starts that a plan cannot help, or that it could harm. On the machine's own disk."""

import contextlib
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import time

import page

READER = """import sys, os
names = sorted(os.listdir(sys.argv[1]))
total = 0
for name in names:
    with open(os.path.join(sys.argv[1], name), 'rb', buffering=0) as f:
        while piece := f.read(1 << 16):
            total += len(piece)
    sum(range(2000))
print(total)
"""
SCATTER = """import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
for i in range(10000):
    os.pread(fd, 4096, i * 65536)
"""
FILES = ("stale", "many", "load", "scatter")  # directories and files that the cases make
# A start that rightly went without its plan is what these cases are about.
SKIPPED = ("not_prefetched",)


PR_SET_CHILD_SUBREAPER = 36


def cold_cache():
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")


class Harm:
    def __init__(self, tools, run, rounds, environment, evict):
        self.tools, self.run, self.rounds, self.environment, self.evict = tools, run, rounds, environment, evict
        self.store = run / "plans-harm"

    def cold(self, *words, ok=(0,), prefix=()):
        done = subprocess.run([*prefix, self.tools.cold, "-q", *map(str, words)], stdout=subprocess.PIPE, text=True,
                              env=self.environment, check=False)
        if done.returncode not in ok:
            raise RuntimeError(f"cold {' '.join(map(str, words))} failed with {done.returncode}")
        return done.stdout

    def learn(self, argv, *more):
        self.cold("prefetch", "--store", self.store, "learn", "--evict", self.evict, "--starts", "2", "--json", *more,
                  "--", *argv)

    def bench(self, case, argv, note, more=(), prefix=(), allowed=SKIPPED):
        text = self.cold("bench", "--json", "--store", self.store, "--evict", self.evict, "--states",
                         "cold,prefetched", "-r", self.rounds, *more, "--", *argv, ok=(0, 4), prefix=prefix)
        blocks = [{"main": json.loads(text)}]
        bare, through = (page.times(blocks, "main", s, None, allowed) for s in ("cold", "prefetched"))
        why = {t["why"] for r in blocks[0]["main"]["runs"] for t in r["taints"] if t["kind"] == "not_prefetched"}
        return {"case": case, "bare": bare, "through": through, "compare": "ratio",
                "note": note + ("; the launcher: " + "; ".join(sorted(why)) if why else "")}

    def warm(self, case, argv, store, count):
        """Wall time of whole warm starts, alternating."""
        bare, through = [], []
        for i in range(count + 6):
            pair = [(bare, argv), (through, [self.tools.launch, "--store", store, "--", *argv])]
            for kept, words in pair if i % 2 else reversed(pair):
                began = time.monotonic()
                pid = os.posix_spawnp(str(words[0]), [str(w) for w in words], self.environment, file_actions=[
                    (os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)])
                os.waitpid(pid, 0)
                if i >= 6:
                    kept.append(time.monotonic() - began)
        return {"case": case, "bare": bare, "through": through, "compare": "difference", "note": f"{count} pairs"}

    def files(self, name, count, size):
        directory = self.run / name
        if not directory.exists():
            directory.mkdir()
            for i in range(count):
                (directory / f"{i:04}").write_bytes(os.urandom(size))
        return directory

    def big_file(self, name, mebibytes):
        path = self.run / name
        if not path.exists():
            with open(path, "wb") as f:
                for _ in range(mebibytes):
                    f.write(os.urandom(1 << 20))
            os.sync()
        return path

    def reader(self, directory):
        script = self.run / f"{directory.name}.py"
        script.write_text(READER)
        return ["/usr/bin/python3", "-S", "-E", str(script), str(directory)]

    def other_scenario(self):
        small = ["/usr/bin/python3", "-c", "import json"]
        big = ["/usr/bin/python3", "-c", "import asyncio, ssl, sqlite3, unittest, decimal, xmlrpc.server, tkinter.ttk"]
        self.learn(big[:-1] + [big[-1].replace(", tkinter.ttk", "")], "--scenario", "other")
        return self.bench("plan of another scenario", small, "a small program with a big one's plan",
                          ("--scenario", "other"))

    def half_stale(self):
        directory = self.files("stale", 200, 96 << 10)
        argv = self.reader(directory)
        self.learn(argv)
        for name in sorted(os.listdir(directory))[::2]:
            with open(directory / name, "ab") as f:
                f.write(b"upgraded")
        os.sync()
        return self.bench("half of the plan stale", argv, "every second of 200 files replaced since")

    def small_memory(self):
        """A memory control group with half the room of what is read."""
        directory = self.files("many", 320, 512 << 10)
        argv = self.reader(directory)
        self.learn(argv)
        group = pathlib.Path("/sys/fs/cgroup/memory/cold-bench-prefetch")
        limit, tasks = "memory.limit_in_bytes", "cgroup.procs"
        if not group.parent.is_dir():
            group, limit = pathlib.Path("/sys/fs/cgroup/cold-bench-prefetch"), "memory.max"
        group.mkdir(exist_ok=True)
        try:
            (group / limit).write_text(str(96 << 20))
            prefix = ["/bin/sh", "-c", f'echo $$ > {group}/{tasks} && exec "$@"', "sh"]
            return self.bench("memory limit below the plan", argv, "160 MiB read with a limit of 96 MiB",
                              prefix=prefix, allowed=(*SKIPPED, "pages_reclaimed", "refaults"))
        finally:
            for _ in range(50):
                with contextlib.suppress(OSError):
                    group.rmdir()
                    break
                time.sleep(0.1)

    def many_ranges(self):
        """CPU of the helper that issues 10,000 ranges of one page, and what the plan costs a warm start."""
        big, script = self.big_file("scatter", 640), self.run / "scatter.py"
        script.write_text(SCATTER)
        argv = ["/usr/bin/python3", "-S", "-E", str(script), str(big)]
        self.learn(argv)
        plan = json.loads(self.cold("prefetch", "--store", self.store, "show", "--json", "--", *argv))
        launch = [self.tools.launch, "--plan", plan["file"], "--"]
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # the helper's CPU time comes to us
        cpu = []
        for _ in range(10):
            cold_cache()
            program = subprocess.Popen([*launch, "/bin/sleep", "3"], stdin=subprocess.DEVNULL)
            program.wait()
            usage = os.wait4(-1, 0)[2]
            cpu.append(usage.ru_utime + usage.ru_stime)
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        return {"case": "CPU of the helper", "bare": [], "through": cpu, "compare": "value",
                "note": f"{plan['requests']} requests, {plan['bytes'] / 2**20:.0f} MiB, none cached"}

    def busy_disk(self, argv):
        big = self.big_file("load", 512)
        self.learn(argv)
        loop = f"while :; do dd if={big} of=/dev/null bs=1M iflag=direct 2>/dev/null; done"
        load = [subprocess.Popen(["/bin/sh", "-c", loop], start_new_session=True) for _ in range(4)]
        try:
            time.sleep(1)
            return self.bench("saturated disk", argv, "four endless 1 MiB direct readers of the same disk",
                              allowed=(*SKIPPED, "foreign_reads", "busy_machine"))
        finally:
            for p in load:
                os.killpg(p.pid, 9)
                p.wait()


def measure(harm, subjects, store, done, check_time):
    """All cases that are not done yet; `done` keeps them as they come."""
    python = subjects.get("python3") or next(iter(subjects.values()))
    cases = {
        "other": harm.other_scenario,
        "stale": harm.half_stale,
        "memory": harm.small_memory,
        "busy": lambda: harm.busy_disk(python),
        "ranges": harm.many_ranges,
        "true": lambda: harm.warm("launch overhead, no plan: /bin/true", ["/bin/true"], harm.store, 300),
    }
    for name, argv in subjects.items():
        count = 100 if name in ("python3", "git", "node") else 15
        cases[f"warm-{name}"] = lambda a=argv, n=name, c=count: harm.warm(f"warm start: {n}", a, store, c)
    for name, case in cases.items():
        if done.has(name):
            continue
        check_time()
        print(f"prefetch: never harmful: {name}", file=sys.stderr)
        try:
            row = case()
        except (RuntimeError, OSError) as error:
            row = {"case": name, "bare": [], "through": [], "compare": "ratio", "note": f"failed: {error}"}
        done.put(name, row)
