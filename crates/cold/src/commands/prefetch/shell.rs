//! `cold prefetch shell-function`: text for a shell's start file.

use super::plans::Place;
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
    /// Programs that the shell shall start through the launcher
    #[arg(required = true, value_name = "PROGRAM")]
    programs: Vec<String>,

    /// The shell: sh (also bash, zsh and others of its kind) or fish
    #[arg(long, value_name = "SHELL", default_value = "sh", value_parser = ["sh", "bash", "zsh", "fish"])]
    shell: String,
}

/// Prints the functions.
pub(crate) fn run(args: &Args, place: &Place, ui: &Ui) -> Outcome {
    let words: Vec<_> = super::launcher::line(place)?.into_iter().map(Into::into).collect();
    let launcher = cold_bench::command::line_of(&words);
    for program in &args.programs {
        ui.line(function(program, &launcher, &args.shell)?);
    }
    Ok(Exit::Done)
}

fn function(program: &str, launcher: &str, shell: &str) -> Result<String, Failure> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.+".contains(c);
    if program.is_empty() || program.starts_with('-') || !program.chars().all(fits) {
        return Err(Failure::usage(format!("{program:?} cannot be the name of a shell's function")));
    }
    Ok(match shell {
        "fish" => format!("function {program}; {launcher} -- {program} $argv; end"),
        // The launcher looks the program up in PATH, where functions are not.
        _ => format!("{program}() {{ {launcher} -- {program} \"$@\"; }}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_pass_arguments_on_and_names_are_checked() {
        let made = |name: &str, shell: &str| function(name, "/usr/bin/cold-launch", shell).ok();
        let sh = "node() { /usr/bin/cold-launch -- node \"$@\"; }";
        assert_eq!(made("node", "bash").as_deref(), Some(sh));
        let fish = "function g++; /usr/bin/cold-launch -- g++ $argv; end";
        assert_eq!(made("g++", "fish").as_deref(), Some(fish));
        assert_eq!(made("a b", "sh").or(made("-x", "sh")).or(made("$(x)", "sh")), None);
    }
}
