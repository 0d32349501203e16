//! Counts of one thing are the same, whichever command tells them.

mod root {
    use cold_testbed::needs_root;
    use serde_json::Value;

    use crate::support::*;

    /// Three processes beside the shell; a file that is read, one that is empty, one that is opened and not read,
    /// one that is made, read and removed.
    const SCRIPT: &str = "cd \"$1\" && cat read empty && : < unread && echo x > made && cat made && rm made";

    #[test]
    fn files_and_processes_of_one_start_are_the_same_for_all() {
        needs_root!();
        let place = Sandbox::new();
        for (name, bytes) in [("read", 100_000), ("empty", 0), ("unread", 100_000)] {
            place.file(name, bytes);
        }
        let directory = place.path("read").parent().unwrap().to_str().unwrap().to_owned();
        let start = ["--", "/bin/sh", "-c", SCRIPT, "sh", &directory];
        let observed = {
            let flags = ["bench", "--runs", "1", "--warmup", "1", "--states", "warm", "--json"];
            let ran = place.cold([&flags[..], &start].concat()).run().finished();
            ran.json()["commands"][0].clone()
        };
        let names = observed["file_names"].as_array().unwrap();
        for name in ["read", "empty", "unread", "made"] {
            let path = place.text(name);
            assert!(names.iter().any(|f| f["path"] == path.as_str()), "{name} is not in {names:?}");
        }

        let recording = place.text("a.cold");
        place.cold([&["trace", "--evict", "files", "-o", &recording][..], &start].concat()).run().expect(0);
        let report = place.cold(["report", &recording, "--json"]).run().expect(0).json();
        let found = &report["headline"];
        let paths: Vec<_> = report["files"].as_array().unwrap().iter().map(|f| &f["path"]).collect();
        let both = (&found["files"], &found["processes"]);
        assert_eq!(both, (&observed["files"], &observed["processes"]), "{paths:?}, observed {names:?}");
        assert_eq!(found["processes"], 4);
        let count = |v: &Value| v.as_u64().unwrap_or_else(|| panic!("{v}: {found:#}"));
        let (used, needed) = (count(&found["files"]), count(&found["files_needed"]));
        assert_eq!(used - needed, 2, "all but the empty and the unread one: {names:?}");
        let text = place.cold(["report", &recording]).env("COLUMNS", "200").run().expect(0).stdout;
        let told = format!("{used} files executed, mapped or opened, pages of {needed} needed; 4 processes");
        assert!(text.contains(&told), "{told}: {text}");

        let learn = ["prefetch", "learn", "--evict", "files", "--starts", "1", "--json", "--store"];
        let store = place.text("plans");
        let plan = place.cold([&learn[..], &[&store], &start].concat()).run().expect(0).json();
        let last = &plan["last_start"];
        assert_eq!(
            (count(&last["files_needed"]), &last["left_out"]),
            (needed, &serde_json::json!({ "made": 1 }))
        );
        let files = plan["files"].as_array().unwrap();
        let planned = files.iter().filter(|f| f["kind"] == "regular").count() as u64;
        assert_eq!((count(&last["files_readable"]), planned), (needed - 1, needed - 1));
    }
}
