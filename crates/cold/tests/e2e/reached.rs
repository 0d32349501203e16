//! Readiness that is reached beside the first process: the path to ready ends at who reached it, however busy others are.

use cold_testbed::needs_root;
use serde_json::Value;

use crate::ready::free_port;
use crate::support::*;
use crate::trace::recorded;

/// Who makes the start ready sleeps so long before; the first process computes all the while.
const SLEEP_MS: u64 = 400;

/// The time of a reason in the recorded start, ns; the reasons sum to the whole.
fn sleep(told: &Value) -> u64 {
    let rows = told["reasons"].as_array().unwrap_or_else(|| panic!("{told}"));
    let time = |row: &Value| row["cold"].as_u64().unwrap_or_else(|| panic!("{row}"));
    let (sum, whole) = (rows.iter().map(time).sum::<u64>(), told["recorded_cold"].as_u64().unwrap());
    assert!(sum.abs_diff(whole) * 100 <= whole, "{sum} of {whole}: {told}");
    rows.iter().filter(|row| row["kind"] == "sleep").map(time).sum()
}

#[test]
fn the_path_to_ready_ends_at_the_process_that_reached_it() {
    needs_root!();
    let _machine = together();
    let place = Sandbox::new();
    let (subject, port, second) = (place.subject(), free_port(), free_port());
    let (socket, file) = (place.text("socket"), place.text("there"));
    let daemon = |how: &str| format!("{subject} daemon --seconds 20 --delay {SLEEP_MS} {how}");
    let seconds = SLEEP_MS as f64 / 1000.0;
    let server = format!(
        "python3 -S -c 'import http.server, time; time.sleep({seconds})
http.server.HTTPServer((\"127.0.0.1\", {second}), http.server.SimpleHTTPRequestHandler).serve_forever()'"
    );
    let cases = [
        ("stdout:^ready".to_owned(), format!("(sleep {seconds}; echo ready; sleep 20)")),
        ("stderr:^ready".to_owned(), format!("(sleep {seconds}; echo ready >&2; sleep 20)")),
        (format!("port:{port}"), daemon(&format!("--port {port}"))),
        (format!("unix:{socket}"), daemon(&format!("--socket {socket}"))),
        (format!("file:{file}"), daemon(&format!("--ready-file {file}"))),
        ("notify".to_owned(), daemon("--notify")),
        (format!("http://127.0.0.1:{second}/"), server),
    ];
    for (ready, command) in cases {
        let line = format!("{command} & while :; do :; done");
        attempts(|| {
            for made in [&socket, &file] {
                let _ = std::fs::remove_file(made);
            }
            let args = ["trace", "--state", "as-is", "--ready", &ready, "-o", "r.cold", "--overwrite"];
            let end = ["--grace", "0.1", "--no-stacks", "--", "/bin/sh", "-c", &line];
            place.cold(args.iter().chain(&end)).run().expect(0);
            let r = recorded(&place, "r.cold");
            let Some(first) = r.off_cpu.as_ref().and(r.processes.first()).map(|p| p.pid) else {
                assert!(std::env::var_os("CI").is_none(), "tier {}", r.manifest.tier);
                return Ok(());
            };
            if let Some(by) = r.manifest.reached_by {
                assert_ne!(by.pid, first, "{ready}: not by the first process");
            }
            let told = place.cold(["diagnose", "r.cold", "--json"]).run().expect(0).json();
            check(sleep(&told) >= SLEEP_MS * 1_000_000 * 9 / 10, || format!("{ready}: {told}"))
        });
    }
}
