//! `cold prefetch export`, `import`: a plan as text, from one machine to another.

use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_plan::portable::{Error, MAX_BYTES};

use super::plans::{self, StorePlace, Which};
use super::{device, show, windows};
use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Failure, Outcome};
use crate::progress::Line;
use crate::results;
use crate::ui::{FAINT, Ui, paint};
use crate::words::plural;

const EXPORT_EXAMPLES: &str = "Examples:
  cold prefetch export firefox-esr > firefox.plan.json
  cold prefetch export -o app.plan.json -- python3 app.py
";
const IMPORT_EXAMPLES: &str = "Examples:
  cold prefetch import firefox.plan.json
  cold prefetch import APP.EXE-1B2C3D4E.pf --root ~/.wine/drive_c -- wine app.exe
  cold prefetch import APP.EXE-1B2C3D4E.pf --root /mnt/c        for the program itself
";

/// Flags of `cold prefetch export`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXPORT_EXAMPLES, after_help = EXIT_CODES)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    which: Which,

    /// File to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Flags of `cold prefetch import`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = IMPORT_EXAMPLES, after_help = EXIT_CODES)]
pub(crate) struct ImportArgs {
    /// A file that `cold prefetch export` wrote, or a prefetch file of Windows (.pf)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Of a prefetch file: the directory that stands for the program's drive; names are found whatever their case
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,

    /// Of a prefetch file: name for this way of starting the program [default: derived from the arguments]
    #[arg(long, value_name = "NAME", requires = "root")]
    scenario: Option<String>,

    /// Of a prefetch file: the command that the plan is for [default: the program that the file names]
    #[arg(last = true, value_name = "CMD ARG", requires = "root")]
    argv: Vec<std::ffi::OsString>,
}

/// Writes the plan as JSON.
pub(crate) fn export(args: &ExportArgs, place: &StorePlace, ui: &Ui) -> Outcome {
    let listed = args.which.find(&place.store()?)?;
    let text = cold_plan::portable::export(&listed.plan)?;
    match &args.output {
        None => ui.json_text(&text),
        Some(path) => results::save(path, text + "\n")?,
    }
    Ok(Exit::Done)
}

/// Makes a plan of this machine of it: identities are those of the files here, steps those for the device here.
pub(crate) fn import(args: &ImportArgs, place: &StorePlace, ui: &Ui) -> Outcome {
    let store = place.store()?;
    store.recognise()?;
    let build_id = |path: &Path| Some(plans::build_id(path)).filter(|id| *id != [0; 20]);
    let bytes = contents(&args.file)?;
    let of_file = |e: anyhow::Error| Failure::from(e.context(args.file.shown().to_string()));
    let (mut plan, dropped): (_, Vec<(String, String)>) =
        match (&args.root, cold_windows::pf::is_prefetch(&bytes)) {
            (Some(root), true) => {
                let mapped = windows::plan(&bytes, root, &args.argv, args.scenario.as_deref())?;
                (mapped.plan, mapped.dropped)
            }
            (None, true) => {
                let what = format!("{} is a prefetch file of Windows", args.file.shown());
                return Err(Failure::usage(what).hint("--root DIR: the directory that stands for its drive"));
            }
            (Some(_), false) => {
                return Err(Failure::usage(format!("--root: {} is no prefetch file", args.file.shown())));
            }
            (None, false) => {
                let text = String::from_utf8(bytes).map_err(|e| of_file(e.into()))?;
                let imported =
                    cold_plan::portable::import(&text, &build_id).map_err(|e| of_file(e.into()))?;
                let dropped =
                    imported.dropped.iter().map(|d| (d.path.shown().to_string(), d.why.to_string()));
                (imported.plan, dropped.collect())
            }
        };
    let mut line = Line::new(ui);
    device::compile(&mut plan, None, &place.state()?, &mut line, ui);
    line.clear();
    let path = store.save(&plan)?;
    for (path, why) in &dropped {
        ui.note(paint(FAINT, format!("  left out: {}: {}", path.as_str().shown(), why.as_str().shown())));
    }
    let left = plural(dropped.len() as u64, "file");
    ui.line(format!("imported {} ({}); {left} left out", plans::name(&path), plans::what(&plan.key)));
    ui.line(format!("  {}", show::contents(&plan)));
    Ok(Exit::Done)
}

fn contents(path: &Path) -> Result<Vec<u8>, Failure> {
    let (file, _) = cold_sys::open::regular(path, true)?;
    let bytes = cold_sys::open::content(&file, MAX_BYTES as u64)
        .map_err(|e| anyhow::anyhow!("cannot read {}: {e}", path.shown()))?;
    bytes.ok_or_else(|| Failure::usage(format!("{}: {}", path.shown(), Error::TooLarge)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_refused_unread_by_the_library_s_own_bound() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("plan");
        let file = std::fs::File::create(&path).expect("made");
        file.set_len(MAX_BYTES as u64 + 1).expect("sparse");
        let refused = contents(&path).expect_err("too large");
        assert!(refused.error.to_string().contains("longer than 1024 MiB"), "{}", refused.error);
    }
}
