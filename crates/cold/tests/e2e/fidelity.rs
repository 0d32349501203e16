//! Every way to read a file, on every file system at hand, in every tier: what the report tells as needed is what
//! the program touched, or holds it where it says so, or is told to be unknown.
//!
//! `COLD_BLESS=1 cargo test -p cold --test e2e fidelity` writes the table of `docs/fidelity.md`.

mod root {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fmt::Write as _;
    use std::fs;
    use std::path::Path;

    use cold_analyze::{Usage, analyze, replay};
    use cold_model::Bytes;
    use cold_model::bench::Taint;
    use cold_model::recording::Recording;
    use cold_model::recording::manifest::Tier;
    use cold_testbed::disk::{FileSystem, Options, Preset};
    use cold_testbed::ways::{Access, PAGES, WAYS, Way};
    use cold_testbed::{SlowDisk, needs_root};

    use crate::support::*;
    use crate::trace::recorded;

    const DOC: &str = "../../docs/fidelity.md";
    const BEGIN: &str = "<!-- written by COLD_BLESS=1 cargo test -p cold --test e2e fidelity -->\n";

    /// How a start is recorded: its name in the table, and the flags.
    const RECORDED: [(&str, &[&str]); 5] = [
        ("A", &["--tier", "A"]),
        ("A, `--exact-need`", &["--tier", "A", "--exact-need"]),
        ("B", &["--tier", "B"]),
        ("C", &["--tier", "C"]),
        ("D", &["--tier", "D"]),
    ];

    /// What a recording says of a file's pages.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    enum Said {
        /// Exactly those that were touched.
        Same,
        /// Those and others, which it calls uncertain.
        AtMost,
        /// Not all of them, and it says that it cannot know: so many are missing, this is the first.
        Unknown(usize, u64),
    }

    /// A file for each way that can be done there.
    fn files(dir: &Path, can: impl Fn(&Way) -> bool) {
        fs::create_dir_all(dir).unwrap();
        for way in WAYS.iter().filter(|way| can(way)) {
            data(dir.join(way.name), (PAGES * PAGE) as usize);
        }
    }

    fn disk(file_system: FileSystem) -> SlowDisk {
        let size = Bytes(400 << 20);
        SlowDisk::with(&Options::new(Preset::Fast, size, file_system)).unwrap()
    }

    /// What a recording says of a way, and whether that is true.
    fn judge(r: &Recording, usage: &[Usage], dir: &Path, way: &Way) -> Result<Said, String> {
        let path = dir.join(way.name);
        let of_file = r.files.iter().position(|f| f.path.as_deref() == path.to_str());
        let pages = |runs: &cold_model::pages::Runs| -> BTreeSet<u64> {
            runs.runs().iter().flat_map(|run| run.start..run.end).collect()
        };
        let none = Usage::default();
        let u = of_file.and_then(|i| usage.get(i)).unwrap_or(&none);
        let touched: BTreeSet<u64> = way.touched().into_iter().collect();
        let (exact, needed) = (pages(&u.exact), pages(&u.needed));
        let never: Vec<_> = exact.difference(&touched).collect();
        if !never.is_empty() {
            return Err(format!("never touched: {never:?}"));
        }
        let missing: Vec<u64> = touched.difference(&needed).copied().collect();
        Ok(match missing.first() {
            None if needed == touched => Said::Same,
            None => Said::AtMost,
            Some(first) => Said::Unknown(missing.len(), *first),
        })
    }

    /// Whether a recording of this tier has to hold what is touched so.
    fn must_be_seen(tier: Tier, kind: Access) -> bool {
        match kind {
            Access::Mapped => true,
            Access::Read | Access::Written | Access::Direct => tier <= Tier::B,
            // Tier B sees calls that read, and a ring needs none; faults by address, and pages that were asked for
            // never fault.
            Access::Uring | Access::Asked => tier == Tier::A,
        }
    }

    /// Whether the pages that a way touched are still in the page cache, by the kernel's word.
    fn all_cached(path: &Path, way: &Way) -> bool {
        let (file, meta) = cold_sys::open::regular(path, false).unwrap();
        let cached = cold_sys::residency::PageMap::of(&file, &meta).unwrap().unwrap();
        let runs: Vec<_> = cached.runs().map(|run| run.first..run.first + run.pages).collect();
        way.touched().iter().all(|page| runs.iter().any(|run| run.contains(page)))
    }

    /// Records the ways on the files of `dir`, and judges each.
    fn recorded_ways(
        place: &Sandbox,
        dir: &Path,
        flags: &[&str],
    ) -> Result<(Recording, BTreeMap<&'static str, Said>), String> {
        let name = "ways.cold";
        let _ = fs::remove_dir_all(place.path(name));
        let subject = place.subject();
        let command = [name, "--", &subject, "ways", dir.to_str().unwrap()];
        let args = ["trace", "--evict", "files"].iter().chain(flags).chain(&["-o"]).chain(&command);
        let ran = place.cold(args).run();
        if ran.code() == 5 {
            return Err(ran.stderr);
        }
        ran.expect(0);
        let r = recorded(place, name);
        if r.manifest.lost_events() > 0 {
            return Err(format!("lost: {:?}", r.manifest.lost));
        }
        // Tiers C and D go by what is cached in the end: what others threw out meanwhile is missing there, as it says.
        let thrown_out = |t: &&Taint| matches!(t, Taint::CachesDropped { .. } | Taint::PagesReclaimed { .. });
        if let Some(taint) = r.manifest.disqualified_by.iter().find(thrown_out) {
            return Err(format!("{taint:?}"));
        }
        // A few pages are no taint, but missing all the same. Nobody but the program reads these files.
        if r.manifest.tier >= Tier::C {
            let gone = |way: &&Way| dir.join(way.name).exists() && !all_cached(&dir.join(way.name), way);
            if let Some(way) = WAYS.iter().filter(|way| way.kind == Access::Mapped).find(gone) {
                return Err(format!("{}: touched, and no longer cached", way.name));
            }
        }
        let usage = replay(&r);
        let present = WAYS.iter().filter(|way| dir.join(way.name).exists());
        let judged = present.map(|way| {
            let said = judge(&r, &usage, dir, way).map_err(|e| format!("{}: {e}", way.name))?;
            Ok((way.name, said))
        });
        let judged: Result<_, String> = judged.collect();
        let judged = judged.unwrap_or_else(|e| panic!("{flags:?} on {}: {e}", dir.display()));
        Ok((r, judged))
    }

    /// What is wrong: the bound does not hold where the recording promises it, or the report does not say that it
    /// cannot know.
    fn wrong(r: &Recording, judged: &BTreeMap<&'static str, Said>, on_disk: bool, told: &str) -> Vec<String> {
        let tier = r.manifest.tier;
        let analysis = analyze(r, &cold_model::layout::Layouts::default());
        let bound = analysis.checks.iter().find(|c| c.id == "needed_is_upper_bound").unwrap().holds;
        let mut wrong = Vec::new();
        let mut must = |holds: bool, what: String| {
            if !holds {
                wrong.push(format!("{told}: {what}"));
            }
        };
        for way in WAYS.iter().filter(|way| judged.contains_key(way.name)) {
            let said = judged[way.name];
            let seen = on_disk && must_be_seen(tier, way.kind);
            let lacks = matches!(said, Said::Unknown(..));
            must(!lacks || !seen, format!("{}: not all that was touched: {said:?}", way.name));
            // Faults on files in memory have no events, as the check says.
            let claims = bound == Some(true) && on_disk;
            must(!lacks || !claims, format!("{}: the bound is no bound", way.name));
            // What the program asked for itself comes ahead of it all the same, in large folios.
            let asked = way.kind == Access::Asked || ["mapped-willneed", "mapped-huge"].contains(&way.name);
            if r.manifest.exact_need && !asked && seen && told.starts_with("ext4, ") {
                must(said == Said::Same, format!("{}: {said:?}", way.name));
            }
        }
        if tier <= Tier::B && on_disk && judged.contains_key("direct") {
            let direct = analysis.files.iter().find(|f| f.path.ends_with("/direct"));
            let past = direct.map(|f| (f.direct, f.read));
            must(past == Some((Bytes(4 * PAGE), Bytes(0))), format!("direct: {past:?}"));
        }
        must(
            tier <= Tier::B || analysis.headline.needed.value().is_none(),
            "what was needed is known".into(),
        );
        wrong
    }

    #[test]
    fn every_way_to_read_on_every_file_system_in_every_tier() {
        needs_root!();
        let place = Sandbox::new();
        let (ext4, xfs, btrfs) = (disk(FileSystem::Ext4), disk(FileSystem::Xfs), disk(FileSystem::Btrfs));
        let below = |disk: &SlowDisk, name: &str| disk.mount_point().join(name);
        for disk in [&ext4, &xfs, &btrfs] {
            files(&below(disk, "ways"), |_| true);
        }
        // Read-only images and stacked file systems have their files on the ext4 disk.
        let (source, lower) = (below(&ext4, "source"), below(&ext4, "lower"));
        files(&source, |way| !way.writes() && way.kind != Access::Direct);
        files(&lower, |way| !way.writes());
        let image = below(&ext4, "image");
        run("mksquashfs", &[source.to_str().unwrap(), image.to_str().unwrap(), "-quiet", "-no-progress"]);
        let squashfs = Mounted::new(place.path("squash"), &["-o", "loop,ro", image.to_str().unwrap()]);
        let (upper, work) = (below(&ext4, "upper"), below(&ext4, "work"));
        fs::create_dir(&upper).unwrap();
        fs::create_dir(&work).unwrap();
        let options =
            format!("lowerdir={},upperdir={},workdir={}", lower.display(), upper.display(), work.display());
        let overlay = Mounted::new(place.path("merged"), &["-t", "overlay", "-o", &options, "overlay"]);
        let looped = below(&ext4, "looped");
        fs::File::create(&looped).unwrap().set_len(120 << 20).unwrap();
        run("mkfs.ext4", &["-q", looped.to_str().unwrap()]);
        let on_loop = Mounted::new(place.path("loop"), &["-o", "loop", looped.to_str().unwrap()]);
        files(&place.path("loop/ways"), |_| true);
        let memory = Mounted::new(place.path("memory"), &["-t", "tmpfs", "none"]);
        files(&place.path("memory/ways"), |way| way.kind != Access::Direct);

        let places = [
            ("ext4", below(&ext4, "ways"), true),
            ("XFS", below(&xfs, "ways"), true),
            ("btrfs", below(&btrfs, "ways"), true),
            ("squashfs", place.path("squash"), true),
            ("overlayfs", place.path("merged"), true),
            ("ext4 on a loop device", place.path("loop/ways"), true),
            ("tmpfs", place.path("memory/ways"), false),
        ];
        let mut all_wrong = Vec::new();
        let mut table: Vec<(&str, Vec<BTreeMap<&'static str, Said>>)> = Vec::new();
        for (name, flags) in RECORDED {
            let mut row = Vec::new();
            for (system, dir, on_disk) in &places {
                let (r, judged) = attempts(|| {
                    // For one recording each: who wants the machine alone waits for seconds, not for all 35.
                    let _machine = together();
                    let _settings = flags.contains(&"--exact-need").then(exactly);
                    recorded_ways(&place, dir, flags)
                });
                all_wrong.extend(wrong(&r, &judged, *on_disk, &format!("{system}, {name}")));
                row.push(judged);
            }
            table.push((name, row));
        }
        drop((memory, on_loop, overlay, squashfs));
        assert!(all_wrong.is_empty(), "{}", all_wrong.join("\n"));
        document(&table, &places.map(|p| p.0));
    }

    /// Writes the table where that is asked for; else the document has to know the same ways.
    fn document(table: &[(&str, Vec<BTreeMap<&'static str, Said>>)], systems: &[&str]) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(DOC);
        let text = fs::read_to_string(&path).unwrap();
        let (head, old) = text.split_once(BEGIN).expect("the place of the table");
        let mut new = String::new();
        for (name, row) in table {
            writeln!(new, "\n## Tier {name}\n\n| way | {} |", systems.join(" | ")).unwrap();
            writeln!(new, "|---|{}", "---|".repeat(systems.len())).unwrap();
            for way in WAYS {
                let cells = row.iter().map(|judged| match judged.get(way.name) {
                    Some(Said::Same) => "=",
                    Some(Said::AtMost) => "≤",
                    Some(Said::Unknown(..)) => "?",
                    None => "–",
                });
                writeln!(new, "| {} | {} |", way.name, cells.collect::<Vec<_>>().join(" | ")).unwrap();
            }
        }
        if std::env::var_os("COLD_BLESS").is_some() {
            fs::write(path, format!("{head}{BEGIN}{new}")).unwrap();
            return;
        }
        let heads = |text: &str| -> Vec<String> {
            text.lines().filter_map(|l| Some(l.strip_prefix("| ")?.split(" | ").next()?.to_owned())).collect()
        };
        assert_eq!(heads(old), heads(&new), "COLD_BLESS=1 writes {DOC}");
    }
}
