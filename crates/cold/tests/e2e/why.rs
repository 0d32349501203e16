//! Whether a report names what a newcomer's web app really spends its time on: a shim in front of it, a file read whole,
//! a configuration looked for in many directories, packages. And whether a hint that is typed word by word works.

mod root {
    use std::fs;

    use cold_testbed::needs_root;
    use serde_json::Value;

    use crate::support::*;

    /// Bytes of the file that is read whole: a start of it takes longer than the interpreter's own.
    const MODEL: usize = 48 << 20;
    const SLEEP_MS: u64 = 400;

    const APP: &str = r"
import os, sys
here = os.path.dirname(os.path.abspath(sys.argv[0]))
sys.path.insert(0, os.path.join(here, 'site-packages'))
for i in range(30):
    for name in ('app.toml', 'app.json'):
        try: open(os.path.join(here, 'conf.d', '%02d' % i, name)).read()
        except OSError: pass
import slowly
with open(os.path.join(here, 'model.bin'), 'rb') as f:
    while f.read(1 << 20): pass
";

    fn newcomers_app(place: &Sandbox) -> String {
        fs::write(place.path("app.py"), APP).unwrap();
        place.file("model.bin", MODEL);
        fs::create_dir_all(place.path("site-packages/slowly")).unwrap();
        let module = format!("import time; time.sleep({})", SLEEP_MS as f64 / 1000.0);
        fs::write(place.path("site-packages/slowly/__init__.py"), module).unwrap();
        // Three processes run before the program does; each waits a little.
        let shim = format!("sleep 0.1; sleep 0.1; exec /usr/bin/python3 -B {} \"$@\"", place.text("app.py"));
        place.script("shim", &shim)
    }

    fn named<'a>(list: &'a Value, key: &str, wanted: &str) -> &'a Value {
        let found = list.as_array().and_then(|l| l.iter().find(|x| x[key] == wanted));
        found.unwrap_or_else(|| panic!("no {wanted} in {list}"))
    }

    #[test]
    fn a_report_names_the_shim_the_whole_file_the_directories_and_the_package() {
        needs_root!();
        let _machine = together();
        let place = Sandbox::new();
        let shim = newcomers_app(&place);
        place.cold(["trace", "--evict", "files", "-o", "a.cold", "--", &shim]).run().expect(0);
        let ran = place.cold(["report", "--no-symbols", "--json", "a.cold"]).run().expect(0);
        let report = ran.json();

        let before = &report["in_front"];
        assert!(before["program"].as_str().is_some_and(|p| p == "/usr/bin/python3"), "{before}");
        assert_eq!(before["processes"], 2, "{before}");
        assert!(before["programs"][0].as_str().is_some_and(|p| p.ends_with("/shim")), "{before}");
        assert!(before["time"].as_u64().is_some_and(|t| t > 200_000_000), "{before}");

        let whole = &report["whole_reads"][0];
        let model = report["files"].as_array().unwrap().iter().find(|f| f["file"] == whole["file"]).unwrap();
        assert!(model["path"].as_str().is_some_and(|p| p.ends_with("/model.bin")), "{model}");
        assert_eq!(whole["bytes"], MODEL, "{whole}");
        // The test disk has 48 MiB in no less than 10 ms; nothing else of the start counts.
        let (elapsed, ready) =
            (whole["elapsed"].as_u64().unwrap(), report["headline"]["ready"].as_u64().unwrap());
        assert!(elapsed > 10_000_000 && elapsed < ready - 600_000_000, "{elapsed} of {ready}");

        let directories: Vec<_> =
            report["misses"].as_array().unwrap().iter().filter(|m| !m["family"].is_null()).collect();
        assert_eq!(directories.len(), 30, "{directories:?}");
        assert!(
            directories
                .iter()
                .all(|m| m["family"].as_str().is_some_and(|f| f.ends_with("/conf.d/NN")) && m["misses"] == 2)
        );

        let package = named(&report["packages"], "name", "slowly");
        let time = package["elapsed"].as_u64().unwrap();
        assert!((SLEEP_MS * 1_000_000..2 * SLEEP_MS * 1_000_000).contains(&time), "{package}");

        for id in ["start_directly", "read_less", "load_later", "lookups_by_pattern"] {
            named(&report["suggestions"], "id", id);
        }
        let text = place.cold(["report", "--no-symbols", "a.cold"]).run().expect(0).stdout;
        let lines: Vec<&str> = text.lines().collect();
        let at =
            |title: &str| lines.iter().position(|l| *l == title).unwrap_or_else(|| panic!("{title}: {text}"));
        let (why, help, files) =
            (at("Why it took this long"), at("What would help"), at("Files that cost most"));
        assert!(why < help && help < files, "{text}");
        let told = lines[why..help].join(" ");
        for what in
            ["slowly", "model.bin from end to end", "in front of python3: ", "/shim and 2 other processes"]
        {
            assert!(told.contains(what), "{what}: {told}");
        }
    }

    #[test]
    fn the_command_at_the_end_of_a_benchmark_explains_its_cold_start() {
        needs_root!();
        let _machine = together();
        let place = Sandbox::new();
        let data = place.file("data", 1 << 20);
        let subject = place.subject();
        let start = [
            "--evict",
            "files",
            "--timeout",
            "77",
            "--",
            &subject,
            "touch-mapped",
            data.to_str().unwrap(),
            "0,7",
        ];
        let args = ["bench", "--states", "cold", "-r", "2", "--idle-gap", "20"].into_iter().chain(start);
        let ran = place.cold(args).run().finished();
        if ran.code() == 4 {
            assert!(ran.stdout.contains("next: cold doctor"), "{}", ran.stdout);
            return;
        }
        let hint = ran
            .stdout
            .lines()
            .find_map(|l| l.strip_prefix("next: cold "))
            .unwrap_or_else(|| panic!("{}", ran.stdout));
        let words = shlex::split(hint).unwrap();
        assert_eq!(words[..5], ["trace", "--evict", "files", "--timeout", "77"].map(String::from), "{hint}");
        place.cold(words).run().expect(0);
        assert!(place.path("cold-subject.cold").exists());
    }
}
