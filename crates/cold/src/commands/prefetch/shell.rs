//! `cold prefetch shell-function`: text for a shell's start file.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use super::launcher::{Call, quoted};
use super::plans::StorePlace;
use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Failure, Outcome};
use crate::ui::Ui;

const EXAMPLES: &str = "Examples:
  cold prefetch shell-function node python3 >> ~/.bashrc
  cold prefetch shell-function --shell fish node >> ~/.config/fish/config.fish
";

/// Flags of `cold prefetch shell-function`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// Programs that the shell is to start by their plans
    #[arg(required = true, value_name = "PROGRAM")]
    programs: Vec<String>,

    /// The shell: sh (also bash, zsh and others of its kind) or fish
    #[arg(long, value_name = "SHELL", default_value = "sh", value_parser = ["sh", "bash", "zsh", "fish"])]
    shell: String,
}

/// Prints the functions.
pub(crate) fn run(args: &Args, place: &StorePlace, ui: &Ui) -> Outcome {
    let call = Call::new(place)?;
    let functions: Vec<Vec<u8>> =
        args.programs.iter().map(|p| function(p, &call.words(), &args.shell)).collect::<Result<_, _>>()?;
    ui.bytes(&functions.concat());
    Ok(Exit::Done)
}

/// A function of the program's name that passes its arguments on. The launcher looks the program up in PATH, where
/// functions are not; once the launcher is gone, `command` does the same.
fn function(program: &str, launch: &[OsString], shell: &str) -> Result<Vec<u8>, Failure> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.+".contains(c);
    // The function itself would not work any more if these were functions.
    let needed = ["command", "test", "if"].contains(&program);
    if program.is_empty() || program.starts_with('-') || !program.chars().all(fits) || needed {
        return Err(Failure::usage(format!("{program:?} cannot be the name of a shell's function")));
    }
    let quote = if shell == "fish" { quoted_for_fish } else { quoted };
    let (launcher, launch) = (quote(launch.get(..1).unwrap_or_default()), quote(launch));
    let program = program.as_bytes();
    let parts: &[&[u8]] = if shell == "fish" {
        &[
            b"function ",
            program,
            b"; if test -x ",
            &launcher,
            b"; ",
            &launch,
            b" ",
            program,
            b" $argv; else; command ",
            program,
            b" $argv; end; end\n",
        ]
    } else {
        &[
            program,
            b"() { if [ -x ",
            &launcher,
            b" ]; then ",
            &launch,
            b" ",
            program,
            b" \"$@\"; else command ",
            program,
            b" \"$@\"; fi; }\n",
        ]
    };
    Ok(parts.concat())
}

/// In fish a backslash escapes a quote and itself also between single quotes.
fn quoted_for_fish(words: &[OsString]) -> Vec<u8> {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"/._-+:@".contains(b);
    let word = |word: &OsString| match word.as_bytes() {
        bytes if !bytes.is_empty() && bytes.iter().all(plain) => bytes.to_vec(),
        bytes => {
            let escaped = bytes.iter().flat_map(|b| match b {
                b'\\' | b'\'' => vec![b'\\', *b],
                b => vec![*b],
            });
            [b'\''].into_iter().chain(escaped).chain([b'\'']).collect()
        }
    };
    words.iter().map(word).collect::<Vec<_>>().join(&b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_pass_arguments_on_and_names_are_checked() {
        let launch = ["/opt/it's/cold-launch", "--"].map(OsString::from);
        let made = |name: &str, shell: &str| {
            function(name, &launch, shell).ok().map(|f| String::from_utf8(f).expect("text"))
        };
        let sh = "node() { if [ -x \"/opt/it's/cold-launch\" ]; then \"/opt/it's/cold-launch\" -- node \"$@\"; \
                  else command node \"$@\"; fi; }\n";
        assert_eq!(made("node", "bash").as_deref(), Some(sh));
        let fish = "function g++; if test -x '/opt/it\\'s/cold-launch'; '/opt/it\\'s/cold-launch' -- g++ $argv; \
                    else; command g++ $argv; end; end\n";
        assert_eq!(made("g++", "fish").as_deref(), Some(fish));
        for name in ["a b", "-x", "$(x)", "command", "x\ny"] {
            assert_eq!(made(name, "sh"), None, "{name}");
        }
    }
}
