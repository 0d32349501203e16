//! `cold layout order`: traces into an order file.

use std::path::{Path, PathBuf};

use cold_layout::merge::{Algorithm, concatenated, merged};
use cold_layout::resolve::{Resolved, Resolver};
use cold_layout::write::{Format, PROFILE_USAGE, temporal_profile, written};
use cold_layout::{functions, gain};
use cold_model::order::{Function, Trace, TracedFile};
use cold_model::{Shown as _, path_text};
use serde_json::json;

use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Failure, Outcome};
use crate::results;
use crate::ui::Ui;

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
    /// Traces by `cold layout trace`, the most important scenario first
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    /// Write the order file here; without it only the figures are shown
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Linker that the file is for; `lld-profile`: what each scenario enters, from which lld (LLVM 21) makes the order
    /// by balanced partitioning, instead of an order
    #[arg(long, value_name = "LINKER", default_value = "lld")]
    #[arg(value_parser = ["lld", "lld-profile", "gold", "gnu", "apple", "msvc", "bolt"])]
    format: String,

    /// How scenarios are merged: `first-touch` in their order, `frequency` what most of them enter first
    #[arg(long, value_name = "HOW", default_value = "first-touch", value_parser = ["first-touch", "frequency"])]
    merge: String,

    /// File of the traces to order, by its path or name; by default the program
    #[arg(long, value_name = "FILE")]
    file: Option<String>,

    /// Program that will be linked with the order, or the traced one with its symbols: functions are found in it by
    /// address where the build is the same, else by name, else by name without hashes
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,

    /// Leave this scenario out of the order, and say what the order does for it
    #[arg(long, value_name = "SCENARIO")]
    hold_out: Option<String>,

    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// A scenario as indices of the functions of the program that is ordered.
struct Scenario {
    name: String,
    entered: Vec<u32>,
    resolved: Resolved,
}

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    if let Some(path) = &args.output {
        results::check(path)?;
    }
    let traces = args.traces.iter().map(|dir| cold_recording::order::read(dir).map_err(Failure::from));
    let traces: Vec<Trace> = traces.collect::<Result<_, _>>()?;
    let named = traces.first().and_then(|t| chosen(t, args.file.as_deref()));
    let named = named.ok_or_else(|| Failure::usage("the first trace has no such file; --file names one"))?;
    let path = named.path.clone();
    let target = match &args.binary {
        Some(binary) => read(binary)?,
        None => named.clone(),
    };
    let resolver = Resolver::new(&target.functions);
    let mut scenarios: Vec<Scenario> = Vec::new();
    for trace in &traces {
        let Scenario { name, entered, resolved } = scenario(trace, &path, &target, &resolver);
        match scenarios.iter_mut().find(|s| s.name == name) {
            Some(known) => {
                known.entered = concatenated([known.entered.as_slice(), &entered]);
                known.resolved = known.resolved.and(resolved);
            }
            None => scenarios.push(Scenario { name, entered, resolved }),
        }
    }
    let held_out = args.hold_out.as_ref().map(|name| {
        let at = scenarios.iter().position(|s| s.name == *name);
        at.map(|at| scenarios.remove(at))
            .ok_or_else(|| Failure::usage(format!("no trace is of scenario {name}")))
    });
    let held_out = held_out.transpose()?;
    let algorithm = if args.merge == "frequency" { Algorithm::Frequency } else { Algorithm::FirstTouch };
    let lists: Vec<Vec<u32>> = scenarios.iter().map(|s| s.entered.clone()).collect();
    let entered = merged(&lists, algorithm);
    if entered.is_empty() {
        return Err(Failure::from(anyhow::anyhow!(
            "none of the functions entered is in {}",
            target.path.shown()
        )));
    }
    // An order file says names: what has none stays where it is.
    let has_name = |n: &u32| target.functions.get(*n as usize).is_some_and(|f| f.name().is_some());
    let (order, unnamed): (Vec<u32>, Vec<u32>) = entered.into_iter().partition(has_name);
    if order.is_empty() {
        let why = anyhow::anyhow!("{} is stripped: an order file needs names", target.path.shown());
        return Err(Failure::from(why).hint("--binary FILE with its symbols, from the same build"));
    }
    let unnamed = unnamed.len();
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

/// The file that is named; else the program, of which a start enters most (a script's interpreter, a wrapper's child).
fn chosen<'a>(trace: &'a Trace, name: Option<&str>) -> Option<&'a TracedFile> {
    if let Some(name) = name {
        let name = path_text::decode(name);
        return trace.files.iter().find(|f| f.path == name || f.path.file_name() == Some(name.as_os_str()));
    }
    let entries = |n: usize| {
        let all = trace.repeats.iter().flat_map(|r| &r.entries);
        all.filter(|e| e.file as usize == n).count()
    };
    let programs = trace.files.iter().enumerate().filter(|(_, f)| f.linked != "library");
    programs.max_by_key(|(n, _)| entries(*n)).map(|(_, f)| f)
}

fn read(path: &Path) -> Result<TracedFile, Failure> {
    let (file, meta) = cold_sys::open::regular(path, true)?;
    let read = cold_symbols::functions(file, meta, path, &cold_symbols::Options::default())?;
    Ok(functions::traced(read, path))
}

/// What a trace says of `path`, as functions of `target`; repeats one after the other.
fn scenario(trace: &Trace, path: &Path, target: &TracedFile, resolver: &Resolver<'_>) -> Scenario {
    let mut resolved = Resolved::default();
    let mut lists = Vec::new();
    for (file, n) in trace.files.iter().zip(0_u32..) {
        let is_it = file.path == path || file.build_id.is_some() && file.build_id == target.build_id;
        let is_same =
            file.functions == target.functions || file.build_id.is_some() && file.build_id == target.build_id;
        if !is_it {
            continue;
        }
        let entries =
            trace.repeats.iter().map(|r| r.entries.iter().filter(|e| e.file == n).map(|e| e.function));
        let entered: Vec<Vec<u32>> = entries.map(Iterator::collect).collect();
        let mut list = Vec::new();
        for function in concatenated(entered.iter().map(Vec::as_slice)) {
            let Some(f) = file.functions.get(function as usize) else { continue };
            match resolver.at(f.address).filter(|_| is_same) {
                Some(at) => {
                    resolved.by_address = resolved.by_address.saturating_add(1);
                    list.push(at);
                }
                None => list.extend_from_slice(resolver.find(f, &mut resolved)),
            }
        }
        lists.push(list);
    }
    Scenario {
        name: trace.scenario.clone(),
        entered: concatenated(lists.iter().map(Vec::as_slice)),
        resolved,
    }
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
                "{} more that are entered have no name, and no order file can place them: give the same build with \
                 its symbols (--binary FILE), or install its debug symbols",
                self.unnamed
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
