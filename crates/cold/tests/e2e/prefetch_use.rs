//! Plans in use: day after day, by an ordinary user, on another machine.

#[test]
fn verdicts_on_a_history_are_told_and_written_when_asked() {
    use cold_plan::history::{LaunchKind, Mark, Record, append};
    use cold_plan::plan::Standing;

    use crate::support::Sandbox;

    let place = Sandbox::new();
    let store = cold_plan::Store::at(place.path("plans"));
    let (mut plan, other) = (cold_plan::sample::sample(), cold_plan::sample::sample());
    (plan.standing, plan.trial) = (Standing::Untried, None);
    plan.key.scenario = "slower".into();
    let good = cold_plan::Plan {
        key: cold_plan::plan::Key { scenario: "faster".into(), ..other.key },
        ..plan.clone()
    };
    for (plan, ms) in [(&plan, 900), (&good, 300)] {
        store.save(plan).unwrap();
        for n in 0..14_u64 {
            // The fixed part of the time, and a little of its own for each start.
            let (kind, ms) =
                if n % 2 == 0 { (LaunchKind::Prefetched, ms) } else { (LaunchKind::Control, 500) };
            let wall_ns = ms * 1_000_000 + n * 1000;
            let mark = Some(Mark { wall_ns, cpu_ns: 1_000_000, exited: n % 3 == 0, rested: false });
            let when_ns = (plan.learnt.last + n) * 1_000_000_000;
            let record = Record { when_ns, plan: 1, kind, mark, bytes: 0, requests: 0, late: false };
            append(&store.history_of(&plan.key), &record).unwrap();
        }
    }
    let run = |options: &[&str]| {
        let store = place.text("plans");
        place.cold([&["prefetch", "status", "--store", &store], options].concat()).run().expect(0)
    };
    let standing = |plan: &cold_plan::Plan| store.load(&plan.key).unwrap().unwrap().standing;
    let told = run(&[]).stdout;
    assert!(told.contains("switch off: daily starts with the plan are slower: 1.8"), "{told}");
    assert!(told.contains("keep: daily use shows a gain: 0.60"), "{told}");
    assert_eq!((standing(&plan), standing(&good)), (Standing::Untried, Standing::Untried));
    let told = run(&["--apply"]).stdout;
    assert_eq!(told.matches("(written into the plan)").count(), 2, "{told}");
    assert!(matches!(standing(&plan), Standing::Off(why) if why.contains("slower")));
    assert_eq!(standing(&good), Standing::Proven);
    // Once is enough, and the reason stays.
    let again = run(&["--apply", "--json"]).json();
    for p in again["plans"].as_array().unwrap() {
        assert_eq!(p["applied"], false, "{p}");
    }
    assert!(run(&[]).stdout.contains("switched off: daily starts with the plan are slower"));
}

mod root {
    use std::fs;
    use std::path::PathBuf;
    use std::time::Instant;

    use cold_model::bench::Taint;
    use cold_plan::{Plan, Store, history};
    use cold_testbed::disk::{Op, Preset};
    use cold_testbed::{needs_root, until};
    use serde_json::Value;

    use crate::prefetch::root::{PAGES, World};
    use crate::support::*;
    use crate::user::root::as_nobody;

    fn plan_of(w: &World) -> (Store, Plan) {
        let store = Store::at(w.store());
        let plan = store.list().unwrap().plans.remove(0).plan;
        (store, plan)
    }

    fn status(w: &World, options: &[&str]) -> Value {
        let store = w.store();
        let words = [&["prefetch", "status", "--json", "--store", &store], options].concat();
        w.place.cold(words).run().expect(0).json()["plans"][0].clone()
    }

    /// Cold starts through the launcher, every second one a control, until that decides.
    fn used(w: &World, evicted: &[PathBuf], decided: impl Fn(&Value) -> bool) -> Value {
        let (store, plan) = plan_of(w);
        let log = store.history_of(&plan.key);
        for n in 1.. {
            for file in evicted {
                w.place.cold(["cache", "evict", file.to_str().unwrap()]).run().expect(0);
            }
            let before = history::read(&log).unwrap().len();
            w.cold(&["launch"], &["--control-every", "2"]).run().expect(0);
            // The helper writes when the program has ended.
            until("the start is entered", || (history::read(&log).unwrap().len() > before).then_some(()));
            let now = status(w, &[]);
            if decided(&now) {
                return now;
            }
            assert!(n < 100, "never decided: {now}");
        }
        panic!("starts end")
    }

    #[test]
    fn daily_use_with_controls_proves_a_plan() {
        needs_root!();
        let _machine = together();
        let w = World::new(Preset::Cloud);
        w.learn();
        let proven = |s: &Value| s["why"].as_str().unwrap().contains("daily use shows a gain");
        let good = used(&w, std::slice::from_ref(&w.data), proven);
        assert_eq!(good["verdict"], "keep");
        let count = |s: &Value, what: &str| s[what].as_u64().unwrap();
        assert!(count(&good, "controls") >= 6 && count(&good, "prefetched") >= 6, "{good}");
        assert!(count(&good, "prefetched_median_ns") < count(&good, "control_median_ns"), "{good}");
        status(&w, &["--apply"]);
        assert_eq!(plan_of(&w).1.standing, cold_plan::plan::Standing::Proven);
    }

    #[test]
    fn a_servers_prefetched_starts_are_known_to_have_followed_the_plan() {
        needs_root!();
        let _machine = together();
        let w = World::new(Preset::Fast);
        let (store, data) = (w.store(), w.data.to_str().unwrap());
        let ready = ["--ready", "stdout:holding", "--evict", "files", "--store", &store, "--json"];
        let subject = w.place.subject();
        let cold = |words: &[&str]| {
            let server = ["--", &subject, "hold", data];
            w.place.cold([words, &ready, &server].concat()).run()
        };
        cold(&["prefetch", "learn", "--starts", "2"]).expect(0);
        // Learnt again for its words: what is to be typed next makes the same start.
        let learn = ["prefetch", "learn", "--starts", "1", "--grace", "2"];
        let server = ["--", &subject, "hold", data];
        let said = w.place.cold([&learn, &ready[..6], &server].concat()).run().expect(0).stdout;
        let next = said.lines().find(|l| l.contains("next:")).unwrap();
        let words =
            format!("{store} --evict files --ready stdout:holding --grace 2 -- {subject} hold {data}");
        assert!(next.ends_with(&words), "{next}");
        let plan = plan_of(&w).1;
        assert!(plan.learnt.goes_on, "{:?}", plan.learnt);
        attempts(|| {
            let report = cold(&["bench", "--states", "prefetched", "-r", "3", "--idle-gap", "20"]);
            let report = report.finished().report();
            let lost = report.runs.iter().flat_map(|r| &r.taints).find_map(|t| match t {
                Taint::NotPrefetched { why } => Some(why.clone()),
                _ => None,
            });
            assert!(report.runs.iter().all(|r| r.killed_by_force == 0), "{:?}", report.runs);
            // Strangers may keep it from reading; its word is there all the same.
            assert_ne!(lost.as_deref(), Some("it recorded nothing of what it did"));
            check(lost.is_none(), || lost.unwrap_or_default())
        });
    }

    #[test]
    fn daily_use_with_controls_switches_a_harmful_plan_off() {
        needs_root!();
        let _machine = together();
        let w = World::new(Preset::Cloud);
        w.learn();
        let evicted = [w.data.clone(), w.harm()];
        let off = |s: &Value| s["standing"]["off"].is_string();
        let bad = used(&w, &evicted, off);
        let why = bad["standing"]["off"].as_str().unwrap();
        assert!(why.contains("slower: ") && why.contains("times as long as without"), "{bad}");
        assert_eq!((&bad["verdict"], &bad["why"]), (&Value::from("switch off"), &Value::from(why)));
        // Six pairs decide; not all starts must have made one.
        assert!(bad["controls"].as_u64().unwrap() <= 9, "{bad}");
        w.evict();
        let ran = w.cold(&["launch"], &["--explain"]).run().expect(0);
        assert!(ran.stdout.contains("switched off: daily starts"), "{}", ran.stdout);
        let told = w.place.cold(["prefetch", "status", "--store", &w.store()]).run().expect(0).stdout;
        assert!(told.contains("switched off: daily starts with the plan are slower"), "{told}");
    }

    #[test]
    fn the_tuner_tries_rivals_and_writes_down_what_it_found() {
        needs_root!();
        let _machine = together();
        let w = World::new(Preset::Cloud);
        w.learn();
        attempts(|| {
            let options = ["--evict", "files", "--pairs", "8", "--starts", "60", "--json"];
            let ran = w.cold(&["prefetch", "tune"], &options).run();
            check(ran.code() == 0, || format!("exit code {}: {}{}", ran.code(), ran.stdout, ran.stderr))?;
            let told = ran.json();
            assert!(told["starts"].as_u64().unwrap() <= 60, "{told}");
            let tried = told["tried"].as_array().unwrap();
            assert!(!tried.is_empty(), "{told}");
            for t in tried {
                assert!(!t["what"].as_str().unwrap().is_empty() && t["taken_over"].is_boolean(), "{t}");
                // The model knows all of them, as root's recording has who waited for whom. What it calls clearly worse
                // got no start.
                let hopeless = t["foretold"].as_f64().unwrap() > 1.15;
                let measured = t["pairs"].as_u64().unwrap() > 0;
                assert_eq!(measured, t["ratio"].as_f64().is_some_and(|ratio| ratio > 0.0), "{t}");
                assert_eq!(hopeless, !measured, "{t}");
            }
            let foretold = told["foretold"].as_f64().unwrap();
            assert!(foretold < 0.9, "{told}");
            // 112 pages, one by one, against six requests.
            assert!(told["trial"]["high"].as_f64().unwrap() < 0.9, "{}", told["trial"]);
            let files = told["waste"]["files"].as_array().unwrap();
            let data = files.iter().find(|f| f["path"] == w.data.to_str().unwrap()).unwrap();
            let amount = |name: &str| data["amounts"][name].as_u64().unwrap();
            // On a busy machine the program comes to some of its pages before they are asked for.
            let used_or_first = amount("used") + amount("late") - amount("in_flight");
            assert_eq!((used_or_first, amount("unused"), amount("missing")), (112 * PAGE, 0, 0), "{data}");
            assert!(amount("used") > 100 * PAGE, "{data}");
            let kept = w.cold(&["prefetch", "show"], &["--json"]).run().expect(0).json();
            for what in ["standing", "trial", "knobs", "bound"] {
                assert_eq!(kept[what], told[what], "{what}");
            }
            assert_eq!(kept["standing"], "proven");
            Ok(())
        });
    }

    #[test]
    fn an_upgraded_file_is_left_out_and_learnt_again() {
        needs_root!();
        let _machine = together();
        let w = World::new(Preset::Cloud);
        w.learn();
        let verify = |code| w.cold(&["prefetch", "verify"], &["--json"]).run().expect(code).json();
        assert_eq!(verify(0)["stale_bytes"], 0);
        // As package managers do: a new file takes the name.
        let new = data(w.slow.mount_point().join("data.new"), ((PAGES + 8) * PAGE) as usize);
        fs::rename(new, &w.data).unwrap();
        let verified = verify(3);
        assert_eq!(verified["stale_bytes"], 112 * PAGE, "{verified}");
        assert_eq!(verified["stale"][0]["path"], w.data.to_str().unwrap());
        assert_eq!(verified["learn_again"], true);
        w.cold(&["launch"], &[]).run().expect(0);
        attempts(|| {
            let planned: u64 = w.planned(&w.learn()).iter().map(|(_, bytes)| bytes).sum();
            check(planned == 112 * PAGE, || format!("{planned} bytes are planned"))
        });
        assert_eq!(verify(0)["stale_bytes"], 0);
    }

    #[test]
    fn a_recorded_start_by_the_plan_is_kept_and_shown_per_file() {
        needs_root!();
        let _machine = together();
        let w = World::new(Preset::Cloud);
        w.learn();
        let show = |options: &[&str]| w.cold(&["prefetch", "show"], options).run().expect(0);
        assert!(!show(&[]).stdout.contains("UNUSED"));
        w.cold(&["prefetch", "verify", "--replay"], &["--evict", "files", "--json"]).run().expect(0);
        let shown = show(&[]).stdout;
        assert!(shown.contains("UNUSED") && shown.contains("recorded "), "{shown}");
        for word in shown.split_whitespace().filter_map(|w| w.strip_suffix('%')) {
            let share: f64 = word.trim_start_matches('(').parse().unwrap_or(0.0);
            assert!(share <= 100.0, "{shown}");
        }
        let kept = &show(&["--json"]).json()["replayed"]["waste"];
        let data = w.data.to_str().unwrap();
        let files = kept["files"].as_array().unwrap();
        let file = files.iter().find(|f| f["path"] == data).unwrap();
        assert_eq!(file["amounts"]["planned"], 112 * PAGE, "{file}");
        // What the launcher reads for itself is no need of the program.
        let own =
            |f: &&Value| ["cold-launch", ".plan"].iter().any(|e| f["path"].as_str().unwrap().ends_with(e));
        assert_eq!(files.iter().find(own), None);
        // Of another plan it says nothing, and it goes with its plan.
        let (store, mut plan) = plan_of(&w);
        assert!(plan.steps.pop().is_some());
        store.save(&plan).unwrap();
        assert!(!show(&[]).stdout.contains("UNUSED"));
        w.cold(&["prefetch", "remove"], &[]).run().expect(0);
        let left: Vec<_> = fs::read_dir(w.store()).unwrap().flatten().map(|e| e.path()).collect();
        assert!(left.iter().all(|p| p.extension().is_none_or(|e| e == "json")), "{left:?}");
    }

    #[test]
    fn on_another_tree_changed_and_missing_files_drop_out_by_name() {
        needs_root!();
        let _machine = together();
        let w = World::new(Preset::Fast);
        let file = |name: &str, pages: u64| data(w.slow.mount_point().join(name), (pages * PAGE) as usize);
        let files = [file("same", 64), file("changed", 64), file("missing", 64)];
        let touch = |f: &PathBuf| format!("{} touch-mapped --random {} 0-15", w.place.subject(), f.display());
        let script = w.place.script("app", &files.iter().map(touch).collect::<Vec<_>>().join("\n"));
        let (here, there, exported) = (w.store(), w.place.text("there"), w.place.text("app.json"));
        let run = |words: &[&str]| w.place.cold([&["prefetch"], words].concat()).run().expect(0);
        let learn = ["learn", "--store", &here, "--evict", "files", "--starts", "2", "--", &script];
        run(&learn);
        run(&["export", "--store", &here, "-o", &exported, "--", &script]);
        file("changed", 80);
        fs::remove_file(&files[2]).unwrap();
        let said = run(&["import", "--store", &there, &exported]).stderr;
        let about = |f: &PathBuf| said.lines().find(|l| l.contains(f.to_str().unwrap())).map(str::to_owned);
        assert_eq!(about(&files[0]), None, "{said}");
        assert!(about(&files[1]).unwrap().contains("327680 bytes here, and had 262144"), "{said}");
        assert!(about(&files[2]).unwrap().contains("No such file"), "{said}");
        let plan = run(&["show", "--json", "--store", &there, "--", &script]).json();
        let named: Vec<&str> =
            plan["files"].as_array().unwrap().iter().map(|f| f["path"].as_str().unwrap()).collect();
        let [same, changed, missing] = files.each_ref().map(|f| named.contains(&f.to_str().unwrap()));
        assert_eq!((same, changed, missing), (true, false, false), "{named:?}");
        // What is left is followed.
        attempts(|| {
            for f in &files[..2] {
                w.place.cold(["cache", "evict", f.to_str().unwrap()]).run().expect(0);
            }
            w.place.cold(["launch", "--store", &there, "--", "sh", "-c", "sleep 0"]).run().expect(0);
            let words = ["launch", "--explain", "--store", &there, "--", &script];
            let said = w.place.cold(words).run().expect(0).stdout;
            check(said.contains("would be followed"), || said)
        });
    }

    #[test]
    fn an_ordinary_user_learns_and_starts_faster() {
        needs_root!();
        let _machine = together();
        // The disk lies in the place, so it goes first: the last one of these.
        let World { place, data: file, slow, .. } = World::for_all(Preset::Cloud);
        let subject = place.subject();
        // Two page tables of 2 MiB: a lower tier cannot tell which pages of a page table are needed, so the plan may
        // hold all of them, a quarter of the time that the program takes page by page.
        let touched = "0-63,1024-1071";
        let program = [subject.as_str(), "touch-mapped", "--random", file.to_str().unwrap(), touched];
        let words = |command: &[&'static str]| [command, &["--"], &program].concat();
        // Without root: the lower tiers, and the user's own store.
        let learn = ["prefetch", "learn", "--starts", "2", "--json"];
        let mine = place.text("home/state/coldstart/plans");
        let reads = attempts(|| {
            let learnt = as_nobody(&place, &words(&learn)).run().expect(0).json();
            assert!(learnt["file"].as_str().unwrap().starts_with(&mine), "{learnt}");
            assert!(learnt["learnt"]["tier"].as_str().unwrap() > "B", "{learnt}");
            assert!(!learnt["missing"].as_array().unwrap().is_empty());
            let files = learnt["files"].as_array().unwrap();
            let planned = files.iter().find(|f| f["path"] == file.to_str().unwrap()).expect("the data");
            let reads = planned["reads"].as_array().unwrap();
            let bytes: u64 = reads.iter().map(|r| r["bytes"].as_u64().unwrap()).sum();
            check((112 * PAGE..=1024 * PAGE).contains(&bytes), || {
                format!("{bytes} bytes are planned: {}, {}", learnt["learnt"], planned["ranges"])
            })
            .map(|()| reads.len())
        });
        let evict = || drop(place.cold(["cache", "evict", file.to_str().unwrap()]).run().expect(0));
        let start = |command: &[&'static str]| {
            evict();
            slow.reset_log().unwrap();
            let began = Instant::now();
            as_nobody(&place, &words(command)).run().expect(0);
            let took = began.elapsed();
            (slow.log().unwrap().iter().filter(|q| q.op == Op::Read).count(), took)
        };
        attempts(|| {
            evict();
            let said = as_nobody(&place, &words(&["launch", "--explain"])).run().expect(0).stdout;
            check(said.contains("would be followed"), || said)?;
            // The same start through the launcher, with its plan and with a store that has none.
            let (requests, took) = start(&["launch"]);
            let (without, plain) = start(&["launch", "--store", "/nonexistent"]);
            let figures =
                || format!("{requests} requests in {took:?} ({reads} planned), plain {without}, {plain:?}");
            // Page by page the program would ask 112 times.
            check(without > 100, figures)?;
            check(requests <= reads + reads / 4 + 4, figures)?;
            check(took < plain, figures)
        });
    }
}
