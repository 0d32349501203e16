use cold_bench::gate::Gate;
use cold_bench::sample::{noise, report};
use cold_bench::summary::analyze;
use cold_model::Bytes;
use cold_model::bench::{State, Taint};

use super::*;

#[test]
fn the_page_loads_nothing_and_escapes_everything() {
    let evil = "<script>alert(1)</script>\"'&";
    let mut r = report(&[
        (evil, State::Cold, noise(400.0, 0.05, 10, 1)),
        (evil, State::Warm, noise(100.0, 0.05, 10, 2)),
    ]);
    r.machine.cpu = evil.into();
    r.commands[0].notes.push(evil.into());
    r.commands[0].line = evil.into();
    r.runs[0].taints.push(Taint::ForeignReads { bytes: Bytes(1 << 30), readers: vec![evil.into()] });
    r.runs[2].read_bytes = cold_model::Known::unknown(evil);
    let gates = Gate::parse("cold.median > 1s").unwrap().evaluate(&r, None);
    let page = html(&r, &analyze(&r, 0.02), &gates);
    assert_eq!(page.matches("<script>").count(), 1, "only ours");
    assert!(!page.contains("alert(1)</script>"));
    for address in ["http://", "https://", "src=", "href=", "url(", "@import"] {
        let allowed = usize::from(address == "http://"); // The name space of SVG.
        assert_eq!(page.matches(address).count(), allowed, "{address}");
    }
    assert!(page.contains("default-src 'none'"));
    let body = page.split("<main>").nth(1).unwrap().split("</main>").next().unwrap();
    crate::svg::tests::assert_well_formed(body);
}

#[test]
fn the_page_shows_every_run_with_its_taints_and_unknowns() {
    let mut r = report(&[("a", State::Cold, noise(400.0, 0.05, 10, 1))]);
    r.runs[3].taints.push(Taint::CachesDropped { times: 1 });
    let page = html(&r, &analyze(&r, 0.02), &[]);
    let runs = page.split("<h2>Runs</h2>").nth(1).unwrap().split("<h2>").next().unwrap();
    assert_eq!(runs.matches("<tr>").count(), 11);
    assert!(runs.contains("title=\"caches were dropped by another process\">caches dropped</td>"));
    assert!(runs.contains("title=\"delay accounting is off\">unknown</td>"));
    assert!(!page.contains("<h2>Gates</h2>"));
    assert!(page.contains("1 of 10 runs does not count (tainted)"));
}
