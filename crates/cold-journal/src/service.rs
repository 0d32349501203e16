//! Services of systemd.

use std::process::Command;

use crate::{Error, Result};

/// Runs `systemctl` to its end; fails with what it wrote to its standard error.
pub(crate) fn systemctl(arguments: &[&str]) -> Result<()> {
    let command = format!("systemctl {}", arguments.join(" "));
    let fail = |why: String| Error::Command { command: command.clone(), why };
    let output = Command::new("systemctl").args(arguments).output().map_err(|e| fail(e.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(fail(format!("{}{}{}", output.status, if text.is_empty() { "" } else { ": " }, text.trim())))
}
