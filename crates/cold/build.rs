//! Links the release of `cold` in the order in which its own starts enter functions (`starts.order`, made by
//! `make order`), with packed relocations: both only where the linker and the C library at hand can do it.
//!
//! What a linker can do is found out by linking a program of one line. A name in the order that this compiler calls
//! otherwise is passed over, so an order of another compiler does no harm.

// Cargo is talked to by printing; what is written is a trial in a directory that Cargo made for this script.
#![allow(clippy::print_stdout, clippy::disallowed_macros, clippy::disallowed_methods)]

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=starts.order");
    if env::var("PROFILE").as_deref() != Ok("release") {
        return;
    }
    let (Some(own), Some(out)) = (env::var_os("CARGO_MANIFEST_DIR"), env::var_os("OUT_DIR")) else { return };
    let order = Path::new(&own).join("starts.order");
    // -Wl divides at commas.
    let order = order.to_str().filter(|path| !path.contains(','));
    let trial = Trial { place: PathBuf::from(out) };
    if trial.is_written() {
        // GNU ld knows neither option; an unknown name is no matter.
        let by_order = order.map(|path| {
            [format!("-Wl,--symbol-ordering-file={path}"), "-Wl,--no-warn-symbol-ordering".to_owned()]
        });
        if let Some(by_order) = by_order.filter(|arguments| trial.links(arguments)) {
            tell(&by_order);
        }
        let packed = ["-Wl,-z,pack-relative-relocs".to_owned()];
        // A static program relocates itself: a C library before 2.36 would not, and die at once.
        if trial.links(&packed) && trial.runs() {
            tell(&packed);
        }
    }
}

fn tell(arguments: &[String]) {
    for argument in arguments {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
}

/// A program of one line, compiled as `cold` is.
struct Trial {
    place: PathBuf,
}

impl Trial {
    fn source(&self) -> PathBuf {
        self.place.join("trial.rs")
    }
    fn program(&self) -> PathBuf {
        self.place.join("trial")
    }

    /// A relocation that has to be made before it can be followed.
    fn is_written(&self) -> bool {
        let text = "static NAMES: [&str; 2] = [\"a\", \"b\"];\n\
                    fn main() { assert_eq!(std::hint::black_box(&NAMES)[1], \"b\"); }\n";
        std::fs::write(self.source(), text).is_ok()
    }

    fn links(&self, arguments: &[String]) -> bool {
        let (Some(rustc), Ok(target)) = (env::var_os("RUSTC"), env::var("TARGET")) else { return false };
        let mut command = Command::new(rustc);
        command.arg("--target").arg(target).arg("-o").arg(self.program()).arg(self.source());
        if let Some(linker) = env::var_os("RUSTC_LINKER") {
            let mut flag = std::ffi::OsString::from("linker=");
            flag.push(linker);
            command.arg("-C").arg(flag);
        }
        let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
        command.args(flags.split('\x1f').filter(|f| !f.is_empty()));
        for argument in arguments {
            command.arg("-C").arg(format!("link-arg={argument}"));
        }
        command.output().is_ok_and(|o| o.status.success())
    }

    /// Not for another machine, where nobody knows.
    fn runs(&self) -> bool {
        env::var("TARGET") == env::var("HOST")
            && Command::new(self.program()).output().is_ok_and(|o| o.status.success())
    }
}
