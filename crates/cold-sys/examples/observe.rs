//! Observes one start of a command and writes the result as JSON to a file: `observe FILE CMD [ARG…]`.
//! The command keeps this program's standard streams.

use std::fs::{File, Metadata};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use cold_model::order::TracedFile;
use cold_sys::observe::{Client, FunctionTables, HELPER_ARGUMENT, ObserveSpec, Streams, serve};

/// This example follows no functions.
struct NoTables;

impl FunctionTables for NoTables {
    fn read(&mut self, _: File, _: Metadata, _: &Path) -> Result<TracedFile, String> {
        Err("functions are not followed here".to_owned())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let first = args.next().ok_or("usage: observe FILE CMD [ARG…]")?;
    if first == HELPER_ARGUMENT {
        return Ok(serve(&args.collect::<Vec<_>>(), &mut NoTables)?);
    }
    let spec = ObserveSpec {
        argv: args.collect(),
        env: None,
        cwd: None,
        deadline: None,
        grace: Duration::from_secs(5),
    };
    let streams = Streams { stdin: Stdio::inherit(), stdout: Stdio::inherit(), stderr: Stdio::inherit() };
    let result = Client::start("/proc/self/exe".as_ref(), &spec, streams)?.wait()?;
    serde_json::to_writer_pretty(std::fs::File::create(first)?, &result)?;
    Ok(())
}
