//! The one owner of stdout and stderr: results go to stdout, progress and warnings to stderr.
#![allow(clippy::print_stdout, clippy::print_stderr)] // this is the module that prints
#![allow(clippy::unused_self)] // only who was handed the Ui may print

use std::fmt::Display;
use std::io::{IsTerminal, Write};

use anstyle::{AnsiColor, Style};

use crate::exit::Failure;

/// Bold red: errors, failed gates.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Yellow: warnings, taints.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
/// Green: proven, passed.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Bold: headings and the figure that matters.
pub(crate) const STRONG: Style = Style::new().bold();
/// Dim: units, notes.
pub(crate) const FAINT: Style = Style::new().dimmed();

/// `text` in `style`; the codes are stripped where the output is no terminal or `NO_COLOR` is set.
pub(crate) fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Writes results, warnings and errors.
pub(crate) struct Ui {
    quiet: bool,
}

impl Ui {
    /// With `quiet`, warnings and progress are left out; results and errors stay.
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// A line of the result. A closed pipe (`| head`) ends the output silently.
    pub(crate) fn line(&self, text: impl Display) {
        let mut out = anstream::stdout().lock();
        if writeln!(out, "{text}").is_err() {
            // The reader has gone; nothing is left to say to it.
        }
    }

    /// A whole document on stdout, as it is.
    pub(crate) fn text(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            // As for `line`.
        }
    }

    /// Columns to fill: those of the terminal, else of `COLUMNS`, else 100.
    pub(crate) fn width(&self) -> usize {
        let terminal = terminal_size::terminal_size().map(|(w, _)| usize::from(w.0));
        let variable = || std::env::var("COLUMNS").ok()?.parse().ok();
        terminal.filter(|w| *w > 0).or_else(variable).unwrap_or(100).clamp(40, 200)
    }

    /// Whether the locale can show block characters (as glibc decides: `LC_ALL`, `LC_CTYPE`, LANG).
    pub(crate) fn unicode(&self) -> bool {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|k| std::env::var(k).ok().filter(|v| !v.is_empty()));
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    }

    /// A warning on stderr.
    pub(crate) fn warn(&self, text: impl Display) {
        if !self.quiet {
            anstream::eprintln!("{} {text}", paint(WARN, "warning:"));
        }
    }

    /// A note on stderr.
    pub(crate) fn note(&self, text: impl Display) {
        if !self.quiet {
            anstream::eprintln!("{text}");
        }
    }

    /// A failure on stderr: cause chain in one line, then the next step.
    pub(crate) fn error(&self, failure: &Failure) {
        anstream::eprintln!("{} {}", paint(BAD, "error:"), one_line(&failure.error));
        if let Some(hint) = &failure.hint {
            anstream::eprintln!("  {} {hint}", paint(STRONG, "try:"));
        }
    }

    /// Whether progress may be drawn (stderr is a terminal and the user wants it).
    pub(crate) fn shows_progress(&self) -> bool {
        !self.quiet && std::io::stderr().is_terminal()
    }
}

/// The error and its causes; a cause that an error's own text already tells is not repeated.
fn one_line(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}
