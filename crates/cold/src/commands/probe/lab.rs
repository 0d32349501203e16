//! What every experiment stands on: device, journal, log, progress; and what is written at its end.

use std::cell::RefCell;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use cold_journal::Journal;
use cold_model::{Dev, Shown as _};
use cold_probe::Error;
use cold_probe::device::find;
use cold_probe::experiments::Lab;
use cold_probe::log::{Format, Log, Sample, write};
use cold_probe::subject::ProbeTarget;
use cold_probe::trial::Runner;
use cold_report::probe::Panel;
use cold_sys::procfs::ProcFs;
use cold_sys::sysfs::SysFs;
use cold_sys::whole::{self, Ownership, WholeFile};
use serde_json::{Value, json};

use super::args::Common;
use super::pictures;
use crate::exit::Failure;
use crate::helpers::KEEPER;
use crate::interrupt::interrupt;
use crate::progress::Line;
use crate::ui::{FAINT, Ui, paint};

/// A prepared lab.
pub(super) struct Bench<'a> {
    lab: Lab<'a>,
    common: &'a Common,
    line: Rc<RefCell<Line<'a>>>,
    device: Option<String>,
    rows: Option<(Vec<Sample>, u64)>,
    keeper: Option<Child>,
}

impl<'a> Bench<'a> {
    /// Checks all that can be wrong before anything is made.
    pub(super) fn new(
        common: &'a Common,
        needs_log: bool,
        limits: bool,
        ui: &'a Ui,
    ) -> Result<Self, Failure> {
        if let Some(path) = &common.log
            && Format::of(path).is_none()
        {
            let why = format!("--log {}: the name ends neither in .csv nor in .parquet", path.shown());
            return Err(Failure::usage(why));
        }
        let place = match &common.destroy {
            Some(file) => ProbeTarget::Destroy(file.clone()),
            None => ProbeTarget::Directory(common.dir.clone()),
        };
        let found = find(place.path(), &ProcFs::default(), &SysFs::default());
        let (dev, device) = match found {
            Ok(f) => (Some(f.dev), Some(described(f.name, f.dev))),
            Err(e) => {
                ui.warn(format!("device requests are not counted: {e}"));
                (None, None)
            }
        };
        let program = std::env::current_exe()?;
        let runner = Runner { program: program.clone(), interrupt: interrupt()?, dev };
        let wanted = needs_log || common.log.is_some() || common.svg.is_some() || common.html.is_some();
        let log = if wanted { Log::start(Duration::from_millis(common.interval), dev) } else { Log::off() };
        let line = Rc::new(RefCell::new(Line::new(ui)));
        let shown = Rc::clone(&line);
        let progress = Box::new(move |what: &str| shown.borrow_mut().step(what));
        let journal = Journal::open()?;
        let lab = Lab { runner, place, journal, log, seed: common.seed, variate: common.variate(), progress };
        // A group outlives us when we are killed; a process that notices removes it.
        let keeper = limits.then(|| keeper(&program)).transpose()?;
        Ok(Self { lab, common, line, device, rows: None, keeper })
    }

    pub(super) fn lab(&self) -> &Lab<'a> {
        &self.lab
    }

    /// Ends the log; its rows.
    pub(super) fn rows(&mut self) -> &[Sample] {
        if self.rows.is_none() {
            let log = std::mem::replace(&mut self.lab.log, Log::off());
            self.rows = Some(log.finish());
        }
        self.rows.as_ref().map_or(&[], |r| &r.0)
    }

    /// Takes the progress off the terminal.
    pub(super) fn clear(&self) {
        self.line.borrow_mut().clear();
    }

    /// Prints and writes what came out.
    pub(super) fn finish(
        &mut self,
        name: &'static str,
        found: &Value,
        mut panels: Vec<Panel>,
        ui: &Ui,
        show: impl FnOnce(&Ui),
    ) -> Result<(), Error> {
        self.clear();
        let common = self.common;
        self.rows();
        let (rows, lost) = self.rows.take().unwrap_or_default();
        if let (Some(path), Some(format)) = (&common.log, common.log.as_deref().and_then(Format::of)) {
            write(path, format, &rows).map_err(|e| failed("write", path, e))?;
        }
        if lost > 0 {
            ui.warn(format!("the log was full: {lost} rows are not in it (a longer --interval keeps all)"));
        }
        panels.extend(pictures::counters(&rows));
        let title = format!("cold probe {name}");
        let facts = self.facts();
        if let Some(path) = &common.svg {
            new_contents(path, cold_report::probe::svg(&title, &facts, &panels).as_bytes())?;
        }
        if let Some(path) = &common.html {
            new_contents(path, cold_report::probe::html(&title, &facts, &panels).as_bytes())?;
        }
        if common.json {
            let document = json!({
                "format": "coldstart-probe",
                "version": 1,
                "experiment": name,
                "device": self.device,
                "place": self.lab.place.path().to_string_lossy().into_owned(),
                "seed": common.seed,
                "variate": common.variate(),
                "kernel": ProcFs::default().kernel_release(),
                "result": found,
            });
            ui.json(&document);
        } else {
            ui.line(paint(FAINT, &facts));
            show(ui);
        }
        Ok(())
    }

    fn facts(&self) -> String {
        let device = self.device.as_deref().unwrap_or("a device that is not known");
        format!(
            "{} on {device} · Linux {} · seed {}",
            self.lab.place.path().shown(),
            ProcFs::default().kernel_release(),
            self.common.seed
        )
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            let _ = keeper.kill();
            let _ = keeper.wait();
        }
    }
}

/// The name with what the kernel reads ahead, which explains much of the figures.
fn described(name: String, dev: Dev) -> String {
    let block = SysFs::default().block_device(dev).ok().flatten();
    match block.and_then(|b| b.read_ahead_kb.zip(b.max_sectors_kb)) {
        Some((ahead, most)) => format!("{name}, read-ahead {ahead} KiB, requests up to {most} KiB"),
        None => name,
    }
}

fn keeper(program: &Path) -> std::io::Result<Child> {
    Command::new(program)
        .arg(KEEPER)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

fn failed(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Io { action, path: path.to_owned(), source }
}

/// Writes a file that may have existed: a picture is drawn again.
fn new_contents(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    whole::write(path, Ownership::Result, bytes).map_err(|e| failed("write", path, e))
}

/// Writes a file that does not exist yet.
pub(super) fn new_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut file = WholeFile::create_new(path, Ownership::Result).map_err(|e| failed("create", path, e))?;
    file.write_all(bytes).and_then(|()| file.commit()).map_err(|e| failed("write", path, e))
}
