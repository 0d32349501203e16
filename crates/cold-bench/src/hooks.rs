//! `--setup`, `--prepare`, `--conclude`, `--cleanup`: shell lines around the starts.

use std::process::{Command, ExitStatus, Stdio};

use crate::{Error, Result};

/// Runs one shell line; its output goes nowhere, its errors to cold's own stderr.
pub(crate) fn run(hook: &'static str, line: &str, iteration: Option<u32>) -> Result<()> {
    let fail = |ending: String| Error::Hook { hook, line: line.to_owned(), ending };
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(line).stdin(Stdio::null()).stdout(Stdio::null());
    if let Some(i) = iteration {
        command.env("HYPERFINE_ITERATION", i.to_string());
    }
    let status = command.status().map_err(|e| fail(format!("cannot start /bin/sh: {e}")))?;
    if status.success() { Ok(()) } else { Err(fail(words(status))) }
}

fn words(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(c), _) => format!("exit code {c}"),
        (None, Some(s)) => format!("signal {s}"),
        (None, None) => "unknown".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_hook_names_itself() {
        run("setup", "exit 0", None).expect("succeeds");
        run("prepare", "test \"$HYPERFINE_ITERATION\" = 3", Some(3)).expect("gets the iteration");
        let e = run("conclude", "exit 7", None).expect_err("fails").to_string();
        assert_eq!(e, "--conclude \"exit 7\" failed (exit code 7)");
        let e = run("cleanup", "kill -9 $$", None).expect_err("fails").to_string();
        assert!(e.ends_with("(signal 9)"), "{e}");
    }
}
