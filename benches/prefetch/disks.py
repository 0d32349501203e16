"""Test disks: the subjects' files copied there and bound over the originals, in a mount namespace of its own.

Whole directories are bound, because a launcher walks into mounts by their directories. Small ones are copied
whole; of large ones the tree of directories, the symbolic links and the files that starts were seen to use.
"""

import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys

WHOLE = 64 << 20  # directories up to this size are copied whole
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000


class TestDisk:
    """A running test disk; gone at the end of the block, also after an error."""

    def __init__(self, tool, preset, size="3G", punctual=False):
        self.tool, self.preset, self.size = tool, preset, size
        self.flags = ["--punctual"] if punctual else []

    def __enter__(self):
        self.process = subprocess.Popen(
            [self.tool, "create", "--preset", self.preset, "--size", self.size, "--json", "--until-eof",
             *self.flags],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise RuntimeError(f"no test disk {self.preset}: see above")
        self.info = json.loads(line)
        self.mount = pathlib.Path(self.info.get("mount_point") or self.info["mount"])
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        if self.process.wait(timeout=60) != 0:
            print(f"prefetch: the test disk was not removed cleanly; run {self.tool} clean", file=sys.stderr)


def units(paths):
    """The directories that are bound: /usr/lib/X, /usr/share/X, /usr/bin, /etc, and so on."""
    found = set()
    for path in paths:
        parts = pathlib.PurePath(path).parts
        depth = {"etc": 2, "opt": 3, "var": 4}.get(parts[1] if len(parts) > 1 else "", 0)
        if parts[1:2] == ("usr",):
            depth = 4 if parts[2:3] in (("lib",), ("share",), ("libexec",), ("local",)) else 3
        unit = pathlib.Path(*parts[:depth]) if 0 < depth <= len(parts) else None
        if unit and unit.is_dir() and not unit.is_symlink():
            found.add(unit)
    return sorted(found)


def size_of(top):
    return sum(f.stat(follow_symlinks=False).st_size for d, _, names in os.walk(top)
               for f in (pathlib.Path(d, n) for n in names) if f.exists() or f.is_symlink())


def copy(unit, to, used):
    """A copy of a directory: whole when small, otherwise what is used."""
    if size_of(unit) <= WHOLE:
        shutil.copytree(unit, to, symlinks=True, ignore_dangling_symlinks=True,
                        ignore=lambda d, names: [n for n in names if special(pathlib.Path(d, n))])
        return
    for directory, below, names in os.walk(unit):
        here = to / pathlib.Path(directory).relative_to(unit)
        here.mkdir(parents=True, exist_ok=True)
        for name in names + [b for b in below if os.path.islink(os.path.join(directory, b))]:
            source = pathlib.Path(directory, name)
            if source.is_symlink():
                (here / name).symlink_to(os.readlink(source))
            elif str(source) in used:
                shutil.copy2(source, here / name)
        shutil.copystat(directory, here)


def special(path):
    return not (path.is_symlink() or path.is_file() or path.is_dir())


def mount(source, target, flags):
    libc = ctypes.CDLL(None, use_errno=True)
    encoded = [None if a is None else os.fsencode(str(a)) for a in (source, target)]
    if libc.mount(*encoded, None, flags, None) != 0:
        raise OSError(ctypes.get_errno(), f"mount {source} at {target}")


def fill(disk, run, used, left_out):
    """Copies everything to the disk, of `run` all but `left_out`; (copy, original) per directory."""
    pairs = []
    for unit in units(used):
        to = disk.mount / "root" / unit.relative_to("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        copy(unit, to, used)
        pairs.append((to, unit))
    shutil.copytree(run, disk.mount / "run", symlinks=True,
                    ignore=lambda d, names: [n for n in names if n in left_out or special(pathlib.Path(d, n))
                                             or n.startswith(("Singleton", ".parentlock", "lock"))])
    os.sync()
    return [*pairs, (disk.mount / "run", run)]


def inside(pairs, work):
    """Does `work()` in a child that sees the copies in place of the originals; its success."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.unshare(CLONE_NEWNS) != 0:
                raise OSError(ctypes.get_errno(), "unshare")
            mount(None, "/", MS_REC | MS_PRIVATE)
            for source, target in pairs:
                mount(source, target, MS_BIND)
            work()
            code = 0
        except BaseException as error:  # the child must end here, whatever happened
            print(f"prefetch: {error!r}", file=sys.stderr)
        finally:
            sys.stderr.flush()
            os._exit(code)
    try:
        return os.waitpid(child, 0)[1] == 0
    except BaseException:
        os.kill(child, 15)
        os.waitpid(child, 0)
        raise
