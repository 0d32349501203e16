//! Plans from learning to launching, against a disk that keeps its own account.

pub(crate) mod root {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use cold_model::Bytes;
    use cold_model::bench::{State, Taint};
    use cold_plan::Store;
    use cold_plan::plan::{Gate, Identity, PlanFile, Range};
    use cold_testbed::disk::{FileSystem, Op, Options, Preset, Request};
    use cold_testbed::{SlowDisk, launcher, needs_root};
    use serde_json::Value;

    use crate::support::*;

    /// Pages that the program touches: groups too far apart to be read in one.
    const TOUCHED: &str = "0-15,1024-1039,2048-2063,3072-3087,4096-4111,6000-6031";
    pub(crate) const PAGES: u64 = 8192;

    pub(crate) struct World {
        pub(crate) slow: SlowDisk,
        pub(crate) data: PathBuf,
        pub(crate) place: Sandbox,
        /// The program works before it touches its first page, and after its last one.
        works: bool,
    }

    impl World {
        pub(crate) fn new(preset: Preset) -> Self {
            Self::on(preset, Sandbox::new(), None, false)
        }
        /// One that every user may look at. Its program works before and after its reading, so that a recorder
        /// which comes a few milliseconds late misses nothing, and little of the whole (of which it must not miss 2 %:
        /// 23 ms); and whoever looks after 250 ms sees what was read.
        pub(crate) fn for_all(preset: Preset) -> Self {
            let place = Sandbox::for_all();
            let mount = place.path("disk");
            fs::create_dir(&mount).unwrap();
            Self::on(preset, place, Some(mount), true)
        }
        fn on(preset: Preset, place: Sandbox, mount: Option<PathBuf>, works: bool) -> Self {
            launcher();
            let (size, file_system) = (Bytes(320 << 20), FileSystem::Ext4);
            let slow = SlowDisk::with(&Options { mount, ..Options::new(preset, size, file_system) }).unwrap();
            let data = data(slow.mount_point().join("data"), (PAGES * PAGE) as usize);
            Self { slow, data, place, works }
        }
        pub(crate) fn store(&self) -> String {
            self.place.text("plans")
        }
        pub(crate) fn program(&self) -> Vec<String> {
            let data = self.data.to_str().unwrap().to_owned();
            let mut words = vec![self.place.subject(), "touch-mapped".into(), "--random".into()];
            if self.works {
                words.extend(["--spin", "150", "--spin-after", "1000"].map(str::to_owned));
            }
            words.extend([data, TOUCHED.into()]);
            words
        }
        pub(crate) fn cold(&self, command: &[&str], options: &[&str]) -> Cold {
            let store = ["--store".to_owned(), self.store()];
            let words = command.iter().chain(options).map(|w| (*w).to_owned());
            let rest = ["--".to_owned()].into_iter().chain(self.program());
            self.place.cold(words.chain(store).chain(rest).collect::<Vec<_>>())
        }
        pub(crate) fn learn(&self) -> Value {
            let options = ["--evict", "files", "--starts", "2", "--json"];
            self.cold(&["prefetch", "learn"], &options).run().expect(0).json()
        }
        pub(crate) fn evict(&self) {
            self.place.cold(["cache", "evict", self.data.to_str().unwrap()]).run().expect(0);
        }
        /// Makes the plan harmful: 96 MiB that nobody needs, before everything else, and waited for.
        pub(crate) fn harm(&self) -> PathBuf {
            self.read_in_vain(96 << 20)
        }
        /// Lets the plan read a new file of this many bytes before everything else.
        pub(crate) fn read_in_vain(&self, bytes: u32) -> PathBuf {
            self.read_pieces_in_vain(bytes, 1)
        }
        /// The same in so many steps, a page between one and the next.
        pub(crate) fn read_pieces_in_vain(&self, bytes: u32, pieces: u32) -> PathBuf {
            let huge = data(self.slow.mount_point().join("huge"), bytes as usize);
            let store = Store::at(self.store());
            let mut plan = store.list().unwrap().plans.remove(0).plan;
            let identity = Identity::of(&huge.metadata().unwrap(), [0; 20]);
            let file = plan.files.len() as u32;
            let kind = cold_plan::plan::FileKind::Regular;
            plan.files.push(PlanFile {
                path: huge.clone(),
                kind,
                identity,
                need_ns: 0,
                uses: 0xff,
                exact: false,
            });
            let each = bytes / PAGE as u32 / pieces;
            let pages = each - u32::from(pieces > 1);
            let piece = |n: u32| {
                let first_page = (n * each).into();
                Range { file, first_page, pages, need_ns: 0, uses: 0xff, around: false }
            };
            plan.ranges.splice(0..0, (0..pieces).map(piece));
            let mut knobs =
                cold_plan::plan::Knobs { gate: Gate::Arrived, critical_us: 1_000_000, ..plan.knobs };
            if pieces > 1 {
                knobs.gap_bytes = 0;
            }
            cold_prefetch::compile(&mut plan, &knobs, None, &|_| None);
            store.save(&plan).unwrap();
            huge
        }
        /// Reads that reached the disk meanwhile.
        pub(crate) fn reads(&self, start: impl FnOnce()) -> Vec<Request> {
            self.slow.reset_log().unwrap();
            start();
            let log = self.slow.log().unwrap();
            log.into_iter().filter(|q| q.op == Op::Read).collect()
        }
        /// What the plan reads of the data.
        pub(crate) fn planned(&self, plan: &Value) -> Vec<(u64, u64)> {
            let files = plan["files"].as_array().unwrap();
            let data = files.iter().find(|f| f["path"] == self.data.to_str().unwrap()).unwrap();
            let reads = data["reads"].as_array().unwrap();
            reads.iter().map(|r| (r["offset"].as_u64().unwrap(), r["bytes"].as_u64().unwrap())).collect()
        }
    }

    pub(crate) fn touched() -> BTreeSet<u64> {
        let group = |text: &str| {
            let (a, b) = text.split_once('-').unwrap();
            a.parse::<u64>().unwrap()..=b.parse().unwrap()
        };
        TOUCHED.split(',').flat_map(group).collect()
    }

    #[test]
    fn what_is_learnt_is_what_the_disk_is_asked_for() {
        needs_root!();
        let _machine = together();
        let w = World::new(Preset::Cloud);
        attempts(|| {
            let _ = fs::remove_dir_all(w.store());
            let plan = w.learn();
            let planned = w.planned(&plan);
            let pages: BTreeSet<u64> =
                planned.iter().flat_map(|(at, n)| at / PAGE..(at + n) / PAGE).collect();
            assert_eq!(pages, touched(), "exactly what it touches: {planned:?}");
            let listed = w.place.cold(["prefetch", "list", "--json", "--store", &w.store()]).run().expect(0);
            assert_eq!(listed.json()["plans"][0]["requests"], plan["requests"]);
            w.evict();
            let asked = w.reads(|| drop(w.cold(&["launch"], &[]).run().expect(0)));
            let planned_bytes: u64 = planned.iter().map(|(_, n)| n).sum();
            let bytes: u64 = asked.iter().map(|q| q.len.0).sum();
            let near = |got: u64, wanted: u64| got.abs_diff(wanted) * 20 <= wanted;
            let said = || format!("asked for {asked:?}, planned {planned:?}");
            check(near(bytes, planned_bytes) && near(asked.len() as u64, planned.len() as u64), said)
        });
    }

    #[test]
    fn a_prefetched_start_is_cold_follows_the_plan_and_is_faster_than_a_cold_one() {
        needs_root!();
        let _machine = together();
        let w = World::new(Preset::Cloud);
        w.learn();
        attempts(|| {
            let options = [
                "--json",
                "--evict",
                "files",
                "--idle-gap",
                "20",
                "-r",
                "3",
                "--states",
                "cold,prefetched,warm",
            ];
            let report = w.cold(&["bench"], &options).run().finished().report();
            let runs = |state: &State| -> Vec<_> {
                let index = report.series.iter().position(|s| s.state == *state).unwrap();
                report.runs.iter().filter(|r| r.series == index && only_busy(r)).cloned().collect()
            };
            let skipped = report.runs.iter().flat_map(|r| &r.taints).find_map(|t| match t {
                Taint::NotPrefetched { why } => Some(why.clone()),
                _ => None,
            });
            check(skipped.is_none(), || format!("skipped: {skipped:?}"))?;
            let plan = report.commands[0].plan.as_deref().unwrap();
            assert!(Path::new(&w.store()).join(format!("{plan}.plan")).exists(), "{plan}");
            let (cold, fast) = (runs(&State::Cold), runs(&State::Prefetched));
            check(cold.len() >= 2 && fast.len() >= 2, || format!("{:?}", kinds(&report.runs)))?;
            // 112 pages, one by one, at 0.7 ms against six requests.
            let best = |runs: &[cold_model::bench::Run]| runs.iter().map(|r| r.ready.0).min().unwrap();
            check(best(&fast) * 2 < best(&cold), || format!("{} ns, cold {} ns", best(&fast), best(&cold)))?;
            let bytes = fast.iter().filter_map(|r| r.read_bytes.value()).map(|b| b.0).max().unwrap();
            check(bytes >= 112 * PAGE, || format!("the helper's reads are the start's: {bytes}"))
        });
        let said = w.cold(&["launch"], &["--explain"]).run().expect(0).stdout;
        assert!(said.contains(" of what it reads: ") && said.contains(" to find out)"), "{said}");
        // Of a plan that is switched off it says so, and follows it all the same.
        let store = Store::at(w.store());
        let mut plan = store.list().unwrap().plans.remove(0).plan;
        plan.standing = cold_plan::plan::Standing::Off("it cost time".into());
        store.save(&plan).unwrap();
        let ran = w.cold(&["bench"], &["--states", "prefetched", "-r", "1", "--evict", "files"]).run();
        let (warned, followed) = ("is switched off (it cost time)", "followed the plan");
        assert!(ran.stderr.contains(warned) && ran.stdout.contains(followed), "{ran:?}");
        let left: Vec<_> = fs::read_dir(w.place.path("")).unwrap().flatten().map(|e| e.file_name()).collect();
        assert!(!left.iter().any(|n| n.to_str().unwrap().starts_with("trial-")), "{left:?}");
    }

    #[test]
    fn a_damaged_plan_costs_one_line() {
        needs_root!();
        let _machine = together();
        let w = World::new(Preset::Fast);
        let file = w.learn()["file"].as_str().unwrap().to_owned();
        let mut bytes = fs::read(&file).unwrap();
        bytes[40] ^= 0x55; // in the table of sections
        fs::write(&file, &bytes).unwrap();
        let ran = w.cold(&["launch"], &[]).run().expect(0);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("no plan followed"), "{}", ran.stderr);
        let ran = w.place.cold(["prefetch", "list", "--store", &w.store()]).run().expect(0);
        assert!(ran.stderr.contains("warning: "), "{}", ran.stderr);
    }

    #[test]
    fn a_plan_made_harmful_is_switched_off_with_the_reason() {
        needs_root!();
        let _machine = together();
        let w = World::new(Preset::Cloud);
        w.learn();
        let huge = w.harm();
        attempts(|| {
            w.place.cold(["cache", "evict", huge.to_str().unwrap()]).run().expect(0);
            let options = ["--evict", "files", "--trial-only", "--pairs", "10", "--starts", "60", "--json"];
            let ran = w.cold(&["prefetch", "tune"], &options).run();
            check(ran.code() == 3, || format!("exit code {}: {}{}", ran.code(), ran.stdout, ran.stderr))?;
            let why = ran.json()["standing"]["off"].as_str().unwrap().to_owned();
            check(why.contains("times as long as without"), || why)
        });
        // From now on the program starts as if there were none.
        w.evict();
        let ran = w.cold(&["launch"], &["--explain"]).run().expect(0);
        assert!(ran.stdout.contains("switched off"), "{}", ran.stdout);
    }
}
