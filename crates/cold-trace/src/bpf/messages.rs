//! What libbpf says while it loads, kept for the error instead of being printed.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::PrintLevel;

/// Enough for the verifier's last words.
const KEPT: usize = 12;

static LINES: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

#[allow(clippy::needless_pass_by_value)] // the type that libbpf-rs wants
fn keep(_: PrintLevel, text: String) {
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(line.to_owned());
    }
}

/// From now on libbpf's warnings are kept; earlier ones are forgotten.
pub(super) fn capture() {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).clear();
    libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
}

/// What was kept.
pub(super) fn take() -> Vec<String> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
}

/// As the end of an error message.
pub(super) fn tail(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!("; libbpf said:\n  {}", lines.join("\n  ")) }
}
