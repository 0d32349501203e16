//! Starting from exactly a saved state of the cache.

use cold_model::bench::State;

use crate::support::*;

#[test]
fn a_start_from_a_snapshot_finds_exactly_the_saved_pages() {
    let _machine = together();
    let place = Sandbox::new();
    let (file, snapshot) = (place.file("data", 4 * MIB), place.path("state.snap"));
    let path = file.to_str().unwrap();
    let saved = [1_u64, 7, 8, 500, 1023];
    let states = format!("cold,snapshot={}", snapshot.display());
    attempts(|| {
        place.cold(["cache", "evict", path]).run().expect(0);
        let pages = saved.map(|p| p.to_string()).join(",");
        std::fs::read(place.path("cold-subject")).unwrap();
        let status = std::process::Command::new(place.path("cold-subject"))
            .args(["touch-mapped", path, &pages, "--random"])
            .status();
        assert!(status.unwrap().success());
        check(resident(&file).into_iter().eq(saved), || "somebody else read the file".into())?;
        let program = resident(&place.path("cold-subject")).len() as u64;
        place.cold(["cache", "save", snapshot.to_str().unwrap(), path, &place.subject()]).run().expect(0);
        let args = ["--states", &states, "-r", "2", "--", &place.subject(), "touch-mapped", path, "0-99"];
        let report = place.bench(args).run().finished().report();
        for run in undisturbed(&report, &State::Snapshot(snapshot.clone()), 2)? {
            let residual = run.residual.value().unwrap();
            let of =
                |p: &std::path::Path| residual.files.iter().find(|f| f.path == p).map_or(0, |f| f.bytes.0);
            let (data, all) = (saved.len() as u64 * PAGE, (saved.len() as u64 + program) * PAGE);
            assert!(of(&file) <= data && residual.bytes.0 <= all, "more than was saved: {residual:?}");
            check((of(&file), residual.bytes.0) == (data, all), || format!("reclaimed: {residual:?}"))?;
        }
        for run in undisturbed(&report, &State::Cold, 2)? {
            let left = run.residual.value().unwrap().bytes.0;
            check(left == 0, || format!("{left} bytes came back before the start"))?;
        }
        Ok(())
    });
}
