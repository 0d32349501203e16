//! `cold layout predict`: what an order, and the link, would bring before anybody links.

use std::path::{Path, PathBuf};

use cold_layout::advice::{LinkAdvice, of_link};
use cold_layout::predict::{CodeRead, Kernel, Prediction, predicted};
use cold_layout::scenario::Scenario;
use cold_model::linkage::Linkage;
use cold_model::order::TracedFile;
use cold_model::{Bytes, Shown as _, path_text};
use cold_sim::{LinuxVersion, Paging, Policy};
use cold_sys::page::page_size;
use cold_sys::procfs::ProcFs;
use cold_sys::sysfs::SysFs;
use serde_json::json;

use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Failure, Outcome};
use crate::table::{Table, width};
use crate::ui::Ui;

use super::choice::{Choice, Chosen};
use super::data::{self, Data};
use super::names::Names;

/// The window where no device tells its own: Linux' default.
const USUAL_KIB: u64 = 128;

/// Flags of `cold layout predict`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold layout predict search.order                        what an order would bring, and the link
  cold layout predict *.order --hold-out version          and for a start it has not seen
  cold layout predict search.order --read-ahead-kb 128    on a device with this window
  cold layout predict search.order --file libxul.so --json
  cold layout predict search.order --recording rg.cold    and which data the recorded start touched
")]
pub(crate) struct Args {
    #[command(flatten)]
    choice: Choice,

    /// Read-ahead window of the device, in KiB; by default that of the one where the file lies
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u64).range(0..=1 << 20))]
    read_ahead_kb: Option<u64>,

    /// A recording of a start of this build (best by `cold trace --exact-need`): which pages of its data are touched and
    /// written to, and the symbols on them
    #[arg(long, value_name = "NAME.cold")]
    recording: Option<PathBuf>,

    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    let chosen = args.choice.load()?;
    let kernel = kernel(&chosen.target.path, args.read_ahead_kb, ui);
    let of = |s: &Scenario| predicted(&chosen.target, &chosen.order, &s.entered, &kernel);
    let predictions: Option<Vec<Prediction>> =
        chosen.scenarios.iter().chain(&chosen.held_out).map(of).collect();
    let predictions = predictions.ok_or_else(|| {
        let path = chosen.target.path.shown();
        Failure::from(anyhow::anyhow!("{path}: its functions lie in none of its executable parts"))
            .hint("trace it again with this version of cold")
    })?;
    let linkage = linkage(&chosen.target);
    let names = Names::of(&chosen, &kernel);
    let data = args.recording.as_ref().map(|dir| data::of(dir, args.choice.traces(), &chosen.target, ui));
    let data = data.transpose()?;
    let result =
        Predicted { choice: &args.choice, chosen: &chosen, kernel, predictions, names, linkage, data };
    if args.json {
        ui.json(&result.json());
    } else {
        result.show(ui);
    }
    Ok(Exit::Done)
}

/// This kernel, and the device and the file system on which a file lies.
fn kernel(path: &Path, window_kib: Option<u64>, ui: &Ui) -> Kernel {
    let proc = ProcFs::default();
    let version = LinuxVersion::of_release(&proc.kernel_release());
    let mount = proc.mount_of(path).ok().flatten();
    let own = || {
        let device = SysFs::default().block_device(mount.as_ref()?.dev).ok().flatten();
        device.and_then(|d| d.read_ahead_kb)
    };
    let window_kib = window_kib.or_else(own).unwrap_or_else(|| {
        ui.warn(format!(
            "the window of the device with {} is unknown; {USUAL_KIB} KiB is taken, which --read-ahead-kb changes",
            path.shown()
        ));
        USUAL_KIB
    });
    Kernel {
        policy: Policy::Linux(version),
        paging: Paging::of(page_size(), cfg!(target_arch = "aarch64")),
        window: Bytes(window_kib << 10),
        large_folios: mount.as_ref().is_some_and(|m| version.has_large_folios(&m.fs_type)),
    }
}

/// `None` where the file cannot be read any more, is another build, or none of 64 bits.
fn linkage(target: &TracedFile) -> Option<Linkage> {
    let build = cold_symbols::build_id(&target.path).ok()?;
    let (file, _) = cold_sys::open::regular(&target.path, true).ok()?;
    cold_symbols::linkage(&file).filter(|_| build == target.build_id)
}

struct Predicted<'a> {
    choice: &'a Choice,
    chosen: &'a Chosen,
    kernel: Kernel,
    predictions: Vec<Prediction>,
    names: Names<'a>,
    linkage: Option<Linkage>,
    data: Option<Data>,
}

impl Predicted<'_> {
    /// Each scenario with whether it was held out.
    fn scenarios(&self) -> impl Iterator<Item = (&Scenario, bool, &Prediction)> {
        let seen = self.chosen.scenarios.iter().map(|s| (s, false));
        let all = seen.chain(self.chosen.held_out.iter().map(|s| (s, true)));
        all.zip(&self.predictions).map(|((s, held_out), p)| (s, held_out, p))
    }

    fn show(&self, ui: &Ui) {
        let target = &self.chosen.target;
        ui.line(format!(
            "{}: {} of {} functions in the order; code as {} reads it with a window of {}",
            target.path.shown(),
            self.chosen.order.len(),
            target.functions.len(),
            self.kernel.policy,
            self.kernel.window
        ));
        for (scenario, held_out, p) in self.scenarios() {
            let mark = if held_out { ", held out" } else { "" };
            ui.line(String::new());
            ui.line(format!("{}{mark}: enters {} functions", scenario.name.shown(), scenario.entered.len()));
            let mut table = Table::new(&["PAGES", "REQUESTS", "READ", "CODE"]);
            let row = |r: CodeRead, name: &str| {
                vec![r.touched.to_string(), r.requests.to_string(), r.read.to_string(), name.to_owned()]
            };
            table.row(row(p.today, "as it is linked"), Vec::new());
            table.row(row(p.ordered, "in the order"), Vec::new());
            table.row(row(p.alone, "in the order of this start alone"), Vec::new());
            table.row(row(p.random, "in random order"), Vec::new());
            table.row(row(p.least, "at least, in whatever order"), Vec::new());
            for line in table.lines(width()) {
                ui.line(line);
            }
        }
        self.names.show(ui);
        self.show_link(ui);
        if let Some(data) = &self.data {
            data.show(ui);
        }
        ui.line(String::new());
        ui.line(format!("next: cold layout order {} -o ORDER.txt", self.choice.line()));
    }

    fn show_link(&self, ui: &Ui) {
        let Some(linkage) = &self.linkage else {
            ui.warn("how it was linked is unknown: the file is gone, another build than the traced one, or no program of 64 bits");
            return;
        };
        ui.line(String::new());
        if !linkage.dynamic {
            ui.line(
                "linked statically: no loader relocates it; what its own start code does is not looked at"
                    .to_owned(),
            );
            return;
        }
        ui.line(format!(
            "relocations: {} relative ({} packed), {} by symbol, {} of functions ({}), {} by a function; tables {}, \
             {} pages written, {} of them constant afterwards (.data.rel.ro)",
            linkage.relative,
            linkage.packed,
            linkage.symbolic,
            linkage.jump_slots,
            if linkage.bind_now { "at the start" } else { "at the first call" },
            linkage.by_function,
            Bytes(linkage.table_bytes),
            linkage.written_pages,
            linkage.constant_after
        ));
        let advice = of_link(linkage, &self.chosen.target);
        if advice.is_empty() {
            ui.line("no other flag of the linker would save anything".to_owned());
        }
        let is_advised = !advice.is_empty();
        for LinkAdvice { flags, pages, why } in advice {
            let saved = if pages > 0 { format!("up to {pages} pages less. ") } else { String::new() };
            ui.line(format!("  {flags}: {saved}{why}"));
        }
        if is_advised {
            ui.line(
                "  a flag goes into the build that is linked in the order: cold layout link … -- cargo rustc --release -- \
                 -Clink-arg=FLAG; others than cargo have LDFLAGS"
                    .to_owned(),
            );
        }
    }

    fn json(&self) -> serde_json::Value {
        let read =
            |r: &CodeRead| json!({ "pages": r.touched, "requests": r.requests, "read_bytes": r.read.0 });
        let scenario = |(s, held_out, p): (&Scenario, bool, &Prediction)| {
            json!({
                "scenario": s.name, "held_out": held_out, "functions": s.entered.len(), "today": read(&p.today),
                "ordered": read(&p.ordered), "alone": read(&p.alone), "random": read(&p.random),
                "least": read(&p.least),
            })
        };
        let link = self.linkage.as_ref().map(|l| {
            let advice = |a: &LinkAdvice| json!({ "flags": a.flags, "pages": a.pages, "why": a.why });
            json!({
                "relative": l.relative, "packed": l.packed, "symbolic": l.symbolic, "jump_slots": l.jump_slots,
                "by_function": l.by_function, "table_bytes": l.table_bytes, "written_pages": l.written_pages,
                "constant_after": l.constant_after,
                "dynamic": l.dynamic, "bind_now": l.bind_now, "position_independent": l.position_independent,
                "advice": of_link(l, &self.chosen.target).iter().map(advice).collect::<Vec<_>>(),
            })
        });
        json!({
            "schema": "coldstart.layout-predict/1",
            "file": path_text::encode(&self.chosen.target.path),
            "functions": self.chosen.target.functions.len(), "ordered": self.chosen.order.len(),
            "policy": self.kernel.policy.to_string(), "window_bytes": self.kernel.window.0,
            "scenarios": self.scenarios().map(scenario).collect::<Vec<_>>(),
            "names": self.names.json(),
            "link": link,
            "data": self.data.as_ref().map(Data::sections),
        })
    }
}
