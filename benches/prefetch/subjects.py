"""The programs that are started, and the inputs they get."""

import os
import pathlib
import shutil
import subprocess

IMPORTS = "asyncio,ssl,json,email,http.client,xml.dom.minidom,sqlite3,unittest,decimal,multiprocessing,logging.config"
JAVA = """
import java.util.stream.*;
public class Work {
    public static void main(String[] a) throws Exception {
        System.out.println(IntStream.range(0, 100000).boxed().collect(Collectors.toMap(i -> i, i -> "" + i)).size());
        System.out.println(java.time.ZonedDateTime.now() + " " + java.util.Locale.getAvailableLocales().length);
        System.out.println(java.security.MessageDigest.getInstance("SHA-256").digest(new byte[1 << 20]).length);
        java.nio.file.Files.list(java.nio.file.Path.of("/")).map(Object::toString).sorted().forEach(p -> { });
    }
}
"""
NODE = """
const names = ['fs', 'http', 'https', 'crypto', 'zlib', 'url', 'stream', 'worker_threads', 'readline', 'dns', 'tls'];
const all = names.map(n => require(n));
console.log(all.length, all[3].createHash('sha256').update('x').digest('hex'));
"""
PHP = """<?php
$tidy = array_map(fn($i) => hash('sha256', json_encode(['n' => $i])), range(1, 2000));
echo count($tidy), ' ', preg_match_all('/[a-f]+/', implode($tidy)), ' ', (new DateTime())->format('c'), "\\n";
"""
PAGE = "<h1>Hello</h1><script>let s = 0; for (let i = 0; i < 3e6; i++) s += i; document.title = s</script>\n"
TREE_DIRECTORIES, TREE_FILES = 300, 100
WINDOWS = {"gimp", "vlc"}  # they want an X server (DISPLAY); Xvfb serves


def quietly(argv, **options):
    subprocess.run([str(a) for a in argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, **options)


def jar(run):
    """A jar with real work in it; none without a compiler."""
    if not (shutil.which("javac") and shutil.which("jar")):
        return
    source = run / "Work.java"
    source.write_text(JAVA)
    quietly(["javac", "-d", run, source])
    quietly(["jar", "--create", "--file", run / "work.jar", "--main-class", "Work", "-C", run, "Work.class"])


def player(run):
    """VLC as root may start it: its program asks for the parent's number instead of the user's."""
    installed = shutil.which("vlc")
    if installed:
        (run / "vlc").write_bytes(pathlib.Path(installed).read_bytes().replace(b"geteuid", b"getppid"))
        (run / "vlc").chmod(0o755)


def repository(run):
    """A repository of 30,000 files."""
    tree = run / "tree"
    for d in range(TREE_DIRECTORIES):
        (tree / f"d{d}").mkdir(parents=True)
        for f in range(TREE_FILES):
            (tree / f"d{d}" / f"f{f}").write_text(f"{d} {f}\n" * 20)
    who = ["-c", "user.name=b", "-c", "user.email=b@example.org", "-c", "gc.auto=0"]
    quietly(["git", "-C", tree, "init", "-q"])
    quietly(["git", "-C", tree, "add", "."])
    quietly(["git", "-C", tree, *who, "commit", "-q", "-m", "all"])


def argvs(run):
    """Name -> command line, of all subjects, in the order they are measured in."""
    return {
        "python3": ["/usr/bin/python3", "-c", f"import {IMPORTS}"],
        "node": ["node", run / "app.js"],
        "php": ["php", run / "app.php"],
        "git": ["git", "-C", run / "tree", "status"],
        "java": ["java", "-jar", run / "work.jar"],
        "firefox-esr": ["firefox-esr", "--headless", "--profile", run / "firefox", "--screenshot", run / "f.png",
                        f"file://{run}/page.html"],
        "chromium": ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={run}/chromium",
                     f"--screenshot={run}/c.png", f"file://{run}/page.html"],
        "gimp": ["gimp", "--batch", "(gimp-quit 0)"],
        "vlc": [run / "vlc", "--intf", "qt", "--no-qt-privacy-ask", "vlc://quit"],
        "libreoffice": ["soffice", "--headless", f"-env:UserInstallation=file://{run}/office", "--convert-to", "pdf",
                        "--outdir", run, run / "page.html"],
    }


def environment(run):
    """The user's caches and settings lie with the inputs, on the measured disk."""
    return {**os.environ, "HOME": str(run / "home"), "XDG_CACHE_HOME": str(run / "home/.cache"),
            "XDG_CONFIG_HOME": str(run / "home/.config"), "GIT_OPTIONAL_LOCKS": "0"}


def make(run, wanted):
    """Makes the inputs that are not there; the command lines of the wanted subjects that are installed."""
    for d in ("home/.cache", "home/.config", "firefox"):
        (run / d).mkdir(parents=True, exist_ok=True)
    (run / "page.html").write_text(PAGE) if not (run / "page.html").exists() else None
    (run / "app.js").write_text(NODE) if not (run / "app.js").exists() else None
    (run / "app.php").write_text(PHP) if not (run / "app.php").exists() else None
    have = {}
    for name, argv in argvs(run).items():
        if (wanted and name not in wanted) or (name in WINDOWS and "DISPLAY" not in os.environ):
            continue
        if name == "vlc" and not (run / "vlc").exists():
            player(run)
        program = shutil.which(argv[0])
        if not program:
            continue
        if name == "git" and not (run / "tree/.git").exists():
            shutil.rmtree(run / "tree", ignore_errors=True)
            repository(run)
        if name == "java":
            if not (run / "work.jar").exists():
                jar(run)
            if not (run / "work.jar").exists():
                continue
        have[name] = [program, *(str(a) for a in argv[1:])]
    return have


def settle(argv, environment_):
    """One start, so that profiles and caches of the program's own are there."""
    return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env=environment_, timeout=300, check=False).returncode == 0


def resolved(path):
    return pathlib.Path(os.path.realpath(path))
