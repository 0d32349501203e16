//! Skipping what a test cannot do here: loudly, and never in CI.
#![allow(clippy::print_stderr, clippy::panic)] // for tests only: the message must reach the test's output

/// Whether the test runs as root. Without root it prints a SKIPPED line and returns false; where the
/// environment says `CI=true` it panics instead, so that nothing is skipped silently there.
///
/// # Panics
/// Without root where `CI=true`.
///
/// [`needs_root`](crate::needs_root) returns from the test.
pub fn need_root() -> bool {
    need(rustix::process::geteuid().is_root(), "root")
}

/// As [`need_root`] for anything else a test needs, such as a file system or a device.
///
/// # Panics
/// Where it is missing and `CI=true`.
pub fn need(present: bool, what: &str) -> bool {
    if !present {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "{test} needs {what}, and CI=true forbids skipping"
        );
        eprintln!("SKIPPED (needs {what}): {test}");
    }
    present
}

/// Returns from a test that lacks root, see [`need_root`].
///
/// ```no_run
/// cold_testbed::needs_root!();
/// ```
#[macro_export]
macro_rules! needs_root {
    () => {
        if !$crate::need_root() {
            return;
        }
    };
}
