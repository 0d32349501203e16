//! `cold prefetch export`, `import`: a plan as text, from one machine to another or into an image.

use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_plan::portable::{Dropped, Error, MAX_BYTES, Others};
use cold_prefetch::export::{Format, PagesWanted};

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
  cold prefetch export app --format nydus --image-root /srv/rootfs -o prefetch.json
  cold prefetch export start.cold --format squashfs-sort -o sort.txt    of a recording
  cold prefetch export vm.cold --format reap --file memory.bin -o trace
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

    /// What to write
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Form::Plan)]
    format: Form,

    /// Directory that is the root of the image: names begin there, files elsewhere are left out
    #[arg(long, value_name = "DIR")]
    image_root: Option<PathBuf>,

    /// Only the files with this text in their path
    #[arg(long = "file", value_name = "TEXT")]
    only: Option<String>,

    /// File to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What an export is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// Another machine's `cold prefetch import`
    Plan,
    /// Nydus (nydus-image optimize, 2.3.7 and later): ranges
    Nydus,
    /// eStargz (ctr-remote image convert): files in order
    Estargz,
    /// SOCI (soci create): files
    Soci,
    /// overlaybd (its ctr record-trace): files
    OverlaybdList,
    /// SquashFS (mksquashfs -sort): files with priorities
    SquashfsSort,
    /// The trace of a memory file for REAP (vHive): page offsets
    Reap,
    /// Ranges in the order of need, with names
    RangesJson,
    /// The same as CSV
    RangesCsv,
}

impl Form {
    /// One document of JSON, in which control characters can be escaped for a terminal.
    fn is_json(self) -> bool {
        matches!(self, Self::Plan | Self::Nydus | Self::Soci | Self::RangesJson)
    }

    fn format(self) -> Option<Format> {
        Some(match self {
            Self::Plan => return None,
            Self::Nydus => Format::Nydus,
            Self::Estargz => Format::Estargz,
            Self::Soci => Format::Soci,
            Self::OverlaybdList => Format::OverlaybdList,
            Self::SquashfsSort => Format::SquashfsSort,
            Self::Reap => Format::Reap,
            Self::RangesJson => Format::RangesJson,
            Self::RangesCsv => Format::RangesCsv,
        })
    }
}

/// Flags of `cold prefetch import`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = IMPORT_EXAMPLES, after_help = EXIT_CODES)]
pub(crate) struct ImportArgs {
    /// A file that `cold prefetch export` wrote, or a prefetch file of Windows (.pf)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Leave out files of which this machine has another build; without this their pages are read where the other
    /// build had them, unless the sizes differ by more than an eighth
    #[arg(long, conflicts_with = "root")]
    same_builds: bool,

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

/// Writes the plan, or what it or a recording needs, in the form that is asked for.
pub(crate) fn export(args: &ExportArgs, place: &StorePlace, ui: &Ui) -> Outcome {
    if let Some(path) = &args.output {
        results::check(path)?;
    }
    let recording = args.which.recording();
    let Some(format) = args.format.format() else {
        if args.image_root.is_some() || args.only.is_some() || recording.is_some() {
            let what =
                "a recording, --image-root and --file are for the other formats: name one with --format";
            return Err(Failure::usage(what));
        }
        let listed = args.which.find(&place.store()?)?;
        return save(args, cold_plan::portable::export(&listed.plan, &plans::sections)? + "\n", ui);
    };
    let wanted = match recording {
        Some(dir) => {
            let mut line = Line::new(ui);
            let raw = crate::commands::report::load::raw(dir, &mut line)?;
            line.clear();
            raw.warnings.iter().for_each(|w| ui.warn(w));
            PagesWanted::of_recording(&raw.recording)
        }
        None => PagesWanted::of_plan(&args.which.find(&place.store()?)?.plan),
    };
    let wanted = match &args.image_root {
        Some(root) => {
            let found = root.canonicalize();
            wanted.below(&found.map_err(|e| Failure::usage(format!("--image-root {}: {e}", root.shown())))?)
        }
        None => wanted,
    };
    let wanted = args.only.iter().fold(wanted, |w, text| w.only(text));
    let written = format.write(&wanted)?;
    save(args, written.text, ui)?;
    let left_out =
        [(wanted.outside, "outside of the image"), (wanted.nameless, "deleted, or of unknown name")];
    for (n, why) in left_out.into_iter().filter(|(n, _)| *n > 0) {
        ui.note(format!("{} left out: {why}", plural(n, "file")));
    }
    for l in &written.left_out {
        let (n, example) = (plural(l.files, "file"), l.example.as_str().shown());
        ui.note(format!("{n} left out: {} ({example})", l.why));
    }
    if args.output.is_some() {
        ui.line(plural(written.files, "file"));
    }
    Ok(Exit::Done)
}

fn save(args: &ExportArgs, text: String, ui: &Ui) -> Outcome {
    match &args.output {
        None if args.format.is_json() => ui.json_text(text.trim_end()),
        None => ui.bytes(text.as_bytes()),
        Some(path) => results::save(path, text)?,
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
    let (mut plan, dropped, carried): (_, Vec<(String, String)>, _) =
        match (&args.root, cold_windows::pf::is_prefetch(&bytes)) {
            (Some(root), true) => {
                let mapped = windows::plan(&bytes, root, &args.argv, args.scenario.as_deref())?;
                (mapped.plan, mapped.dropped, Vec::new())
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
                let others = if args.same_builds { Others::LeaveOut } else { Others::Carry };
                let imported = cold_plan::portable::import(&text, &build_id, &plans::sections, others);
                let imported = imported.map_err(|e| of_file(e.into()))?;
                let told = |d: &Dropped| (d.path.shown().to_string(), d.why.to_string());
                (
                    imported.plan,
                    imported.dropped.iter().map(told).collect(),
                    imported.carried.iter().map(told).collect(),
                )
            }
        };
    let mut line = Line::new(ui);
    device::compile(&mut plan, device::Of::default(), &place.state()?, &mut line, ui);
    line.clear();
    let path = store.save(&plan)?;
    for (path, why) in &dropped {
        ui.note(paint(FAINT, format!("  left out: {}: {}", path.as_str().shown(), why.as_str().shown())));
    }
    for (path, why) in &carried {
        ui.note(paint(FAINT, format!("  carried over: {}: {}", path.as_str().shown(), why.as_str().shown())));
    }
    let left = plural(dropped.len() as u64, "file");
    let others = match carried.len() {
        0 => String::new(),
        n => format!(", {} of another build: their pages are a guess", plural(n as u64, "file")),
    };
    ui.line(format!("imported {} ({}); {left} left out{others}", plans::name(&path), plans::what(&plan.key)));
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
