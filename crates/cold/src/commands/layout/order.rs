//! `cold layout order`: traces into an order file.

use std::path::PathBuf;

use cold_bench::command::line_of;
use cold_layout::gain;
use cold_layout::resolve::Resolver;
use cold_layout::scenario::Scenario;
use cold_layout::write::{Format, PROFILE_USAGE, temporal_profile, written};
use cold_model::order::{Function, TracedFile};
use cold_model::{Shown as _, path_text};
use serde_json::json;

use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Outcome};
use crate::results;
use crate::ui::Ui;

use super::choice::{Choice, Chosen};
use super::names;

/// Flags of `cold layout order`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold layout order rg.order -o rg.txt                               for lld (rustc on x86-64 Linux)
  cold layout order search.order version.order --format gold -o rg.sections
  cold layout order old.order --binary target/release/rg -o rg.txt   what of an old order holds
  cold layout order *.order --hold-out version                       and for a start it has not seen
")]
pub(crate) struct Args {
    #[command(flatten)]
    choice: Choice,

    /// Write the order file here; without it only the figures are shown
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Linker that the file is for; `lld-profile`: what each scenario enters, from which lld (LLVM 21) makes the order
    /// by balanced partitioning, instead of an order
    #[arg(long, value_name = "LINKER", default_value = "lld")]
    #[arg(value_parser = ["lld", "lld-profile", "gold", "gnu", "apple", "msvc", "bolt"])]
    format: String,

    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    if let Some(path) = &args.output {
        results::check(path)?;
    }
    let chosen = args.choice.load()?;
    let unnamed = chosen.unnamed();
    let Chosen { target, scenarios, held_out, order, entered: _ } = chosen;
    let resolver = Resolver::new(&target.functions);
    let result = Made { args, target: &target, resolver: &resolver, scenarios, held_out, order, unnamed };
    if args.json {
        ui.json(&result.json());
    } else {
        result.show(ui);
    }
    if let Some(path) = &args.output {
        let functions: Vec<&Function> = result.functions().collect();
        let text = match format(&args.format) {
            Some(format) => written(&functions, format),
            None => temporal_profile(&result.entered()),
        };
        results::save(path, text)?;
    }
    Ok(Exit::Done)
}

/// `None`: no order, but the profile from which lld makes one.
fn format(name: &str) -> Option<Format> {
    Some(match name {
        "lld-profile" => return None,
        "gold" => Format::Gold,
        "gnu" => Format::Gnu,
        "apple" => Format::Apple,
        "msvc" => Format::Msvc,
        "bolt" => Format::Bolt,
        _ => Format::Lld,
    })
}

/// The order with its figures.
struct Made<'a> {
    args: &'a Args,
    target: &'a TracedFile,
    resolver: &'a Resolver<'a>,
    scenarios: Vec<Scenario>,
    held_out: Option<Scenario>,
    order: Vec<u32>,
    /// Functions that scenarios enter and no order file can name.
    unnamed: usize,
}

impl Made<'_> {
    fn functions(&self) -> impl Iterator<Item = &Function> {
        self.order.iter().filter_map(|n| self.target.functions.get(*n as usize))
    }

    /// What each scenario enters.
    fn entered(&self) -> Vec<Vec<&Function>> {
        let functions = &self.target.functions;
        let of = |s: &Scenario| s.entered.iter().filter_map(|n| functions.get(*n as usize)).collect();
        self.scenarios.iter().map(of).collect()
    }

    fn bytes(&self) -> u64 {
        self.functions().fold(0, |sum, f| sum.saturating_add(f.bytes))
    }

    fn gain(&self, scenario: &Scenario) -> gain::Gain {
        gain::of(&self.target.functions, &self.order, &scenario.entered)
    }

    fn show(&self, ui: &Ui) {
        ui.line(format!(
            "{}: {} of {} functions in the order, {}",
            self.target.path.shown(),
            self.order.len(),
            self.target.functions.len(),
            cold_model::Bytes(self.bytes())
        ));
        let held_out = self.held_out.iter().map(|s| (s, ", held out"));
        for (scenario, mark) in self.scenarios.iter().map(|s| (s, "")).chain(held_out) {
            let g = self.gain(scenario);
            ui.line(format!(
                "  {}{mark}: enters {}, {} of them in the order; pages of code {} today, {} ordered, {} at least",
                scenario.name, g.entered, g.named, g.today, g.ordered, g.least
            ));
            let r = scenario.resolved;
            if r.by_address < r.all() {
                ui.line(format!(
                    "    of another build: {} of {} found by name, {} by name without hashes, {} not at all",
                    r.by_name,
                    r.all(),
                    r.without_hash,
                    r.missing
                ));
            }
        }
        if self.unnamed > 0 {
            ui.warn(format!(
                "{} more that are entered have no name, and no order file can place them: {}",
                self.unnamed,
                names::advice(self.target, names::search(self.target).as_ref())
            ));
        }
        let ambiguous = self.resolver.ambiguous(&self.order);
        if ambiguous > 0 {
            ui.warn(format!(
                "{ambiguous} names stand for more than one function each, and linkers place all of them: with \
                 codegen-units=1 or LTO there are fewer"
            ));
        }
        let place = self.args.output.as_ref().map_or_else(|| "FILE".to_owned(), |p| p.shown().to_string());
        ui.line(format!(
            "link with: {}",
            format(&self.args.format).map_or(PROFILE_USAGE, Format::usage).replace("FILE", &place)
        ));
        if format(&self.args.format) == Some(Format::Lld) {
            ui.line(match &self.args.output {
                Some(path) => format!(
                    "next: cold layout link --order {} --keep-old PROGRAM.old -- BUILD, your command that builds it",
                    line_of(&[path.clone().into_os_string()])
                ),
                None => format!("next: cold layout order {} -o ORDER.txt", self.args.choice.line()),
            });
        }
    }

    fn json(&self) -> serde_json::Value {
        let scenario = |s: &Scenario| {
            let (g, r) = (self.gain(s), s.resolved);
            json!({
                "scenario": s.name, "functions": g.entered, "in_order": g.named, "pages_today": g.today,
                "pages_ordered": g.ordered, "pages_least": g.least, "by_address": r.by_address,
                "by_name": r.by_name, "without_hash": r.without_hash, "missing": r.missing,
            })
        };
        json!({
            "schema": "coldstart.layout-order/1",
            "file": path_text::encode(&self.target.path),
            "functions": self.target.functions.len(), "ordered": self.order.len(), "bytes": self.bytes(),
            "unnamed": self.unnamed,
            "ambiguous_names": self.resolver.ambiguous(&self.order),
            "scenarios": self.scenarios.iter().map(scenario).collect::<Vec<_>>(),
            "held_out": self.held_out.as_ref().map(scenario),
        })
    }
}
