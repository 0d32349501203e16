//! Programs to trace, and the tracing of them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cold_model::bench::Ending;
use cold_model::order::{Exclude, TracedStart, Tracing};
use cold_sys::observe::{Client, ObserveSpec, Streams};
use cold_testbed::PATIENCE;

pub(crate) const LINKAGES: [(&str, &[&str]); 4] = [
    ("pie", &["-pie"]),
    ("fixed", &["-no-pie"]),
    ("static", &["-static", "-no-pie"]),
    ("static-pie", &["-static-pie"]),
];

/// Programs whose output does not depend on time, with arguments.
pub(crate) const PROGRAMS: &[&[&str]] = &[
    &["ls", "/usr/share"],
    &["cat", "/etc/passwd"],
    &["sh", "-c", "for i in 1 2 3; do echo $i | cat | (read x; echo got $x); done; exit 4"],
    &["bash", "-c", "f() { echo $((1 + 2)); }; x=$(f); echo ${x^^}; kill -TERM $$"],
    &["bash", "-c", "sleep 5 & kill $!; wait $!; echo $?"],
    &["bash", "-c", "trap 'echo usr' USR1; kill -USR1 $$; (exit 3); echo $?"],
    &["sed", "-n", "1,3p", "/etc/passwd"],
    &["awk", "BEGIN { for (i = 0; i < 5; i++) print i * i }"],
    &["grep", "-c", "a", "/etc/services"],
    &["sort", "-r", "/etc/passwd"],
    &["find", "/etc/apt", "-name", "*.list"],
    &["tar", "cf", "-", "--mtime=@0", "/etc/hostname"],
    &["gzip", "-nc", "/etc/services"],
    &["xz", "-c", "-T2", "/etc/services"],
    &["perl", "-e", "use POSIX; print join(',', map { $_ ** 2 } 1 .. 5), \"\\n\"; exit 9"],
    &[
        "python3",
        "-c",
        "import json, sqlite3, threading, subprocess\nprint(json.dumps({'a': 1}))\nprint(subprocess.check_output(['echo', 'x']))\nt = threading.Thread(target=print, args=('t',)); t.start(); t.join()",
    ],
    &["python3", "-c", "import ctypes, hashlib, ssl\nprint(hashlib.sha256(b'x').hexdigest())"],
    &["python3", "-c", "import os; os.abort()"],
    &["git", "--version"],
    &["gcc", "-x", "c", "-S", "-O2", "-o", "-", "/dev/null"],
    &["openssl", "dgst", "-sha256", "/etc/services"],
    &["make", "--version"],
    &["gdb", "--version"],
    &["node", "-e", "console.log([1,2,3].map(x => x * 2)); setTimeout(() => process.exit(6), 5)"],
    &["java", "-version"],
    &["ruby", "-e", "puts [3,1,2].sort.inspect"],
    &["sqlite3", ":memory:", "select 1 + 1"],
    &["curl", "--version"],
    &["cargo", "--version"],
    &["rustc", "--version"],
    &["nproc"],
    &["taskset", "-c", "0", "nproc"],
    &["python3", "-c", "import os; print(os.sched_getaffinity(0), os.cpu_count())"],
    &["true"],
    &["false"],
    &["env", "-i", "A=1", "env"],
    &["firefox-esr", "--version"],
    &[
        "node",
        "-e",
        "const { Worker, isMainThread } = require('worker_threads'); const c = require('crypto');\
         console.log(isMainThread, c.createHash('sha256').update('x').digest('hex'));\
         new Worker('process.exit(3)', { eval: true }).on('exit', code => console.log(code));",
    ],
    &["g++", "-x", "c++", "-std=c++20", "-fsyntax-only", "-H", "/dev/null"],
    &["clang", "-x", "c", "-S", "-O2", "-o", "-", "/dev/null"],
    &["ld", "--version"],
    &["readelf", "-hW", "/bin/ls"],
    &["nm", "-D", "/usr/bin/env"],
    &["cmake", "--version"],
    &["ninja", "--version"],
    &["go", "version"],
    &["vim", "--version"],
    &["ssh", "-G", "nowhere.invalid"],
    &["jq", "-cn", "[range(5)] | map(. * 2)"],
    &["diff", "/etc/passwd", "/etc/group"],
    &["cmp", "/etc/passwd", "/etc/group"],
    &["timeout", "-s", "KILL", "0.3", "sleep", "9"],
    &["timeout", "0.3", "sleep", "9"],
    &["xargs", "-a", "/etc/hostname", "-n1", "-P4", "echo"],
    &["file", "-b", "/bin/ls"],
    &["dpkg", "-L", "base-files"],
    &["apt-cache", "show", "base-files"],
    &["gpg", "--version"],
    &["zstd", "-c", "-T2", "--quiet", "/etc/services"],
    &["bzip2", "-c", "/etc/services"],
    &["tclsh", "/dev/null"],
    &["psql", "--version"],
    &["debugfs", "-V"],
    &["strace", "-V"],
    &["factor", "1234567890123456789"],
    &["patch", "--version"],
    &["git", "-c", "safe.directory=*", "hash-object", "/etc/services"],
    &["perl", "-e", "fork // die; wait; $| = 1; print $$ ? 1 : 0; kill 'HUP', $$; sleep 9"],
    &["python3", "-c", "import signal, os; signal.alarm(1); signal.pause()"],
    &["python3", "-c", "import multiprocessing as m\nwith m.Pool(2) as p: print(p.map(abs, [-1, 2, -3]))"],
    &["pip3", "--version"],
    &["xxd", "/etc/hostname"],
    &["mawk", "BEGIN { \"date +%Y\" | getline y; print (y > 2000); exit 3 }"],
];

fn compile(cc: &str, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/entries").join(source);
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Renamed into place: another test may be executing the one that is there.
    let id = format!("{}-{:?}", std::process::id(), std::thread::current().id());
    let new = out.with_extension(id.replace(['(', ')'], ""));
    let mut command = Command::new(cc);
    command.args(["-O1", "-Wall", "-pthread", "-o"]).arg(&new).arg(source).args(flags).stderr(Stdio::null());
    if !cold_testbed::need(command.status().is_ok_and(|s| s.success()), &format!("{cc}, a C compiler")) {
        return None;
    }
    std::fs::rename(&new, &out).unwrap();
    Some(out)
}

pub(crate) fn order(linkage: &str, flags: &[&str]) -> Option<PathBuf> {
    let shift = if flags.contains(&"-no-pie") { "-fno-pie" } else { "-fPIE" };
    compile("cc", &format!("order-{linkage}"), "order.c", &[flags, &[shift]].concat())
}

/// The same with musl for its C library.
pub(crate) fn order_of_musl(linkage: &str, flags: &[&str]) -> Option<PathBuf> {
    let shift = if flags.contains(&"-no-pie") { "-fno-pie" } else { "-fPIE" };
    compile("musl-gcc", &format!("order-musl-{linkage}"), "order.c", &[flags, &[shift]].concat())
}

pub(crate) fn library() -> Option<PathBuf> {
    compile("cc", "order-library.so", "library.c", &["-shared", "-fPIC"])
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path).any(|dir| dir.join(program).exists())
}

pub(crate) fn trace(argv: &[&str], exclude: &[Exclude]) -> TracedStart {
    trace_output(argv, exclude).0
}

/// The trace, and standard output.
pub(crate) fn trace_output(argv: &[&str], exclude: &[Exclude]) -> (TracedStart, String) {
    trace_as(argv, &Tracing { exclude: exclude.to_owned(), own_traps: false })
}

/// The same, traced in this way.
pub(crate) fn trace_as(argv: &[&str], tracing: &Tracing) -> (TracedStart, String) {
    let out = tempfile::NamedTempFile::new().unwrap();
    let spec = ObserveSpec {
        argv: argv.iter().map(Into::into).collect(),
        env: None,
        cwd: None,
        deadline: Some(PATIENCE),
        grace: Duration::from_millis(300),
    };
    let mut streams = Streams::null();
    streams.stdout = File::options().append(true).open(out.path()).unwrap().into();
    let client = Client::start_entries(env!("CARGO_BIN_EXE_cold").as_ref(), &spec, tracing, streams);
    let start = client.unwrap_or_else(|e| panic!("{argv:?}: {e}")).wait_entries(|| true).unwrap();
    (start, String::from_utf8_lossy(&std::fs::read(out.path()).unwrap()).into_owned())
}

pub(crate) fn untraced(argv: &[&str]) -> (String, Ending) {
    use std::os::unix::process::ExitStatusExt;
    let out =
        Command::new(argv[0]).args(&argv[1..]).stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap();
    let ending = out.status.code().map_or_else(|| Ending::Signal(out.status.signal().unwrap()), Ending::Code);
    (String::from_utf8_lossy(&out.stdout).into_owned(), ending)
}

/// Those of the entered functions that have one of these names, in order.
pub(crate) fn names<'a>(start: &'a TracedStart, of: &[&str]) -> Vec<&'a str> {
    let function =
        |e: &cold_model::order::FirstEntry| &start.files[e.file as usize].functions[e.function as usize];
    let own = |e: &cold_model::order::FirstEntry| {
        let path = &start.files[e.file as usize].path;
        path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("order-"))
    };
    let all = start.entries.iter().filter(|e| own(e)).filter_map(|e| function(e).name());
    all.filter(|name| of.contains(name)).collect()
}
