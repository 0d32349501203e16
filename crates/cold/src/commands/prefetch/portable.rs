//! `cold prefetch export`, `import`: a plan as text, from one machine to another.

use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_plan::portable::{Error, MAX_BYTES};

use super::plans::{self, StorePlace, Which};
use super::{device, show};
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
    /// A file that `cold prefetch export` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
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
    let imported = cold_plan::portable::import(&text(&args.file)?, &build_id)
        .map_err(|e| Failure::from(anyhow::anyhow!("{}: {e}", args.file.shown())))?;
    let mut plan = imported.plan;
    let mut line = Line::new(ui);
    device::compile(&mut plan, None, &place.state()?, &mut line, ui);
    line.clear();
    let path = store.save(&plan)?;
    for dropped in &imported.dropped {
        ui.note(paint(FAINT, format!("  left out: {}: {}", dropped.path.shown(), dropped.why)));
    }
    let left = plural(imported.dropped.len() as u64, "file");
    ui.line(format!("imported {} ({}); {left} left out", plans::name(&path), plans::what(&plan.key)));
    ui.line(format!("  {}", show::contents(&plan)));
    Ok(Exit::Done)
}

fn text(path: &Path) -> Result<String, Failure> {
    let (mut file, meta) = cold_sys::open::regular(path, true)?;
    if meta.len() > MAX_BYTES as u64 {
        return Err(Failure::usage(format!("{}: {}", path.shown(), Error::TooLarge)));
    }
    let mut text = String::new();
    std::io::Read::read_to_string(&mut file, &mut text)
        .map_err(|e| anyhow::anyhow!("cannot read {}: {e}", path.shown()))?;
    Ok(text)
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
        let refused = text(&path).expect_err("too large");
        assert!(refused.error.to_string().contains("longer than 1024 MiB"), "{}", refused.error);
    }
}
