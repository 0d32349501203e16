//! What waits cost the CPU by their length, as `cold probe pauses` found it.

use std::ffi::OsString;
use std::path::Path;

use cold_analyze::simulate::Recorded;
use cold_model::recording::Recording;
use cold_model::{Cooling, Known, Nanos, Shown as _};
use serde::Deserialize;

use crate::exit::Failure;

/// No honest document is larger.
const LARGEST: u64 = 1 << 20;

/// What is read of the document.
#[derive(Deserialize)]
struct Document {
    experiment: String,
    result: Measured,
}

#[derive(Deserialize)]
struct Measured {
    command: Vec<String>,
    found: Found,
}

#[derive(Deserialize)]
struct Found {
    cooling: Known<Cooling>,
}

/// The law in a file, of the recorded command.
pub(super) fn law(path: &Path, recording: &Recording) -> Result<Cooling, Failure> {
    let hint = "write it: cold probe pauses --json -- COMMAND > FILE";
    let refused = |why: String| Failure::usage(format!("{}: {why}", path.shown())).hint(hint);
    let (file, _) = cold_sys::open::regular(path, true).map_err(|e| refused(e.to_string()))?;
    let text = cold_sys::open::content(&file, LARGEST).map_err(|e| refused(e.to_string()))?;
    let text = text.ok_or_else(|| refused("it is larger than 1 MiB".to_owned()))?;
    let document = serde_json::from_slice::<Document>(&text).ok().filter(|d| d.experiment == "pauses");
    let Some(Document { result, .. }) = document else {
        return Err(refused("it is no document of cold probe pauses".to_owned()));
    };
    if !is_same(&result.command, &recording.manifest.command) {
        return Err(refused(format!("it is of another command: {}", result.command.join(" "))));
    }
    match result.found.cooling {
        Known::Value(law) => Ok(law),
        Known::Unknown { unknown } => Err(refused(unknown)),
    }
}

/// The same arguments for the same program, wherever it was found.
fn is_same(measured: &[String], recorded: &[OsString]) -> bool {
    let name = |program: &str| Path::new(program).file_name().map(OsString::from);
    let mut pairs = measured.iter().zip(recorded.iter().map(|word| word.to_string_lossy()));
    let programs = pairs.next().is_some_and(|(a, b)| name(a) == name(&b));
    programs && measured.len() == recorded.len() && pairs.all(|(a, b)| *a == b)
}

/// What the reader has to know of waits.
pub(super) fn told(start: &Recorded) -> String {
    let Some(law) = start.cooling() else {
        let not = "what a long wait costs the CPU more than a short one is not known (--pauses), and not in these times";
        return not.to_owned();
    };
    format!(
        "a wait also costs the CPU by its length: {} after 8 ms where 0.2 ms of work follow, {} where it is 1 ms",
        Nanos(law.each(8e6, 0.2e6) as u64),
        Nanos(law.each(8e6, 1e6) as u64)
    )
}
