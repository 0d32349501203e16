#!/usr/bin/env python3
"""What a consensus plan of one version of a package is worth to the next one, against a plan learnt there.

Two root directories are made of Debian 12's packages on a test disk, python3.11 and libssl3 before and after a security
update, the rest the same. Starts of the first are recorded (as usual, and with exact needs), added to a dataset and made
into consensus plans, one of the usual starts alone and one of all. Then the second version lies at the same path: a plan is
learnt there, the others are imported, and starts by each are measured in turn, with the local plan twice (A/A).
Root only, a quiet machine, and Debian's packages. COLD=path of a release build with cold-testdisk beside it; DUCKDB=path.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benches/prefetch"))
import disks  # noqa: E402

CHANGED = {"python3.11-minimal": 0, "libpython3.11-minimal": 0, "libpython3.11-stdlib": 0, "libssl3": 1}
VERSIONS = (("3.11.2-6+deb12u8", "3.0.20-1~deb12u2"), ("3.11.2-6+deb12u9", "3.0.22-1~deb12u2"))
SAME = ["libc6", "zlib1g", "libexpat1", "libffi8", "libsqlite3-0", "liblzma5", "libbz2-1.0", "libuuid1", "libcrypt1",
        "libnsl2", "libtirpc3", "media-types"]
MODULES = "import json, http.server, sqlite3, ssl, urllib.request"


def run(*words, **options):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return done.stdout


def packages(work):
    """The archives of both versions."""
    found = []
    for python, ssl in VERSIONS:
        there = work / python
        there.mkdir(parents=True, exist_ok=True)
        wanted = [f"{name}={(python, ssl)[which]}" for name, which in CHANGED.items()] + SAME
        if len(list(there.glob("*.deb"))) < len(wanted):
            run("apt-get", "-o", "APT::Sandbox::User=root", "download", "-q", *wanted, cwd=there)
        found.append(sorted(there.glob("*.deb")))
    return found


def unpack(archives, root):
    root.mkdir()
    for archive in archives:
        run("dpkg-deb", "-x", archive, root)
    run(*python(root, "-m", "compileall", "-q", root / "usr/lib/python3.11"))


def python(root, *words):
    """By the directory's own loader, so that no other program holds any of the files."""
    lib = root / "lib/x86_64-linux-gnu"
    path = f"{lib}:{root}/usr/lib/x86_64-linux-gnu"
    return [lib / "ld-linux-x86-64.so.2", "--library-path", path, root / "usr/bin/python3.11", *words]


class Bench:
    def __init__(self, options, work, mount):
        self.options, self.work, self.mount = options, work, mount
        self.cold, self.duckdb = os.environ["COLD"], os.environ.get("DUCKDB", "duckdb")
        self.root = mount / "root"

    def start(self):
        return python(self.root, "-c", MODULES)

    def record(self):
        """The consensus plans of the first version: of usual starts, and of these and exact ones."""
        made = {}
        for kind, flags in (("usual", []), ("exact", ["--exact-need"])):
            made[kind] = [self.work / f"{kind}-{n}.cold" for n in range(self.options.starts)]
            for name in made[kind]:
                run(self.cold, "trace", "-q", "--evict", "all", *flags, "-o", name, "--", *self.start())
        texts = {}
        for name, kinds in (("usual", ["usual"]), ("all", ["usual", "exact"])):
            dataset, text = self.work / f"fleet-{name}", self.work / f"{name}.plan.json"
            run(self.cold, "fleet", "add", "-q", "--program", "python3.11", "--program-version", "first", dataset,
                *[recording for kind in kinds for recording in made[kind]])
            run(self.cold, "fleet", "plan", "-q", "--duckdb", self.duckdb, "-o", text, dataset)
            texts[name] = text
        return texts

    def plans(self, texts):
        """A store for each plan of the second version, the local one's first."""
        stores = {"local": self.mount / "store-local"}
        run(self.cold, "prefetch", "learn", "-q", "--store", stores["local"], "--", *self.start())
        for name, text in texts.items():
            stores[name] = self.mount / f"store-{name}"
            run(self.cold, "prefetch", "import", "-q", "--store", stores[name], text)
        for name, store in stores.items():
            plan = json.loads(run(self.cold, "prefetch", "list", "--json", "--store", store))["plans"][0]
            print(f"{name}: {plan['bytes'] / (1 << 20):.1f} MiB", file=sys.stderr)
        return stores

    def took(self, store):
        """Seconds of a start by the plan of this store; None for one that does not count."""
        out = self.work / "bench.json"
        run(self.cold, "bench", "-q", "--evict", "all", "--states", "prefetched", "-r", 1, "--store", store,
            "--export-json", out, "--", *self.start())
        times = json.loads(out.read_text())["results"][0]["times"]
        return times[0] if times else None

    def measure(self, stores):
        ways = [*stores.items(), ("local again", stores["local"])]
        took = {name: [] for name, _ in ways}
        for n in range(self.options.rounds):
            random.shuffle(ways)
            one = {name: self.took(store) for name, store in ways}
            if all(one.values()):
                for name, seconds in one.items():
                    took[name].append(seconds)
        return took


def interval(ratios):
    """95 % by 2000 resamplings of the rounds."""
    chosen = random.Random(1)
    medians = sorted(statistics.median(chosen.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[50], medians[1949]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--disk", default="cloud", help="preset of the test disk")
    parser.add_argument("--starts", type=int, default=3, help="recorded starts of each kind")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--same", action="store_true", help="record the second version itself: what is not the version's")
    parser.add_argument("--packages", type=pathlib.Path, default=pathlib.Path("/var/tmp/cold-bench-consensus"))
    options = parser.parse_args()
    if not os.environ.get("COLD"):
        sys.exit("COLD names no release build of cold")
    archives = packages(options.packages)
    tool = pathlib.Path(os.environ["COLD"]).with_name("cold-testdisk")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as work, disks.TestDisk(tool, options.disk, "1G") as disk:
        bench = Bench(options, pathlib.Path(work), disk.mount)
        unpack(archives[1 if options.same else 0], bench.root)
        texts = bench.record()
        if not options.same:
            bench.root.rename(disk.mount / "first")
            unpack(archives[1], bench.root)
        took = bench.measure(bench.plans(texts))
    print("| plan | median ms | to the local plan | rounds |\n| --- | ---: | --- | ---: |")
    for name, times in took.items():
        if not times:
            print(f"| {name} | unknown | unknown | 0 |")
            continue
        ratios = [a / b for a, b in zip(times, took["local"])]
        low, high = interval(ratios)
        print(f"| {name} | {statistics.median(times) * 1e3:.0f} | {statistics.median(ratios):.3f} [{low:.3f} … {high:.3f}] "
              f"| {len(times)} |")


if __name__ == "__main__":
    main()
