//! What `recording.json` says of the command and its preparation; the recorder adds the machine.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use cold_bench::diagnose::taints;
use cold_bench::launch::Start;
use cold_bench::session::ExactNeed;
use cold_bench::session::single::Single;
use cold_model::recording::Manifest;
use cold_model::recording::manifest::{FORMAT, StartState, Subject, VERSION};
use cold_model::{Bytes, Known};
use cold_sys::page::page_size;
use cold_sys::time::monotonic;

/// Variables that make programs search: they explain misses. All others stay in the digest only.
const SEARCH: [&str; 14] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PYTHONPATH",
    "PYTHONHOME",
    "NODE_PATH",
    "CLASSPATH",
    "PERL5LIB",
    "RUBYLIB",
    "GEM_PATH",
    "XDG_DATA_DIRS",
    "XDG_CONFIG_DIRS",
    "GI_TYPELIB_PATH",
    "LOCPATH",
];

/// What is known before the start: of what, with which arguments (of a command), and what ends it.
pub(crate) fn before(subject: Subject, argv: &[OsString], ready: &str) -> Manifest {
    Manifest {
        format: FORMAT.into(),
        version: VERSION,
        tool: env!("CARGO_PKG_VERSION").into(),
        page_bytes: u32::try_from(page_size()).unwrap_or(4096),
        directory: std::env::current_dir().unwrap_or_default(),
        environment: digest(std::env::vars_os()),
        search_paths: search_paths(),
        started_at: now(),
        start: monotonic(),
        state: StartState { wanted: "as found".into(), ..StartState::default() },
        command: argv.to_vec(),
        ready_means: match (&subject, ready) {
            (Subject::Command, "exit") => "exit of the tree".into(),
            (Subject::Command, _) => ready.to_owned(),
            _ => String::new(),
        },
        subject,
        ..Manifest::default()
    }
}

/// Adds when the start was ready, and how it ended.
pub(super) fn started(m: &mut Manifest, start: &Start) {
    m.start = start.at;
    m.ready = Some(match start.ready {
        Some(t) => Known::Value(start.at + t),
        None if start.interrupted => Known::unknown("it was interrupted"),
        None => Known::unknown("it never got ready"),
    });
    m.ending = Some(start.ending);
}

/// Adds what it started from, and what disturbed it.
pub(super) fn judged(m: &mut Manifest, single: Single) {
    let Single { run, state, notes, exact, .. } = single;
    m.state = state;
    m.taints = run.taints.iter().map(taints::words).collect();
    m.notes.extend(notes);
    (m.exact_need, m.fault_around) = match exact {
        ExactNeed::NotAsked(window) => (false, window),
        ExactNeed::FaultAround => (true, Known::Value(Bytes(page_size()))),
        ExactNeed::ReadAhead { devices, why } => {
            m.notes.push(format!(
                "touches are exact because nothing was read ahead on {}, as far as the start was cold ({why})",
                devices.join(", ")
            ));
            (true, Known::unknown(why))
        }
        ExactNeed::Not(why) => {
            m.notes.push(format!(
                "--exact-need could not be had, so pages mapped around faults are an upper bound: {why}"
            ));
            (false, Known::unknown(why))
        }
    };
}

/// RFC 3339 with fractions: a file that was changed in the second before was not changed by the start.
fn now() -> String {
    jiff::Timestamp::now().to_string()
}

fn search_paths() -> BTreeMap<String, String> {
    let value = |name: &str| Some((name.to_owned(), std::env::var_os(name)?.to_string_lossy().into_owned()));
    SEARCH.iter().filter_map(|name| value(name)).collect()
}

/// 128 bits (FNV-1a) over the sorted variables: tells whether two environments are the same. It is no
/// secret's guard against guessing; it gives away nothing that is not guessed as a whole.
fn digest(vars: impl Iterator<Item = (OsString, OsString)>) -> String {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut all: Vec<_> = vars.collect();
    all.sort();
    let mut hash = OFFSET;
    let mut eat = |text: &OsStr, end: u8| {
        for byte in text.as_bytes().iter().chain([&end]) {
            hash = (hash ^ u128::from(*byte)).wrapping_mul(PRIME);
        }
    };
    for (name, value) in &all {
        eat(name, b'=');
        eat(value, 0);
    }
    format!("{hash:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_tells_environments_apart_whatever_their_order() {
        let of = |list: &[(&str, &str)]| digest(list.iter().map(|(n, v)| (n.into(), v.into())));
        assert_eq!(of(&[("A", "1"), ("B", "2")]), of(&[("B", "2"), ("A", "1")]));
        assert_ne!(of(&[("A", "1"), ("B", "2")]), of(&[("A", "1"), ("B", "3")]));
        assert_ne!(of(&[("A", "1B=2")]), of(&[("A", "1"), ("B", "2")]));
        assert_eq!(of(&[]).len(), 32);
    }
}
