//! `cold cache overview`.

use cold_cache::overview::{Use, overview};
use cold_model::Bytes;
use cold_sys::page::page_size;
use cold_sys::procfs::ProcFs;

use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Outcome};
use crate::table::{cut, width};
use crate::ui::{FAINT, STRONG, Ui, paint};
use crate::words::percent;

/// Flags of `cold cache overview`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold cache overview                  every use of memory; the rows sum to the total
  cold cache overview --json | jq '.uses[] | select(.key == \"files\")'
")]
pub(super) struct Args {
    /// Print one JSON document (its fields are documented) instead of text
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, ui: &Ui) -> Outcome {
    let proc = ProcFs::default();
    let found = overview(&proc.meminfo()?, &proc.vmstat()?, page_size());
    let found = found.ok_or_else(|| anyhow::anyhow!("/proc/meminfo has no MemTotal: is /proc mounted?"))?;
    if args.json {
        let mut document = serde_json::to_value(&found)?;
        if let Some(object) = document.as_object_mut() {
            object.shift_insert(0, "schema".to_owned(), "cold-cache-overview/1".into());
        }
        ui.json(&document);
        return Ok(Exit::Done);
    }
    ui.line(paint(STRONG, format!("{:>10}  {:>6}  {:<32}  MEANING", "BYTES", "SHARE", "USE")));
    for u in found.largest_first() {
        ui.line(line(u, found.total, ""));
        for detail in u.details.iter().filter(|d| d.bytes != Some(0)) {
            ui.line(paint(FAINT, line(detail, found.total, "  ")));
        }
    }
    ui.line(paint(STRONG, format!("{:>10}  {:>6}  total", Bytes(found.total), "100%")));
    let bytes_or_unknown = |b: Option<u64>| b.map_or_else(|| "unknown".to_owned(), |b| Bytes(b).to_string());
    ui.line("");
    ui.line(format!("available to programs without swapping: about {}", bytes_or_unknown(found.available)));
    match found.swap_total {
        Some(0) => ui.line("swap: none"),
        total => ui.line(format!(
            "swap: {} free of {}",
            bytes_or_unknown(found.swap_free),
            bytes_or_unknown(total)
        )),
    }
    Ok(Exit::Done)
}

fn line(u: &Use, total: u64, indent: &str) -> String {
    let bytes = match u.bytes {
        None => "unknown".to_owned(),
        Some(b) if b < 0 => format!("-{}", Bytes(b.unsigned_abs())),
        Some(b) => Bytes(b.unsigned_abs()).to_string(),
    };
    let share = u.bytes.and_then(|b| u64::try_from(b).ok()).map_or_else(String::new, |b| percent(b, total));
    let name = format!("{indent}{}", u.name);
    cut(format!("{bytes:>10}  {share:>6}  {name:<32}  {}", u.meaning), width())
}
