//! What a waiting person sees: one moving line on a terminal, nothing elsewhere.

use std::time::Duration;

use cold_bench::config::Config;
use cold_bench::diagnose::taints;
use cold_bench::session::Progress;
use cold_model::Shown as _;
use cold_model::bench::{Report, Run};
use indicatif::ProgressBar;

use crate::ui::Ui;

/// Shows steps and results as they come.
pub(crate) struct Shown<'a> {
    ui: &'a Ui,
    bar: ProgressBar,
}

impl<'a> Shown<'a> {
    /// A line that is drawn only on a terminal.
    pub(crate) fn new(ui: &'a Ui, config: &Config) -> Self {
        let total = u64::from(config.runs.min_runs) * (config.commands.len() * config.states.len()) as u64;
        Self { ui, bar: crate::progress::bar(ui, Some(total), "{spinner} [{pos}/{len}] {msg}") }
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Shown<'_> {
    fn step(&mut self, what: &str) {
        // Drawn here and not by a ticking thread: `cold` stays quiet while a start is measured.
        self.bar.set_message(what.shown().to_string());
        self.bar.tick();
    }

    fn run_done(&mut self, report: &Report, run: &Run) {
        if run.counts() {
            self.bar.inc(1);
            return;
        }
        let name = report.series_name(run.series);
        let why: Vec<String> = run.taints.iter().map(taints::words).collect();
        let line = format!(
            "{name}: {:.3} s does not count: {}",
            Duration::from(run.ready).as_secs_f64(),
            why.join("; ")
        );
        self.bar.suspend(|| self.ui.note(line));
    }

    fn warn(&mut self, what: &str) {
        self.bar.suspend(|| self.ui.warn(what));
    }
}
