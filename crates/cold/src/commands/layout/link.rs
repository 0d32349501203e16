//! `cold layout link`: a build whose linker is given the order, and whether its program has it.

mod build;
mod keep;
mod linker;
mod products;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::Ordering;

use cold_layout::read::{self, Order};
use cold_layout::verify::{self, Check, Placed};
use cold_layout::write::{Format, written};
use cold_model::{Bytes, Shown as _, path_text};
use cold_sys::whole::{self, Ownership};
use serde_json::json;

use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::interrupt;
use crate::results;
use crate::ui::{BAD, GOOD, STRONG, Ui, WARN, paint};
use build::Kind;
use linker::Linker;
use products::Product;

/// Largest order file that is read: a million names of 100 letters.
const MAX_ORDER: u64 = 128 << 20;
/// Names of missing symbols that are shown.
const SHOWN: usize = 5;

/// Flags of `cold layout link`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold layout link --order rg.txt --keep-old rg.old -- cargo build --release
  cold layout link --order rg.txt -- cargo rustc --release --bin rg    compiles the last crate only
  cold layout link --order app.txt -- make -B
  cold layout link --order app.txt --linker gold -- cc -O2 -o app a.c b.c
")]
pub(crate) struct Args {
    /// Order file by `cold layout order`, of any form
    #[arg(long, value_name = "FILE")]
    order: PathBuf,

    /// Linker to use: auto, lld, gold, or bfd (GNU ld, from binutils 2.43 on)
    #[arg(long, value_name = "LINKER", default_value = "auto", value_parser = ["auto", "lld", "gold", "bfd"])]
    linker: String,

    /// Write the order here in the linker's own form, if the file given has another one
    /// [default: its name with the linker's]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Program that the build makes; by default the one that has most of the order's functions
    #[arg(long, value_name = "FILE")]
    product: Option<PathBuf>,

    /// The program as it was before, to compare with; by default the one that the build replaces
    #[arg(long, value_name = "FILE")]
    old: Option<PathBuf>,

    /// Keep a copy of the program as it was before, for `cold layout compare`
    #[arg(long, value_name = "FILE", conflicts_with = "old")]
    keep_old: Option<PathBuf>,

    /// Print the result as JSON; the build then writes to standard error
    #[arg(long)]
    json: bool,

    /// The build, as it is typed
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    let kind = build::kind(&args.command)?;
    let order = order(&args.order)?;
    let linker = linker::find(&args.linker, kind == Kind::Cargo)?;
    if let Some(path) = args.keep_old.as_ref().filter(|path| path.symlink_metadata().is_ok()) {
        return Err(
            Failure::usage(format!("{} exists", path.shown())).hint("name another file with --keep-old")
        );
    }
    let places = build::places(kind, &args.command);
    let before = match args.old.as_ref().or(args.product.as_ref()) {
        Some(path) if path.exists() || args.old.is_some() => vec![products::read(path, &order.names)?],
        Some(_) => Vec::new(),
        None => products::find(&places, &order.names),
    };
    if let Some(path) = &args.keep_old {
        keep(path, before.first())?;
    }
    let file = in_its_form(args, &order, &linker)?;
    let build = build::build(kind, &args.command, &linker, &file)?;
    ui.note(format!("linking with {}, order {}", linker.program.shown(), file.shown()));
    let line = build.keep.clone();
    if made(build, args)? {
        return Ok(Exit::Interrupted);
    }
    let new = product(args, &places, &order, &before)?;
    let old = before.iter().find(|p| p.path == new.path || args.old.is_some()).or(before.first());
    let is_anew = before.iter().all(|p| p.identity != new.identity);
    let verified = Verified { args, linker: &linker, kind, line, old, new: &new, is_anew };
    let checks = verify::checks(&new.placed, &new.functions, old.map(|old| &old.functions));
    if args.json {
        ui.json(&verified.json(&checks));
    } else {
        verified.show(ui, &checks);
    }
    Ok(match () {
        () if checks.iter().any(|(_, answer)| *answer == Some(false)) => Exit::GateFailed,
        () if checks.iter().any(|(_, answer)| answer.is_none()) => Exit::Inconclusive,
        () => Exit::Done,
    })
}

fn order(path: &Path) -> Result<Order, Failure> {
    let (file, _) = cold_sys::open::regular(path, true)?;
    let wrong = |why: &str| Failure::usage(format!("{}: {why}", path.shown()));
    let read =
        cold_sys::open::content(&file, MAX_ORDER).map_err(|e| wrong(&format!("cannot be read: {e}")))?;
    let bytes = read.ok_or_else(|| wrong("too long for an order file"))?;
    let text = String::from_utf8(bytes).map_err(|e| wrong(&format!("cannot be read as text: {e}")))?;
    if text.lines().any(|line| line == ":ir") {
        return Err(wrong(
            "a profile, from which lld makes an order of its own: nothing to verify a program against",
        )
        .hint("cold layout order TRACE --format lld -o FILE"));
    }
    let order = read::order(&text);
    if order.names.is_empty() {
        return Err(wrong("no function is named in it").hint("cold layout order TRACE -o FILE"));
    }
    Ok(order)
}

/// The order in the form that the linker takes, as an absolute path: builds change their directory.
fn in_its_form(args: &Args, order: &Order, linker: &Linker) -> Result<PathBuf, Failure> {
    if order.format == linker.format && args.output.is_none() {
        let path = whole(&args.order)?;
        return build::takes(&path).map(|()| path);
    }
    let functions = order.functions();
    let text = written(&functions.iter().collect::<Vec<_>>(), linker.format);
    let beside = || {
        let mut name = args.order.clone().into_os_string();
        name.push(match linker.format {
            Format::Gold => ".gold",
            Format::Gnu => ".gnu",
            _ => ".lld",
        });
        PathBuf::from(name)
    };
    let path = args.output.clone().unwrap_or_else(beside);
    build::takes(&std::path::absolute(&path)?)?;
    results::check(&path)?;
    let is_ours = || std::fs::read(&path).is_ok_and(|known| known == text.as_bytes());
    if args.output.is_none() && path.symlink_metadata().is_ok() && !is_ours() {
        return Err(Failure::usage(format!("{} exists, and holds something else", path.shown()))
            .hint("-o FILE names where the order goes in the linker's form, and replaces it"));
    }
    results::save(&path, text)?;
    Ok(whole(&path)?)
}

/// The path from the root, without `..`: it stays in the user's build.
fn whole(path: &Path) -> std::io::Result<PathBuf> {
    let directory = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(directory.canonicalize()?.join(path.file_name().unwrap_or_default()))
}

fn keep(path: &Path, old: Option<&Product>) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt as _;
    let old = old.ok_or_else(|| {
        Failure::from(anyhow::anyhow!("no program here has the functions of the order, so none can be kept"))
            .hint("build it first, as it was traced; or name it with --product FILE")
    })?;
    let (mut from, meta) = cold_sys::open::regular(&old.path, true)?;
    let cannot = |e: std::io::Error| {
        anyhow::Error::new(e).context(format!("cannot keep {} as {}", old.path.shown(), path.shown()))
    };
    let kind = Ownership::Own(meta.permissions().mode() & 0o777);
    let mut to = whole::WholeFile::create_new(path, kind).map_err(cannot)?;
    std::io::copy(&mut from, &mut to).map_err(cannot)?;
    Ok(to.commit().map_err(cannot)?)
}

/// Runs the build; whether it was interrupted.
fn made(mut build: build::Build, args: &Args) -> Result<bool, Failure> {
    let interrupt = interrupt()?;
    if args.json {
        build.command.stdout(Stdio::from(std::io::stderr()));
    }
    let name = args.command.first().map(|a| a.shown().to_string()).unwrap_or_default();
    let status = build.command.status();
    build.end()?;
    let status = status.map_err(|e| anyhow::Error::new(e).context(format!("cannot run {name}")))?;
    if interrupt.load(Ordering::Relaxed) {
        return Ok(true);
    }
    if status.success() {
        return Ok(false);
    }
    let failure = Failure::from(anyhow::anyhow!("the build failed ({status}): {name}"));
    Err(failure.hint("see its messages above; `unrecognized option` means that it links with another linker"))
}

/// The program that the build made.
fn product(args: &Args, places: &[PathBuf], order: &Order, before: &[Product]) -> Result<Product, Failure> {
    if let Some(path) = &args.product {
        return Ok(products::read(path, &order.names)?);
    }
    let mut all = products::find(places, &order.names);
    let is_new = |p: &Product| before.iter().all(|old| old.identity != p.identity);
    let at = all.iter().position(is_new).unwrap_or(0);
    if at < all.len() {
        return Ok(all.swap_remove(at));
    }
    let why = anyhow::anyhow!("no program here has at least half of the order's functions by name");
    Err(Failure::from(why).hint(
        "--product FILE names it; a stripped one cannot be verified: link without stripping (cargo: --config \
         profile.release.strip=false), or trace the program that this build makes",
    ))
}

/// A linked program and what it was.
struct Verified<'a> {
    args: &'a Args,
    linker: &'a Linker,
    kind: Kind,
    line: String,
    old: Option<&'a Product>,
    new: &'a Product,
    is_anew: bool,
}

impl Verified<'_> {
    fn show(&self, ui: &Ui, checks: &[(Check, Option<bool>)]) {
        ui.line(paint(STRONG, self.new.path.shown()));
        for (check, answer) in checks {
            let mark = match answer {
                Some(true) => paint(GOOD, "pass:"),
                Some(false) => paint(BAD, "fail:"),
                None => paint(WARN, "unknown:"),
            };
            ui.line(format!("  {mark} {}", words(check, &self.new.placed, self.new)));
        }
        let pages = |p: &Product| p.placed.pages.to_string();
        let before = self.old.map_or_else(|| "unknown".to_owned(), pages);
        let Placed { pages, least, .. } = self.new.placed;
        ui.line(format!(
            "  pages of code that hold ordered functions: {before} before, {pages} now, {least} at least"
        ));
        if self.old.is_none() {
            ui.warn("the program as it was before is not here: name it with --old FILE, to compare size and needs");
        }
        if checks.contains(&(Check::Follows, Some(false))) {
            ui.line(format!("{} {}", paint(STRONG, "try:"), self.why_not()));
            return;
        }
        if !self.is_anew {
            ui.line("  nothing was linked: the program was up to date, and is what an earlier build made");
        }
        ui.line(format!("{} {}", paint(STRONG, "keep:"), self.line));
        if self.kind == Kind::Other {
            ui.line(
                "  (a Makefile or a CMakeLists.txt that sets these flags by itself needs them there; a configure script takes \
                 them, and writes them down)",
            );
        }
        let old = self.args.keep_old.as_ref().or(self.args.old.as_ref());
        if let Some(old) = old {
            let (old, new) = (old.shown(), self.new.path.shown());
            ui.line(format!("{} cold layout compare {old} {new} -- ARGUMENTS", paint(STRONG, "next:")));
        }
    }

    /// Why a program may not have the order.
    fn why_not(&self) -> String {
        match self.kind {
            Kind::Cargo if !self.is_anew => {
                "nothing was linked: cargo does not see that the order changed; touch the program's main source file"
                    .to_owned()
            }
            _ if !self.is_anew => {
                "nothing was linked: all was up to date; build anew (make -B, or make clean before)".to_owned()
            }
            Kind::Cargo => format!("a setting of yours chooses another linker than {}", self.linker.name()),
            _ => "parts compiled before, or libraries linked into it, have no function sections: build all of it anew \
                  (make -B), put -ffunction-sections into its flags, or try --linker lld, which moves whole object files"
                .to_owned(),
        }
    }

    fn json(&self, checks: &[(Check, Option<bool>)]) -> serde_json::Value {
        let check = |(check, answer): &(Check, Option<bool>)| json!({ "check": name(check), "pass": answer, "words": words(check, &self.new.placed, self.new) });
        let Placed { names, resolved, ambiguous, judged, in_order, pages, least } = self.new.placed;
        let change = checks.iter().find_map(|(check, _)| match check {
            Check::Size(change) => *change,
            _ => None,
        });
        json!({
            "schema": "coldstart.layout-link/1",
            "product": path_text::encode(&self.new.path),
            "linker": self.linker.name(), "linked_anew": self.is_anew, "keep": self.line,
            "names": names, "resolved": resolved, "resolved_before": self.old.map(|old| old.placed.resolved),
            "ambiguous": ambiguous, "judged": judged, "in_order": in_order,
            "pages_before": self.old.map(|old| old.placed.pages), "pages": pages, "pages_least": least,
            "code_bytes": self.new.functions.code_bytes(), "code_change": change,
            "checks": checks.iter().map(check).collect::<Vec<_>>(),
        })
    }
}

fn name(check: &Check) -> &'static str {
    match check {
        Check::Resolved => "resolved",
        Check::Follows => "follows",
        Check::Size(_) => "size",
        Check::Undefined(_) => "undefined",
    }
}

fn words(check: &Check, placed: &Placed, new: &Product) -> String {
    let Placed { names, resolved, ambiguous, judged, in_order, .. } = placed;
    match check {
        Check::Resolved => format!(
            "{resolved} of {names} names of the order are in it, {ambiguous} of them of several functions"
        ),
        Check::Follows => format!("{in_order} of {judged} functions that can be judged lie in the order"),
        Check::Size(None) => format!("{} of code; before is not known", Bytes(new.functions.code_bytes())),
        Check::Size(Some(change)) => {
            // To two digits: what is not one of them is none, not one less.
            let percent = (change * 10_000.0).round() / 100.0 + 0.0;
            format!("{} of code, {percent:+.2}% against before", Bytes(new.functions.code_bytes()))
        }
        Check::Undefined(news) if news.is_empty() => {
            "no symbol of a library that it did not need before".to_owned()
        }
        Check::Undefined(news) => {
            let more = match news.len().saturating_sub(SHOWN) {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            let shown: Vec<String> = news.iter().take(SHOWN).map(|n| n.shown().to_string()).collect();
            format!("symbols that it did not need before: {}{more}", shown.join(", "))
        }
    }
}
