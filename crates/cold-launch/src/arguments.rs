//! The command line, by hand: a parser library would be larger than the launcher.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use cold_launch::{Options, Source};
use cold_model::Shown as _;
use cold_plan::plan::Gate;

pub(crate) const HELP: &str = "\
Starts a program by its plan: reads ahead what the program is going to need.

Usage: cold-launch [OPTIONS] [--] COMMAND [ARGUMENT…]

Options:
      --plan FILE          Follow this plan, instead of the one in the store
      --store DIR          Look for the plan in this directory
      --scenario NAME      Name under which the plan was learnt [default: derived from the arguments]
      --control-every K    Make every K-th cold start without the plan, to compare [default: 0, none]
      --wait WHEN          When the program begins: none (at once), issued (its first pages are asked for),
                           arrived (they are there) [default: by the plan]
      --deadline MS        Stop reading ahead after this time, in ms [default: 10000]
      --budget BYTES       Read ahead at most this many bytes
      --verbose            Say what is done
  -h, --help               Print this help
  -V, --version            Print the version

The program replaces cold-launch: it has its process id, and its exit code is its own. Whatever is wrong
with a plan, the program starts. Learn plans with: cold prefetch learn -- COMMAND
";

/// Options whose value may be the next word.
const VALUED: [&str; 7] =
    ["--plan", "--store", "--scenario", "--control-every", "--wait", "--deadline", "--budget"];

/// At which of the words behind the launcher's name the command begins; `None` for none. Allocates nothing: what
/// is to be started must be known before anything can fail.
pub(crate) fn command_at<'a>(words: impl Iterator<Item = &'a OsStr>) -> Option<usize> {
    let mut is_value = false;
    for (at, word) in words.enumerate() {
        match word.as_bytes() {
            _ if is_value => is_value = false,
            b"--" => return Some(at + 1),
            option if option.starts_with(b"-") => {
                is_value = VALUED.iter().any(|name| name.as_bytes() == option);
            }
            _ => return Some(at),
        }
    }
    None
}

#[derive(Debug)]
pub(crate) enum Asked {
    Start(Options, bool),
    Help,
    Version,
}

pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Asked, String> {
    let mut options = Options::new(Vec::new());
    let (mut verbose, mut plan, mut store, mut scenario) = (false, None, None, None);
    let mut rest = arguments;
    while let Some(word) = rest.next() {
        let text = word.to_str().unwrap_or_default();
        let (name, attached) = match text.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(OsString::from(value))),
            _ => (text, None),
        };
        let has_value = attached.is_some();
        let mut value = || attached.clone().or_else(|| rest.next()).ok_or(format!("{name} needs a value"));
        match name {
            "--plan" => plan = Some(value()?.into()),
            "--store" => store = Some(value()?.into()),
            "--scenario" => scenario = Some(utf8(name, value()?)?),
            "--control-every" => options.control_every = number(name, &value()?)?,
            "--deadline" => options.deadline = Duration::from_millis(number(name, &value()?)?),
            "--budget" => options.budget = Some(number(name, &value()?)?),
            "--wait" => options.gate = Some(gate(&value()?)?),
            "--verbose" | "-h" | "--help" | "-V" | "--version" | "--" if has_value => {
                return Err(format!("{name} takes no value"));
            }
            "--verbose" => verbose = true,
            "-h" | "--help" => return Ok(Asked::Help),
            "-V" | "--version" => return Ok(Asked::Version),
            "--" => break,
            _ if word.as_bytes().starts_with(b"-") => return Err(format!("unknown option {}", word.shown())),
            // The first word that is no option begins the command, as with env and nohup.
            _ => {
                options.command.push(word);
                break;
            }
        }
    }
    options.command.extend(rest);
    if options.command.is_empty() {
        return Err("no command was given".to_owned());
    }
    options.source = match plan {
        Some(_) if store.is_some() || scenario.is_some() => {
            return Err("--plan names the plan, so --store and --scenario have no meaning".to_owned());
        }
        Some(path) => Source::File(path),
        None => Source::Store { dir: store, scenario },
    };
    Ok(Asked::Start(options, verbose))
}

fn utf8(name: &str, value: OsString) -> Result<String, String> {
    value.into_string().map_err(|v| format!("{name}: {} is no text", v.shown()))
}

fn number<N: std::str::FromStr>(name: &str, value: &OsStr) -> Result<N, String> {
    let text = value.to_string_lossy();
    text.parse().map_err(|_| format!("{name}: {} is no number that fits", value.shown()))
}

fn gate(value: &OsStr) -> Result<Gate, String> {
    match value.to_str() {
        Some("none") => Ok(Gate::None),
        Some("issued") => Ok(Gate::Issued),
        Some("arrived") => Ok(Gate::Arrived),
        _ => Err(format!("--wait: {} is none of none, issued, arrived", value.shown())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[&str]) -> Result<Asked, String> {
        parse(words.iter().map(OsString::from))
    }

    #[test]
    fn options_end_where_the_command_begins() {
        for words in [
            &["--wait=issued", "--budget", "9", "--", "ls", "--plan"][..],
            &["--wait", "issued", "--budget=9", "ls", "--plan"],
        ] {
            let Ok(Asked::Start(options, false)) = asked(words) else { panic!("{words:?}") };
            assert_eq!(options.command, ["ls", "--plan"]);
            assert_eq!((options.gate, options.budget), (Some(Gate::Issued), Some(9)));
        }
    }

    #[test]
    fn where_the_command_begins_is_known_without_reading_the_options() {
        for words in [
            &["--plan", "p", "ls", "-l"][..],
            &["--plan=p", "--verbose", "ls"],
            &["--store", "--", "--", "--", "ls"],
            &["--wait", "none", "--deadline", "5", "--budget", "7", "--", "-x"],
            &["--scenario", "s", "--control-every=3", ""],
            &["--control-every", "3", "--verbose", "--store", "ls", "ls"],
        ] {
            let Ok(Asked::Start(options, _)) = asked(words) else { panic!("{words:?}") };
            let at = command_at(words.iter().map(OsStr::new)).expect("a command");
            assert_eq!(options.command, words[at..], "{words:?}");
        }
        assert_eq!(command_at(["--plan", "ls"].iter().map(OsStr::new)), None);
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (words, part) in [
            (&["--wait"][..], "needs a value"),
            (&["--wait", "ever", "ls"], "none of none"),
            (&["--deadline", "-3", "ls"], "no number"),
            (&["--plan", "p", "--store", "s", "ls"], "no meaning"),
            (&["--nonsense", "ls"], "unknown option"),
            (&["--verbose=1", "ls"], "takes no value"),
            (&["--verbose"], "no command"),
        ] {
            let Err(why) = asked(words) else { panic!("{words:?} was accepted") };
            assert!(why.contains(part), "{why}");
        }
    }
}
