//! Results: whole files or none, and nothing lost in silence on standard output.

use std::fs;
use std::io::{Seek, Write};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cold_plan::sample as plans;
use cold_recording::sample as recordings;

use crate::support::*;

/// What the commands here work on.
struct World {
    place: Sandbox,
}

impl World {
    fn new() -> Self {
        let place = Sandbox::for_all();
        cold_recording::write(&place.path("a.cold"), &recordings::small()).unwrap();
        cold_plan::Store::at(place.path("plans")).save(&plans::sample()).unwrap();
        place.file("data", MIB);
        Self { place }
    }
    /// The words of a command line; `@` begins a path in here.
    fn cold(&self, line: &str) -> Cold {
        let word = |w: &str| w.strip_prefix('@').map_or_else(|| w.to_owned(), |name| self.place.text(name));
        let cold = self.place.cold(line.split_whitespace().map(word));
        cold.env("XDG_STATE_HOME", self.place.path("state")).env("HOME", self.place.path("tmp"))
    }
}

/// Every command that says something about the sample world, quickly and without root.
const SAYS: &[&str] = &[
    "--version",
    "--help",
    "bench --help",
    "bench --states warm -r 1 -w 0 --idle-gap 0 --evict files -i -- /bin/true",
    "cache show @data",
    "cache show --json @data",
    "cache overview",
    "cache overview --json",
    "cache who @data",
    "cache who --json @data",
    "cache evict @data",
    "cache evict --json @data",
    "cache save @snap @data",
    "completions bash",
    "doctor --json",
    "launch --explain -- /bin/true",
    "prefetch list --store @plans",
    "prefetch list --store @plans --json",
    "prefetch status --store @plans",
    "prefetch status --store @plans --json",
    "prefetch install --print --wrapper @true --program /bin/true",
    "prefetch shell-function node",
    "probe small --bytes 1Mi --span 512Ki --seconds 1 --dir @tmp --quiet",
    "probe small --bytes 1Mi --span 512Ki --seconds 1 --dir @tmp --quiet --json",
    "report --no-symbols @a.cold",
    "report --no-symbols --json @a.cold",
    "spawn -n 4 -- /bin/true",
    "spawn -n 4 --json -- /bin/true",
];

#[test]
fn a_result_that_cannot_be_printed_is_a_failure_and_said() {
    let w = World::new();
    for line in SAYS {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran = w.cold(line).run_into(full);
        assert_eq!(ran.code(), 1, "{line}: {}", ran.stderr);
        let said = "cannot write the result to standard output: No space left on device";
        assert!(ran.stderr.contains(said), "{line}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{line}: {}", ran.stderr);
    }
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let w = World::new();
    for line in SAYS {
        let code = w.cold(line).run().code();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = w.cold(line).run_into(std::os::fd::OwnedFd::from(writer));
        // A busy machine makes a verdict inconclusive at any time.
        let busy = [0, 4].contains(&code) && [0, 4].contains(&ran.code());
        assert!(ran.code() == code || busy, "{line}: {code}, {}: {}", ran.code(), ran.stderr);
        assert!(!ran.stderr.contains("error:") && !ran.stderr.contains("ipe"), "{line}: {}", ran.stderr);
    }
}

#[test]
fn a_name_with_any_character_survives_in_json() {
    let w = World::new();
    let name = "del\u{7f} csi\u{9b} rtl\u{202e} tab\t end";
    w.place.file(name, 4096);
    let ran = w.place.cold(["cache", "show", "--json", &w.place.text(name)]).run().expect(0);
    assert!(ran.stdout.contains("\\u007f") && !ran.stdout.contains('\u{7f}'), "{}", ran.stdout);
    assert!(ran.json().to_string().contains(&serde_json::to_string(name).unwrap()[1..12]), "{}", ran.stdout);
    let found = ran.json()["files"][0]["path"].as_str().unwrap().to_owned();
    assert_eq!(found, w.place.text(name));
}

#[test]
fn text_cells_of_csv_files_are_no_formulas() {
    let w = World::new();
    let mut recording = recordings::small();
    recording.files[0].path = Some("=HYPERLINK(\"http://x\",1)".to_owned());
    cold_recording::write(&w.place.path("b.cold"), &recording).unwrap();
    w.cold("report --no-symbols --csv @csv @b.cold").run().expect(0);
    let files = fs::read_to_string(w.place.path("csv/files.csv")).unwrap();
    assert!(files.contains("\"'=HYPERLINK(\"\"http://x\"\",1)\""), "{files}");
    let script = w.place.script("=run", "exit 0");
    let args = ["--states", "warm", "-w", "0", "-r", "1", "-n", "=1+1", "-n=-5", "--export-csv", "b.csv"];
    w.place.bench(args.iter().copied().chain([script.as_str(), script.as_str()])).run().finished();
    let lines = w.place.lines("b.csv");
    assert!(lines[1].starts_with("'=1+1 (warm),") && lines[2].starts_with("'-5 (warm),"), "{lines:?}");
}

#[test]
fn a_link_at_the_name_of_an_unfinished_snapshot_is_not_followed() {
    let w = World::new();
    let victim = w.place.file("victim", 10);
    let before = fs::read(&victim).unwrap();
    // Names that could be guessed: of any process that may come next.
    let me = i32::try_from(std::process::id()).unwrap();
    for pid in me..me + 3000 {
        symlink(&victim, w.place.path(&format!("snap.tmp-{pid}"))).unwrap();
    }
    w.cold("cache save @snap @data").run().expect(0);
    assert_eq!(fs::read(&victim).unwrap(), before);
    w.cold("cache restore @snap").run().expect(0);
}

#[test]
fn an_output_that_nobody_reads_ends_the_benchmark_before_it_begins() {
    let w = World::new();
    let fifo = w.place.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let ran =
        w.cold("bench --states warm -r 1 -w 0 --evict files --output @fifo -- /bin/true").run().expect(1);
    assert!(ran.error().contains("nobody reads from it"), "{}", ran.stderr);
}

mod root {
    use cold_testbed::needs_root;

    use super::*;

    /// A file system without room, unmounted with its value.
    struct Full(PathBuf);

    impl Full {
        fn new(place: &Sandbox) -> Self {
            let dir = place.path("full");
            fs::create_dir(&dir).unwrap();
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", "size=64k,mode=777", "full"]).arg(&dir);
            assert!(mount.status().unwrap().success());
            Self(dir)
        }
        /// Takes all the room that is left.
        fn fill(&self) {
            let mut file = fs::File::options().append(true).create(true).open(self.0.join("filler")).unwrap();
            while file.write_all(&[1; 512]).is_ok() {}
            assert!(file.stream_position().unwrap() > 0);
        }
        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<String> =
                entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Full {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(&self.0).stderr(Stdio::null()).status();
        }
    }

    #[test]
    fn every_export_onto_a_full_disk_fails_and_leaves_the_old_file() {
        needs_root!();
        let w = World::new();
        let full = Full::new(&w.place);
        let bench = "bench --states warm -r 1 -w 0 --idle-gap 0 --evict files -i";
        let probe = "probe small --bytes 1Mi --span 512Ki --seconds 1 --dir @tmp --quiet";
        let report = "report --no-symbols @a.cold";
        let spawn = "spawn -n 4";
        let show = format!("prefetch show --store @plans {}", plan_name(&w));
        let export = format!("prefetch export --store @plans {}", plan_name(&w));
        for (command, flag, file, rest) in [
            (bench, "--export-json", "r.json", "-- /bin/true"),
            (bench, "--export-json", "v2:r.json", "-- /bin/true"),
            (bench, "--export-csv", "r.csv", "-- /bin/true"),
            (bench, "--export-markdown", "r.md", "-- /bin/true"),
            (bench, "--plot", "r.svg", "-- /bin/true"),
            (bench, "--plot", "r.html", "-- /bin/true"),
            (spawn, "--csv", "r.csv", "-- /bin/true"),
            (spawn, "--svg", "r.svg", "-- /bin/true"),
            (spawn, "--html", "r.html", "-- /bin/true"),
            (probe, "--log", "r.csv", ""),
            (probe, "--log", "r.parquet", ""),
            (probe, "--svg", "r.svg", ""),
            (probe, "--html", "r.html", ""),
            (report, "--html", "r.html", ""),
            (report, "--svg", "r.svg", ""),
            (report, "--perfetto", "r.pftrace", ""),
            (report, "--firefox-profile", "r.json", ""),
            (&show, "--html", "r.html", ""),
            (&show, "--svg", "r.svg", ""),
            (&export, "--output", "r.json", ""),
            ("cache save", "", "r.snap", "@data"),
            ("man", "", "cold.1", ""),
        ] {
            let (form, name) =
                file.split_once(':').map_or((String::new(), file), |(f, n)| (format!("{f}:"), n));
            let old = full.0.join(name);
            fs::write(&old, "the old one").unwrap();
            full.fill();
            let before = full.names();
            let target = if command == "man" { full.0.clone() } else { old.clone() };
            let line = format!("{command} {flag} {form}{} {rest}", target.to_str().unwrap());
            let ran = w.cold(&line).run();
            assert_eq!(ran.code(), 1, "{line}: {}{}", ran.stdout, ran.stderr);
            assert!(ran.stderr.contains("No space left on device"), "{line}: {}", ran.stderr);
            assert!(ran.stderr.contains(name), "{line}: {}", ran.stderr);
            assert_eq!(fs::read(&old).unwrap(), b"the old one", "{line}");
            assert_eq!(full.names(), before, "{line}");
            fs::remove_file(&old).unwrap();
            fs::remove_file(full.0.join("filler")).unwrap();
        }
        // Directories of files: all of them or none.
        full.fill();
        for flag in ["--csv", "--parquet"] {
            let ran = w.cold(&format!("{report} {flag} {}/dir", full.0.to_str().unwrap())).run().expect(1);
            assert!(ran.stderr.contains("No space left on device"), "{}", ran.stderr);
            assert_eq!(full.names(), ["filler"], "{flag}");
        }
    }

    /// The name of the only plan.
    fn plan_name(w: &World) -> String {
        let listed = w.cold("prefetch list --store @plans --json").run().expect(0).json();
        listed["plans"][0]["name"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_recording_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        needs_root!();
        let w = World::new();
        w.cold("trace -o @new.cold --evict files -- /bin/true").after("umask 022").run().expect(0);
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(w.place.path("new.cold")), 0o700);
        let files: Vec<_> =
            fs::read_dir(w.place.path("new.cold")).unwrap().map(|e| e.unwrap().path()).collect();
        assert!(files.len() > 5, "{files:?}");
        for file in files {
            assert_eq!(mode(file.clone()), 0o600, "{file:?}");
        }
    }
}
