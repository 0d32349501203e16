//! One moving line for a waiting person, on a terminal only.

use cold_bench::session::Progress;
use cold_model::Shown as _;
use cold_model::bench::{Report, Run};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::ui::Ui;

/// A bar that is drawn only on a terminal; `template`, a constant, is indicatif's.
pub(crate) fn bar(ui: &Ui, total: Option<u64>, template: &str) -> ProgressBar {
    let target =
        if ui.shows_progress() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(total, target);
    // Never fails: the templates are constants, and tests draw them.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// Shows the step that is being done.
pub(crate) struct Line<'a> {
    ui: &'a Ui,
    bar: ProgressBar,
}

impl<'a> Line<'a> {
    /// A line that is drawn only on a terminal.
    pub(crate) fn new(ui: &'a Ui) -> Self {
        Self { ui, bar: bar(ui, None, "{spinner} {msg}") }
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Names the step that begins and draws the line once.
    pub(crate) fn step(&mut self, what: &str) {
        // Drawn here and not by a ticking thread: `cold` stays quiet while a start is measured.
        self.bar.set_message(what.shown().to_string());
        self.bar.tick();
    }
}

impl Progress for Line<'_> {
    fn step(&mut self, what: &str) {
        Line::step(self, what);
    }
    fn run_done(&mut self, _report: &Report, _run: &Run) {}
    fn warn(&mut self, what: &str) {
        self.bar.suspend(|| self.ui.warn(what));
    }
}
