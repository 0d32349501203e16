//! Which traces are looked at, of which file, and what order they give.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cold_bench::command::line_of;
use cold_layout::functions;
use cold_layout::merge::{Algorithm, merged, nameable};
use cold_layout::resolve::Resolver;
use cold_layout::scenario::{self, Scenario};
use cold_model::order::{Trace, TracedFile};
use cold_model::{Shown as _, path_text};

use crate::exit::Failure;

use super::names;

/// The usual way of merging.
const FIRST_TOUCH: &str = "first-touch";

/// Flags of the commands that make an order of traces.
#[derive(Debug, clap::Args)]
pub(super) struct Choice {
    /// Traces by `cold layout trace`, the most important scenario first
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    /// How scenarios are merged: `first-touch` in their order, `frequency` what most of them enter first
    #[arg(long, value_name = "HOW", default_value = FIRST_TOUCH, value_parser = [FIRST_TOUCH, "frequency"])]
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
}

/// What the traces come to.
pub(super) struct Chosen {
    /// The program that is ordered.
    pub(super) target: TracedFile,
    pub(super) scenarios: Vec<Scenario>,
    /// One that the order has not seen.
    pub(super) held_out: Option<Scenario>,
    /// Indices of functions of the program.
    pub(super) order: Vec<u32>,
    /// What the scenarios enter as it was merged, with what no order file can name.
    pub(super) entered: Vec<u32>,
}

impl Chosen {
    /// Functions that scenarios enter and no order file can name.
    pub(super) fn unnamed(&self) -> usize {
        self.entered.len().saturating_sub(self.order.len())
    }
}

impl Choice {
    /// The directories of the traces.
    pub(super) fn traces(&self) -> &[PathBuf] {
        &self.traces
    }

    /// The flags as they are typed.
    pub(super) fn line(&self) -> String {
        let mut words: Vec<OsString> = self.traces.iter().map(|t| t.clone().into_os_string()).collect();
        let mut flag = |name: &str, value: OsString| words.extend([name.into(), value]);
        if self.merge != FIRST_TOUCH {
            flag("--merge", (&self.merge).into());
        }
        for (name, value) in [("--file", &self.file), ("--hold-out", &self.hold_out)] {
            if let Some(value) = value {
                flag(name, value.into());
            }
        }
        if let Some(binary) = &self.binary {
            flag("--binary", binary.into());
        }
        line_of(&words)
    }

    /// Reads the traces and merges them.
    pub(super) fn load(&self) -> Result<Chosen, Failure> {
        let traces = self.traces.iter().map(|dir| cold_recording::order::read(dir).map_err(Failure::from));
        let traces: Vec<Trace> = traces.collect::<Result<_, _>>()?;
        let named = traces.first().and_then(|t| chosen(t, self.file.as_deref()));
        let named = named.ok_or_else(|| no_such_file(traces.first()))?;
        let path = named.path.clone();
        let target = match &self.binary {
            Some(binary) => read(binary)?,
            None => named.clone(),
        };
        let resolver = Resolver::new(&target.functions);
        let mut scenarios = scenario::all(&traces, &path, &target, &resolver);
        let held_out = self.hold_out.as_ref().map(|name| {
            let at = scenarios.iter().position(|s| s.name == *name);
            at.map(|at| scenarios.remove(at)).ok_or_else(|| {
                let known: Vec<&str> = scenarios.iter().map(|s| s.name.as_str()).collect();
                Failure::usage(format!("no trace is of scenario {name}"))
                    .hint(format!("there are: {}", known.join(", ")))
            })
        });
        let held_out = held_out.transpose()?;
        if scenarios.is_empty() {
            let why = "the only scenario is held out, so nothing is left to make an order of";
            return Err(Failure::usage(why).hint("trace another one, and give both traces"));
        }
        let algorithm = if self.merge == "frequency" { Algorithm::Frequency } else { Algorithm::FirstTouch };
        let lists: Vec<Vec<u32>> = scenarios.iter().map(|s| s.entered.clone()).collect();
        let entered = merged(&lists, algorithm);
        if entered.is_empty() {
            return Err(Failure::from(anyhow::anyhow!(
                "none of the functions entered is in {}",
                target.path.shown()
            )));
        }
        let order = nameable(&entered, &target.functions);
        if order.is_empty() {
            let why = anyhow::anyhow!("{} is stripped: an order file needs names", target.path.shown());
            return Err(Failure::from(why).hint(names::advice(&target, names::search(&target).as_ref())));
        }
        Ok(Chosen { target, scenarios, held_out, order, entered })
    }
}

/// The file that is named; else the program.
fn chosen<'a>(trace: &'a Trace, name: Option<&str>) -> Option<&'a TracedFile> {
    match name {
        Some(name) => scenario::named(trace, &path_text::decode(name)),
        None => scenario::program(trace),
    }
}

fn no_such_file(trace: Option<&Trace>) -> Failure {
    let paths: Vec<String> =
        trace.iter().flat_map(|t| &t.files).map(|f| f.path.shown().to_string()).collect();
    Failure::usage("the first trace has no such file; --file names one")
        .hint(format!("there are: {}", paths.join(", ")))
}

fn read(path: &Path) -> Result<TracedFile, Failure> {
    let (file, meta) = cold_sys::open::regular(path, true)?;
    // What lies beside it, and on which device, is looked for by its whole path.
    let path = std::path::absolute(path)?;
    let read = cold_symbols::functions(file, meta, &path, &cold_symbols::Options::default())?;
    Ok(functions::traced(read, &path))
}
