//! DuckDB's command line as the engine: it is one file, and users of datasets have it.

use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cold_fleet::query::{Engine, Query, Settings, views};
use cold_model::Shown as _;
use serde_json::{Map, Value};

use crate::exit::Failure;
use crate::progress::Line;
use crate::ui::Ui;

/// A row of an answer: values by the names of columns.
pub(super) type Row = Map<String, Value>;

/// Which program that is.
#[derive(Debug, clap::Args)]
pub(super) struct Program {
    /// DuckDB's command line program
    #[arg(long, value_name = "PROGRAM", default_value = "duckdb")]
    duckdb: PathBuf,
}

impl Program {
    /// The answer to a question about the dataset at `place`.
    pub(super) fn ask(
        &self,
        place: &str,
        question: &Query,
        settings: &Settings,
        ui: &Ui,
    ) -> Result<Vec<Row>, Failure> {
        let mut line = Line::new(ui);
        line.step(&format!("asking {} for {}", self.duckdb.shown(), question.name));
        let text = format!("{}{};\n", views(place, settings, Engine::DuckDb), question.sql());
        let answer = self.run(&text);
        line.clear();
        let answer = answer?;
        // No row at all: some versions print nothing then.
        if answer.trim_ascii().is_empty() {
            return Ok(Vec::new());
        }
        serde_json::from_slice(&answer).map_err(|e| {
            let what = format!("{} answered something else than JSON rows: {e}", self.duckdb.shown());
            Failure::from(anyhow::anyhow!(what)).hint("DuckDB 1.0 and later are known to")
        })
    }

    fn run(&self, text: &str) -> Result<Vec<u8>, Failure> {
        let name = self.duckdb.shown();
        // A file of settings of whoever runs this could change the output.
        let started = Command::new(&self.duckdb)
            .args(["-json", "-bail", "-init", "/dev/null", ":memory:"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = started.map_err(|e| {
            let failure = Failure::from(anyhow::Error::new(e).context(format!("cannot start {name}")));
            failure.hint(
                "install DuckDB's command line (`pip install duckdb-cli`), name it with --duckdb, or run elsewhere \
                 what `cold fleet sql` prints",
            )
        })?;
        // It reads all of it before it answers: a few KiB, less than a pipe holds.
        let told = child.stdin.take().map_or(Ok(()), |mut to| to.write_all(text.as_bytes()));
        let done = child.wait_with_output()?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            let first = said.lines().find(|l| !l.trim().is_empty()).unwrap_or("it said nothing").shown();
            return Err(Failure::from(anyhow::anyhow!("{name} ended with {}: {first}", done.status)));
        }
        match told {
            Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(e.into()),
            _ => Ok(done.stdout),
        }
    }
}
