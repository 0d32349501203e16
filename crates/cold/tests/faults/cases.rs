//! The commands, each with what it may write and what its result is.

use serde_json::Value;

use crate::world::World;

/// What a standard output must hold after exit code 0.
pub(crate) enum Output {
    /// JSON with the fields of the run without a fault.
    Json,
    /// The same bytes as without a fault.
    Same,
    /// Text with this in it.
    Has(&'static str),
}

/// A file or directory that a command writes.
pub(crate) struct Written {
    /// Its path in the world.
    pub(crate) path: &'static str,
    /// It may be there, or not, whatever the exit code: a history, a lock.
    pub(crate) optional: bool,
    /// A new directory of files, each whole: a command that fails leaves those that it has written.
    pub(crate) of_many: bool,
    /// Whether it is a whole one.
    pub(crate) is_whole: fn(&World, &str) -> Result<(), String>,
}

/// One command.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) args: Vec<String>,
    pub(crate) output: Output,
    pub(crate) writes: Vec<Written>,
    /// Paths that it removes when it is done.
    pub(crate) removes: &'static [&'static str],
    /// Paths below which it may remove something: what stays there is found to be of no use the next time.
    pub(crate) forgets: &'static [&'static str],
    /// Exit codes besides 0 and 1 that it may have.
    pub(crate) codes: &'static [i32],
    /// Faults tried by default.
    pub(crate) most: usize,
}

fn case(name: &'static str, args: &[&str], output: Output, most: usize) -> Case {
    let args = args.iter().map(|a| (*a).to_owned()).collect();
    Case { name, args, output, writes: Vec::new(), removes: &[], forgets: &[], codes: &[], most }
}

impl Case {
    fn writing(mut self, path: &'static str, is_whole: fn(&World, &str) -> Result<(), String>) -> Self {
        self.writes.push(Written { path, optional: false, of_many: false, is_whole });
        self
    }
    /// A directory of results.
    fn filling(mut self, path: &'static str, is_whole: fn(&World, &str) -> Result<(), String>) -> Self {
        self.writes.push(Written { path, optional: false, of_many: true, is_whole });
        self
    }
    /// May write it, whatever else comes.
    fn touching(mut self, path: &'static str, is_whole: fn(&World, &str) -> Result<(), String>) -> Self {
        self.writes.push(Written { path, optional: true, of_many: false, is_whole });
        self
    }
    fn removing(mut self, paths: &'static [&'static str]) -> Self {
        self.removes = paths;
        self
    }
    fn forgetting(mut self, paths: &'static [&'static str]) -> Self {
        self.forgets = paths;
        self
    }
    fn codes(mut self, codes: &'static [i32]) -> Self {
        self.codes = codes;
        self
    }
}

fn json(world: &World, path: &str) -> Result<(), String> {
    let bytes = std::fs::read(world.path(path)).map_err(|e| e.to_string())?;
    serde_json::from_slice::<Value>(&bytes).map(drop).map_err(|e| e.to_string())
}

fn ends_with(world: &World, path: &str, end: &[u8]) -> Result<(), String> {
    let bytes = std::fs::read(world.path(path)).map_err(|e| e.to_string())?;
    let whole = bytes.trim_ascii_end().ends_with(end);
    if whole { Ok(()) } else { Err(format!("{} bytes, and no {}", bytes.len(), end.escape_ascii())) }
}

fn html(world: &World, path: &str) -> Result<(), String> {
    ends_with(world, path, b"</html>")
}
fn svg(world: &World, path: &str) -> Result<(), String> {
    ends_with(world, path, b"</svg>")
}

/// Lines, and the last one has its end.
fn lines(world: &World, path: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(world.path(path)).map_err(|e| e.to_string())?;
    if text.lines().count() >= 1 && text.ends_with('\n') { Ok(()) } else { Err(format!("{text:?}")) }
}

/// Nothing where nothing was measured.
fn markdown(world: &World, path: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(world.path(path)).map_err(|e| e.to_string())?;
    if text.is_empty() || text.ends_with("|\n") { Ok(()) } else { Err(format!("{text:?}")) }
}

fn there(world: &World, path: &str) -> Result<(), String> {
    let bytes = std::fs::read(world.path(path)).map_err(|e| e.to_string())?;
    if bytes.is_empty() { Err("empty".into()) } else { Ok(()) }
}

/// `cold` itself can use it.
fn accepted(world: &World, args: &[&str]) -> Result<String, String> {
    let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
    let ran = world.target(&args).run(None).map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    if ran.code() == 0 { Ok(said) } else { Err(format!("cold {args:?}: {} {}", ran.code(), ran.stderr)) }
}

fn snapshot(world: &World, path: &str) -> Result<(), String> {
    let copy = world.fixed("a.snap");
    std::fs::copy(world.path(path), &copy).map_err(|e| e.to_string())?;
    let done = accepted(world, &["cache", "restore", &copy]).map(drop);
    // 5: some page differs, which a stranger can bring about. It was read all the same.
    done.or_else(|e| if e.contains("]: 5 ") { Ok(()) } else { Err(e) })
}

fn recording(world: &World, path: &str) -> Result<(), String> {
    accepted(world, &["report", "--no-symbols", "--json", &world.text(path)]).map(drop)
}

fn tables(world: &World, path: &str) -> Result<(), String> {
    let names = std::fs::read_dir(world.path(path)).map_err(|e| e.to_string())?;
    if names.count() > 5 { parts(world, path) } else { Err("too few tables".into()) }
}

/// Every file of a directory of results ends as its kind does.
pub(crate) fn parts(world: &World, path: &str) -> Result<(), String> {
    parts_of(world, path, false)
}

/// The same; `killed`: what a file was to become before it got its name may be left, as nobody could remove it.
pub(crate) fn parts_of(world: &World, path: &str, killed: bool) -> Result<(), String> {
    for entry in std::fs::read_dir(world.path(path)).map_err(|e| e.to_string())?.flatten() {
        let bytes = std::fs::read(entry.path()).map_err(|e| e.to_string())?;
        let name = entry.file_name().into_string().unwrap_or_default();
        let end: &[u8] = match name.rsplit('.').next() {
            Some("parquet") => b"PAR1",
            Some("json") => b"}",
            _ if killed && name.starts_with(".cold-") => continue,
            // No name of a table, nor of a page: it is still being written.
            _ if name.starts_with('.') || name.ends_with(".partial") => return Err(format!("left: {name}")),
            _ => b"\n",
        };
        if !bytes.ends_with(end) && !bytes.trim_ascii_end().ends_with(end) {
            return Err(format!("{name} is cut"));
        }
    }
    Ok(())
}

/// What `install` keeps of what it wrote: nothing in it is being written any more.
fn records(world: &World, path: &str) -> Result<(), String> {
    let names = std::fs::read_dir(world.path(path)).map_err(|e| e.to_string())?.flatten();
    let mut hidden = names.filter(|e| e.file_name().as_encoded_bytes().starts_with(b"."));
    hidden.next().map_or(Ok(()), |e| Err(format!("left: {}", e.path().display())))
}

fn pages(world: &World, path: &str) -> Result<(), String> {
    let names = std::fs::read_dir(world.path(path)).map_err(|e| e.to_string())?;
    for name in names.flatten().map(|e| e.path()) {
        let text = std::fs::read_to_string(&name).map_err(|e| e.to_string())?;
        if !text.contains(".SH") || !text.ends_with('\n') {
            return Err(format!("{} is cut", name.display()));
        }
    }
    Ok(())
}

/// Every plan in it loads, and no name is there that is none of the store's.
fn store(world: &World, path: &str) -> Result<(), String> {
    let said = accepted(world, &["prefetch", "list", "--json", "--store", &world.text(path)])?;
    let list: Value = serde_json::from_str(&said).map_err(|e| e.to_string())?;
    let damaged = list["damaged"].as_array().is_some_and(|d| !d.is_empty());
    if damaged || list["plans"].as_array().is_none() { Err(said) } else { Ok(()) }
}

/// Nothing to be seen of an earlier run, for the state's files.
pub(crate) fn cache(world: &mut World) -> Vec<Case> {
    world.cold(&["cache", "save", &world.fixed("d.snap"), "d"]);
    vec![
        case("cache show", &["cache", "show", "--json", "--holders", "d"], Output::Json, 30),
        case("cache overview", &["cache", "overview", "--json"], Output::Json, 20),
        case("cache who", &["cache", "who", "--json", "d/f1"], Output::Json, 20),
        case("cache evict", &["cache", "evict", "--json", "d"], Output::Json, 40).codes(&[5]),
        case("cache save", &["cache", "save", "d.snap", "d"], Output::Same, 60)
            .writing("d.snap", snapshot)
            .codes(&[5]),
        case("cache restore", &["cache", "restore", "--json", &world.fixed("d.snap")], Output::Json, 40)
            .codes(&[5]),
    ]
}

pub(crate) fn bench(world: &mut World) -> Vec<Case> {
    let (subject, mut all) = (world.subject(), Vec::new());
    let fixed = ["bench", "--json", "--seed", "1", "--evict", "files", "--idle-gap", "1", "-r", "2"];
    let exports = "--export-json b.json --export-csv b.csv --export-markdown b.md --plot b.html";
    let command = ["--", &subject, "sleep", "1"];
    let args: Vec<&str> = fixed.into_iter().chain(exports.split(' ')).chain(command).collect();
    let exported = case("bench", &args, Output::Json, 60).codes(&[4, 5]);
    let exported = exported.writing("b.json", json).writing("b.csv", lines).writing("b.md", markdown);
    all.push(exported.writing("b.html", html));
    if rustix::process::geteuid().is_root() {
        let limited = fixed.iter().copied().chain(["--disk-limit", "iops=3000"]).chain(command);
        let limited: Vec<&str> = limited.collect();
        all.push(case("bench --disk-limit", &limited, Output::Json, 20).codes(&[4, 5]));
    }
    all
}

pub(crate) fn trace(world: &mut World) -> Vec<Case> {
    let (subject, old) = (world.subject(), world.fixed("old.cold"));
    world.cold(&["trace", "--evict", "files", "-o", &old, "--", &subject, "sleep", "1"]);
    let fixed = ["trace", "--json", "--evict", "files", "-o", "new.cold"];
    let command = ["--", &*subject, "touch-mapped", "d/f1", "0-3"];
    let with = |more: &[&'static str]| -> Vec<&str> {
        fixed.iter().copied().chain(more.iter().copied()).chain(command).collect()
    };
    let mut all = vec![
        case("trace", &with(&[]), Output::Json, 10).writing("new.cold", recording).codes(&[5]),
        case("trace --tier C", &with(&["--tier", "C"]), Output::Json, 10)
            .writing("new.cold", recording)
            .codes(&[5]),
    ];
    // Changes a setting of the whole machine: not where others measure at the same time.
    if crate::check::is_full() && rustix::process::geteuid().is_root() {
        let exact = case("trace --exact-need", &with(&["--exact-need"]), Output::Json, 0);
        all.push(exact.writing("new.cold", recording).codes(&[5]));
    }
    all
}

pub(crate) fn report(world: &mut World) -> Vec<Case> {
    let subject = world.subject();
    let old = world.fixed("old.cold");
    world.cold(&["trace", "--evict", "files", "-o", &old, "--", &subject, "touch-mapped", "d/f1", "0-3"]);
    let exports =
        "--html r.html --svg r.svg --csv rcsv --parquet rpq.cold --perfetto r.pf --firefox-profile r.json";
    let args = ["report", "--json", "--no-symbols", &old];
    let args: Vec<&str> = args.into_iter().chain(exports.split(' ')).collect();
    let exported = case("report", &args, Output::Json, 40).writing("r.html", html).writing("r.svg", svg);
    let exported = exported.filling("rcsv", tables).filling("rpq.cold", recording).writing("r.pf", there);
    vec![
        exported.writing("r.json", json),
        case("report with symbols", &["report", "--json", &old], Output::Json, 8),
        case("report of two", &["report", "--json", &old, &old], Output::Json, 6),
    ]
}

/// A store with one plan in it.
fn learnt(world: &World) -> String {
    let (store, subject) = (world.fixed("learnt"), world.subject());
    let fixed = ["prefetch", "learn", "--evict", "files", "--starts", "1", "--store", &store, "--"];
    world.cold(&fixed.into_iter().chain([&*subject, "marker", "hello"]).collect::<Vec<_>>());
    store
}

pub(crate) fn learn(world: &mut World) -> Vec<Case> {
    let (subject, learnt) = (world.subject(), learnt(world));
    let fixed = ["prefetch", "learn", "--json", "--evict", "files", "--starts", "1", "--store"];
    let command = ["--", &*subject, "marker", "hello"];
    let with = |store| -> Vec<&str> { fixed.into_iter().chain([store]).chain(command).collect() };
    vec![
        case("learn", &with("store"), Output::Json, 10).writing("store", store),
        case("learn more", &with(&learnt), Output::Json, 4),
    ]
}

pub(crate) fn plans(world: &mut World) -> Vec<Case> {
    let (subject, learnt) = (world.subject(), learnt(world));
    let portable = world.fixed("plan.json");
    world.cold(&["prefetch", "export", "--store", &learnt, "-o", &portable, "subject"]);
    let store_here = world.text("store");
    world.cold(&["prefetch", "import", "--store", &store_here, &portable]);
    world.cold(&[
        "prefetch",
        "install",
        "--store",
        &store_here,
        "--wrapper",
        "bin/old",
        "--program",
        &subject,
    ]);
    world.keep();
    let of = |order: &'static str, more: &[&'static str]| -> Vec<String> {
        let fixed = ["prefetch", order, "--store", "store"].into_iter().chain(more.iter().copied());
        fixed.map(str::to_owned).collect()
    };
    let plan = |name, order, more: &[&'static str], output, most| {
        let args = of(order, more);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        case(name, &args, output, most).touching("store", store)
    };
    let wrapper = ["--wrapper", "bin/prog", "--program", &subject];
    let install = ["prefetch", "install", "--store", &*store_here];
    let uninstall = ["prefetch", "uninstall", "--wrapper", "bin/old"];
    let launch = ["launch", "--store", &*store_here, "--", &*subject, "marker", "hello"];
    let import = ["prefetch", "import", "--store", "store2", &*portable];
    vec![
        plan("list", "list", &["--json"], Output::Json, 20),
        plan("show", "show", &["--json", "--html", "p.html", "--svg", "p.svg", "subject"], Output::Json, 40)
            .writing("p.html", html)
            .writing("p.svg", svg),
        plan("verify", "verify", &["--json", "subject"], Output::Json, 20).codes(&[3]),
        plan("status", "status", &["--json"], Output::Json, 20),
        plan("export", "export", &["-o", "plan.json", "subject"], Output::Same, 30)
            .writing("plan.json", json),
        case("import", &import, Output::Has(""), 10).writing("store2", store),
        plan("remove", "remove", &["subject"], Output::Has("subject"), 20),
        plan("prune", "prune", &["--max-size", "1"], Output::Has(""), 20),
        case("install", &install.into_iter().chain(wrapper).collect::<Vec<_>>(), Output::Has(""), 40)
            .writing("bin/prog", there)
            .touching("state/coldstart/installed", records),
        case("uninstall", &uninstall, Output::Has(""), 40)
            .removing(&["bin/old"])
            .forgetting(&["state/coldstart/installed"]),
        case("launch", &launch, Output::Same, 60).codes(&[126, 127]).touching("store", store),
    ]
}

pub(crate) fn probe(world: &mut World) -> Vec<Case> {
    let sct = "THINKTIME 0 0 (milliseconds)\nCYCLEREADS 10 3 (number)\nFILESEEK 12 4 (records)\n\
        CPUTIME 0 0 (milliseconds)\nDATAPAGE 0 0 (pages)\nCODEPAGE 0 0 (pages)\nFILEACCESS access.dat (name)\n";
    for (name, text) in
        [("m.scr", "PROCESS m.scp 10 none.dat\n"), ("m.scp", "THREAD m.sct\n"), ("m.sct", sct)]
    {
        std::fs::write(world.fixed(name), text).unwrap();
    }
    let script = world.fixed("m.scr");
    let args = "--json --seconds 0.1 --bytes 64Ki --dir . --out m.out --log m.csv --svg m.svg --html m.html";
    let args: Vec<&str> = ["probe", "script", &script].into_iter().chain(args.split(' ')).collect();
    let written = case("probe script", &args, Output::Json, 50).writing("m.out", lines);
    let written = written.codes(&[5]);
    let large = "probe large-pages --json --bytes 4Mi --repeat 1 --dir . --svg l.svg";
    let large: Vec<&str> = large.split(' ').collect();
    let large = case("probe large-pages", &large, Output::Json, 30).codes(&[5]).writing("l.svg", svg);
    vec![written.writing("m.csv", lines).writing("m.svg", svg).writing("m.html", html), large]
}

pub(crate) fn spawn(world: &mut World) -> Vec<Case> {
    let subject = world.subject();
    let exports = "--csv s.csv --svg s.svg --html s.html";
    let with = |more: &[&'static str], exports: &'static str| -> Vec<String> {
        let fixed = ["spawn", "--json", "-n", "20"].into_iter().chain(more.iter().copied());
        let fixed = fixed.chain(exports.split_whitespace()).map(str::to_owned);
        fixed.chain(["--", &subject, "sleep", "1"].map(str::to_owned)).collect()
    };
    let args = with(&["--no-observe"], exports);
    let quick = case("spawn", &args.iter().map(String::as_str).collect::<Vec<_>>(), Output::Json, 50);
    let args = with(&[], "");
    let observed =
        case("spawn, observed", &args.iter().map(String::as_str).collect::<Vec<_>>(), Output::Json, 6);
    vec![
        quick.codes(&[4]).writing("s.csv", lines).writing("s.svg", svg).writing("s.html", html),
        observed.codes(&[4]),
    ]
}

/// Windows' files, made by the library's own writers.
pub(crate) fn import(world: &mut World) -> Vec<Case> {
    use cold_windows::{etl, pf, text};
    let put = |name: &str, bytes: &[u8]| {
        let path = world.fixed(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let trace = etl::sample::small(8, true);
    let evidence = etl::gather(etl::Trace::open(trace.as_slice()).unwrap()).unwrap().evidence;
    let (trace, rows) =
        (put("a.etl", &trace), put("a.csv", text::sample::dumper(&evidence, true).as_bytes()));
    let prefetch = put("a.pf", &pf::sample::packed(&pf::sample::small(pf::Version::V31), false));
    let to = ["--json", "-o", "new.cold"];
    let tables = ["--csv", "p.csv", "--timeline", "t.csv"];
    let pf: Vec<&str> = ["import", "pf", &prefetch].into_iter().chain(to).chain(tables).collect();
    vec![
        case("import etl", &[&["import", "etl", &trace][..], &to].concat(), Output::Json, 40)
            .filling("new.cold", recording),
        case("import csv", &[&["import", "csv", &rows][..], &to].concat(), Output::Json, 10)
            .filling("new.cold", recording),
        case("import pf", &pf, Output::Json, 40)
            .filling("new.cold", recording)
            .writing("p.csv", lines)
            .writing("t.csv", lines),
    ]
}

pub(crate) fn others(_: &mut World) -> Vec<Case> {
    vec![
        case("doctor", &["doctor", "--json"], Output::Json, 16),
        case("doctor --repair", &["doctor", "--repair", "--json"], Output::Json, 10),
        case("completions", &["completions", "bash"], Output::Same, 10),
        case("man", &["man", "man"], Output::Same, 40).filling("man", pages),
    ]
}

/// The commands that need no running service, by a history (docs/formats/service-history.md). It lies in the world,
/// because whoever opens a database of `SQLite` makes files beside it.
pub(crate) fn service(world: &mut World) -> Vec<Case> {
    let path = world.path("svc/history.db");
    std::fs::create_dir(world.path("svc")).unwrap();
    let mut file = rusqlite::Connection::open(&path).unwrap();
    let made = file.transaction().unwrap();
    made.execute_batch(
        "CREATE TABLE programs (id INTEGER PRIMARY KEY, executable TEXT NOT NULL, script TEXT,
            scenario TEXT NOT NULL, name TEXT NOT NULL);
         CREATE TABLE starts (id INTEGER PRIMARY KEY, program INTEGER NOT NULL, at_ns INTEGER NOT NULL,
            what TEXT NOT NULL, why TEXT, wall_ns INTEGER, cpu_ns INTEGER, first_read_ns INTEGER,
            bytes INTEGER NOT NULL, requests INTEGER NOT NULL, late INTEGER NOT NULL);
         CREATE TABLE warm (at_ns INTEGER NOT NULL, program INTEGER NOT NULL, starts INTEGER NOT NULL,
            PRIMARY KEY (at_ns, program)) WITHOUT ROWID;
         CREATE TABLE events (at_ns INTEGER NOT NULL, what TEXT NOT NULL, detail TEXT);
         INSERT INTO programs VALUES (1, '/bin/app', NULL, 'default', 'app');
         INSERT INTO starts VALUES (1, 1, 1000000000, 'followed', NULL, 9, 9, 9, 40960, 1, 0);
         INSERT INTO warm VALUES (60000000000, 1, 3);
         INSERT INTO events VALUES (90000000000, 'emptied', 'dropped or reclaimed');
         PRAGMA application_id = 0x636f6c64; PRAGMA user_version = 2;",
    )
    .unwrap();
    made.commit().unwrap();
    // As the service leaves it: with a log, which the last one who closes it removes.
    file.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
    drop(file);
    world.keep();
    let of = |words: &[&'static str], output, most| {
        let at = ["--state", "svc", "--store", "store"];
        let words: Vec<&str> = [&["service"], words, &at].concat();
        let beside = case(words.get(1).copied().unwrap_or_default(), &words, output, most);
        let beside =
            beside.touching("svc/history.db-wal", is_a_file).touching("svc/history.db-shm", is_a_file);
        beside.touching("svc/history.db", database)
    };
    vec![
        of(&["status", "--json"], Output::Json, 60),
        of(&["why", "app", "--json"], Output::Json, 30),
        of(&["forget"], Output::Has("forgotten"), 60),
        of(&["replay", "--room", "64Mi", "--json", "--write-log", "log.csv"], Output::Json, 60)
            .writing("log.csv", lines),
    ]
}

/// Of what only `SQLite` reads: the next one who opens the database takes it in.
fn is_a_file(world: &World, path: &str) -> Result<(), String> {
    let meta = std::fs::symlink_metadata(world.path(path)).map_err(|e| e.to_string())?;
    if meta.is_file() { Ok(()) } else { Err(format!("{path} is no file")) }
}

fn database(world: &World, path: &str) -> Result<(), String> {
    let check =
        |db: rusqlite::Connection| db.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    let said = rusqlite::Connection::open(world.path(path)).and_then(check).map_err(|e| e.to_string())?;
    if said == "ok" { Ok(()) } else { Err(said) }
}
