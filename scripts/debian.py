"""Packages of Debian, of any suite and processor, fetched and unpacked without root.

This machine's apt stays as it is: lists, cache and state are a directory of ours.
"""

import os
import pathlib
import re
import subprocess
import sys

# Directories whose lists are those of today.
updated = set()
KEY = "/usr/share/keyrings/debian-archive-keyring.gpg"


def fetch(work, suite, processor, pattern, there):
    """Unpacks the newest package whose name matches `pattern` into `there`; lists and archives lie below `work`."""
    if not os.path.exists(KEY):
        sys.exit(f"debian: {KEY} is missing, without which Debian's packages are not proved to be Debian's; "
                 "install it: apt-get install debian-archive-keyring")
    apt = work / "apt" / f"{suite}-{processor}"
    for part in ["lists/partial", "cache/archives/partial", "state"]:
        (apt / part).mkdir(parents=True, exist_ok=True)
    (apt / "sources.list").write_text(f"deb [signed-by={KEY}] http://deb.debian.org/debian {suite} main\n")
    (apt / "state" / "status").touch()
    options = ["-o", f"Dir::Etc::sourcelist={apt}/sources.list", "-o", "Dir::Etc::sourceparts=-",
               "-o", f"Dir::State={apt}/state", "-o", f"Dir::State::status={apt}/state/status",
               "-o", f"Dir::State::lists={apt}/lists", "-o", f"Dir::Cache={apt}/cache",
               "-o", f"APT::Architecture={processor}", "-o", f"APT::Architectures={processor}"]
    if os.geteuid() == 0:
        options += ["-o", "APT::Sandbox::User=root"]
    if apt not in updated:
        run("apt-get", *options, "-qq", "update")
        updated.add(apt)
    names = run("apt-cache", *options, "search", "--names-only", pattern, capture_output=True, text=True).stdout
    found = [line.split()[0] for line in names.splitlines() if re.match(pattern, line.split()[0])]
    if not found:
        sys.exit(f"debian: Debian's {suite} has no package like {pattern} for {processor}")
    newest = max(found, key=lambda n: [int(x) for x in re.findall(r"[0-9]+", n)])
    run("apt-get", *options, "-qq", "download", newest, cwd=apt)
    there.mkdir(parents=True, exist_ok=True)
    for deb in apt.glob(f"{newest}_*.deb"):
        run("dpkg-deb", "-x", deb, there)
        deb.unlink()
    return there


def run(*argv, **kw):
    """Runs a command, or ends with what it was."""
    try:
        return subprocess.run([str(a) for a in argv], check=True, **kw)
    except subprocess.CalledProcessError as e:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: this failed with {e.returncode}: {' '.join(e.cmd)}")
