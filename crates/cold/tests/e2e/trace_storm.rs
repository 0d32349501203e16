//! More events than anybody can take: what was lost is known to the last one.

mod root {
    use std::fs;

    use cold_model::recording::manifest::Tier;
    use cold_model::recording::{LookupKind, Recording, TouchKind};
    use cold_testbed::needs_root;

    use crate::support::*;
    use crate::trace::recorded;

    fn storm(place: &Sandbox, options: &[&str], program: &[&str]) -> Option<(Recording, String)> {
        let _ = fs::remove_dir_all(place.path("s.cold"));
        let fixed = ["trace", "--state", "as-is", "--no-stacks", "--output", "inherit", "-o", "s.cold"];
        let ran = place.cold(fixed.iter().chain(options).chain(&["--"]).chain(program)).run().expect(0);
        let r = recorded(place, "s.cold");
        (r.manifest.tier == Tier::A).then_some((r, ran.stdout))
    }

    /// What the kernel counted, as the subject says.
    fn faults(said: &str) -> u64 {
        let line = said.lines().find(|l| l.contains(" faults, ")).unwrap();
        line.split(' ').next().unwrap().parse().unwrap()
    }

    fn lost(r: &Recording, class: &str) -> u64 {
        r.manifest.lost.get(class).copied().unwrap_or(0)
    }

    /// Touched pages of the storm's file, and those of all others; of rows that are `counted`.
    fn touches(r: &Recording, file: &str, counted: impl Fn(TouchKind) -> bool) -> (u64, u64) {
        let index = r.files.iter().position(|f| f.path.as_deref() == Some(file));
        let rows = r.touches.iter().flatten().filter(|t| counted(t.kind));
        let (mine, others): (Vec<_>, Vec<_>) = rows.partition(|t| Some(t.file as usize) == index);
        let pages = |t: &[&cold_model::recording::Touch]| t.iter().map(|t| u64::from(t.pages)).sum();
        (pages(&mine), pages(&others))
    }

    #[test]
    fn every_fault_and_every_open_is_recorded_or_counted_as_lost() {
        needs_root!();
        let _machine = together();
        let place = Sandbox::new();
        let (subject, file) = (place.subject(), place.file("small", 64 * PAGE as usize));
        let file = file.to_str().unwrap();
        let (mappings, rounds) = (5000_u64, 20);
        let touched = mappings * rounds;
        let program = [&subject, "counted-faults", file, &mappings.to_string(), &rounds.to_string()];
        let Some((all, text)) = storm(&place, &["--buffer", "64Mi"], &program) else { return };
        let (seen, others) = touches(&all, file, |_| true);
        // The kernel's count holds a few faults of the counting itself.
        let sum = seen + lost(&all, "touches");
        assert!((touched..=faults(&text)).contains(&sum), "{sum}, {text}, lost: {:?}", all.manifest.lost);
        let said = |what: &str| {
            let ran = place.cold(["report", "--no-symbols", "s.cold"]).run().expect(0).stdout;
            assert_eq!(ran.contains("events were lost"), what == "lost", "{ran}");
        };
        said(if all.manifest.lost_events() > 0 { "lost" } else { "whole" });
        // A buffer that cannot hold them: what is lost may also be the program's own few touches.
        let Some((some, text)) = storm(&place, &["--buffer", "64Ki"], &program) else { return };
        // Where a mapping was lost, a fault may have mapped all of its folio: rows that are no faults.
        let exact = touches(&some, file, |kind| kind != TouchKind::FaultAround).0;
        let (seen, lost_touches) = (exact, lost(&some, "touches"));
        assert!(lost_touches > 0, "this buffer is large enough: {:?}", some.manifest.cost);
        let (sum, known) = (seen + lost_touches, faults(&text));
        assert!((touched..=known + others).contains(&sum), "{seen} + {lost_touches}, others {others}");
        said("lost");
        let json = place.cold(["report", "--no-symbols", "--json", "s.cold"]).run().expect(0).json();
        assert_eq!(json["headline"]["lost"]["touches"], lost_touches);
        place.cold(["report", "--no-symbols", "s.cold", "--html", "s.html"]).run().expect(0);
        let all = some.manifest.lost_events();
        let page = fs::read_to_string(place.path("s.html")).unwrap();
        assert!(page.contains(&format!("{all} events were lost (")), "{:?}", some.manifest.lost);
    }

    #[test]
    fn twenty_thousand_opens() {
        needs_root!();
        let _machine = together();
        let place = Sandbox::new();
        let (subject, dir) = (place.subject(), place.text("many"));
        fs::create_dir(&dir).unwrap();
        let program = [&subject, "open-files", &dir, "2000", "--misses", "20000"];
        let Some((r, _)) = storm(&place, &["--buffer", "64Mi"], &program) else { return };
        let opens = |name: &str| {
            let below = format!("{dir}/{name}");
            let mine = r.lookups.iter().flatten().filter(|l| l.kind == LookupKind::Open);
            mine.filter(|l| l.path.as_deref().is_some_and(|p| p.starts_with(&below))).count() as u64
        };
        // Each of the missing ones is created by a second open.
        assert_eq!(opens("f") + opens("missing") + lost(&r, "lookups"), 24_000, "{:?}", r.manifest.lost);
    }
}
