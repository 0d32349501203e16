//! The one owner of stdout and stderr: results go to stdout, progress and warnings to stderr.
#![allow(clippy::unused_self)] // only who was handed the Ui may print

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::exit::{Exit, Failure};

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
    /// The first failure to write a result.
    lost: Mutex<Option<io::Error>>,
}

impl Ui {
    /// With `quiet`, warnings and progress are left out; results and errors stay.
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, lost: Mutex::default() }
    }

    /// A line of the result, and one line only: what foreign text holds of line feeds is escaped.
    pub(crate) fn line(&self, text: impl Display) {
        let text = safe(&text.to_string());
        self.put(|| writeln!(anstream::stdout().lock(), "{text}"));
    }

    /// Lines of the result, from a text whose line feeds are ours.
    pub(crate) fn lines(&self, text: &str) {
        text.lines().for_each(|line| self.line(line));
    }

    /// A whole document on stdout, as it is.
    pub(crate) fn text(&self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// As [`Ui::text`], for what need not be text.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        let out = io::stdout();
        self.put(|| out.lock().write_all(bytes));
    }

    /// The one JSON document that `--json` promises, indented.
    pub(crate) fn json(&self, document: &impl Serialize) {
        self.document(serde_json::to_string_pretty(document));
    }

    /// A JSON document that is text already.
    pub(crate) fn json_text(&self, json: &str) {
        self.document(Ok(json.to_owned()));
    }

    /// As [`Ui::json`], in one line, for documents with a row per start.
    pub(crate) fn json_line(&self, document: &impl Serialize) {
        self.document(serde_json::to_string(document));
    }

    fn document(&self, json: serde_json::Result<String>) {
        match json {
            Ok(json) => self.text(&(json_text(&json) + "\n")),
            Err(e) => self.put(|| Err(e.into())),
        }
    }

    /// What clap has to say: help and version are results, errors are none.
    pub(crate) fn usage(&self, told: &clap::Error) -> Exit {
        let text = told.render();
        if told.use_stderr() {
            let _ = write!(anstream::stderr().lock(), "{}", text.ansi());
            return Exit::Usage;
        }
        self.put(|| write!(anstream::stdout().lock(), "{}", text.ansi()));
        self.end(Exit::Done)
    }

    /// The exit code that is true: a result that could not be written (a full disk, a closed standard output) is
    /// a failure, and said. A reader that has enough (`| head`) is none.
    pub(crate) fn end(&self, exit: Exit) -> Exit {
        if !cold_sys::stdio::output_was_closed() {
            self.put(|| io::stdout().flush());
        }
        match self.lost.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                let error = anyhow::Error::new(e).context("cannot write the result to standard output");
                self.error(&Failure::from(error));
                if exit == Exit::Interrupted { exit } else { Exit::Failed }
            }
            _ => exit,
        }
    }

    /// Writes a part of the result. One that was closed from the beginning has become `/dev/null`, which takes
    /// everything.
    fn put(&self, write: impl FnOnce() -> io::Result<()>) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        // Half a document is not made better by its end.
        if lost.is_some() {
            return;
        }
        *lost = if cold_sys::stdio::output_was_closed() {
            Some(io::Error::from_raw_os_error(rustix::io::Errno::BADF.raw_os_error()))
        } else {
            write().err()
        };
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
            say(format_args!("{} {text}", paint(WARN, "warning:")));
        }
    }

    /// A note on stderr.
    pub(crate) fn note(&self, text: impl Display) {
        if !self.quiet {
            say(text);
        }
    }

    /// A question on stderr: somebody has to answer it, so it is always shown.
    pub(crate) fn ask(&self, question: impl Display) {
        say(paint(STRONG, question));
    }

    /// A failure on stderr: cause chain in one line, then the next step.
    pub(crate) fn error(&self, failure: &Failure) {
        say(format_args!("{} {}", paint(BAD, "error:"), one_line(&failure.error)));
        if let Some(hint) = &failure.hint {
            say(format_args!("  {} {hint}", paint(STRONG, "try:")));
        }
    }

    /// Whether progress may be drawn (stderr is a terminal and the user wants it).
    pub(crate) fn shows_progress(&self) -> bool {
        !self.quiet && std::io::stderr().is_terminal()
    }
}

/// A line on stderr. Nobody is left to be told when that fails: it changes nothing.
fn say(text: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{}", safe(&text.to_string()));
}

/// The text as one line, with nothing in it that a terminal obeys except this module's own styles: whatever a name
/// of a process or file holds, it neither moves the cursor nor begins a line that `cold` has not written.
fn safe(text: &str) -> String {
    let styles = [BAD, WARN, GOOD, STRONG, FAINT].map(|style| style.render().to_string());
    let reset = anstyle::Reset.render().to_string();
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let own = styles.iter().chain([&reset]).find(|style| rest.starts_with(style.as_str()));
        let taken = if let Some(style) = own {
            out.push_str(style);
            style.len()
        } else {
            // Writing to a String cannot fail.
            let _ = cold_model::text::put(&mut out, c);
            c.len_utf8()
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    out
}

/// JSON in which no character is left that a terminal obeys: the escapes mean the same.
fn json_text(json: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        // serde_json escapes what is below U+0020 itself; the line feeds are its own.
        if c != '\n' && cold_model::text::is_hostile(c) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// The error and its causes; a cause that an error's own text already tells is not repeated.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_styles_reach_a_terminal() {
        let own = format!("{} and {}", paint(BAD, "bad"), paint(STRONG, "strong"));
        assert_eq!(safe(&own), own);
        let foreign = "\u{1b}]0;title\u{7}\u{1b}[8mhidden\u{9b}2J\r\u{202e}x\nforged\t";
        assert_eq!(safe(foreign), "\\x1b]0;title\\x07\\x1b[8mhidden\\x9b2J\\r\\u{202e}x\\nforged\\t");
    }

    #[test]
    fn json_keeps_every_character() {
        let name = "a\u{7f}\u{9b}b\u{202e}\n";
        let text = json_text(&serde_json::to_string_pretty(&[name]).expect("text"));
        assert!(!text.chars().any(|c| c != '\n' && cold_model::text::is_hostile(c)), "{text:?}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&text).expect("JSON"), [name]);
    }
}
