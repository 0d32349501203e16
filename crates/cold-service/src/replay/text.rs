//! A log of starts as CSV (docs/formats/service-log.md).

use std::collections::HashMap;
use std::fmt::Write as _;

use cold_model::{Nanos, csv};

use super::{Event, Log, Program, What};

/// The line of names.
pub const HEAD: &str = "seconds,event,times,bytes,program";
/// Lines that are read: 90 days with a start every four seconds.
const MOST: usize = 2_000_000;
const SECOND: f64 = 1e9;

/// Writes the log. Times are seconds since its first event.
pub fn write(log: &Log) -> String {
    let first = log.events().first().map_or(Nanos(0), |e| e.at);
    let mut text = format!("{HEAD}\n");
    for event in log.events() {
        let seconds = event.at.saturating_sub(first).0 as f64 / SECOND;
        let _ = match event.what {
            What::Emptied => writeln!(text, "{seconds:.3},emptied,,,"),
            What::Starts { program, times } => match log.programs.get(program) {
                Some(Program { name, bytes }) => {
                    writeln!(text, "{seconds:.3},start,{times},{bytes},{}", csv::text(name))
                }
                None => Ok(()),
            },
        };
    }
    text
}

/// Reads what [`write`](fn@write) wrote, or anybody; an error names the line.
pub fn read(text: &str) -> Result<Log, String> {
    let mut lines = text.lines().enumerate();
    if lines.next().is_none_or(|(_, head)| head.trim_end() != HEAD) {
        return Err(format!("the first line is not: {HEAD}"));
    }
    let (mut programs, mut events) = (Vec::<Program>::new(), Vec::new());
    let mut known: HashMap<String, usize> = HashMap::new();
    for (i, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        if events.len() >= MOST {
            return Err(format!("more than {MOST} lines"));
        }
        let event = event(line, &mut programs, &mut known).map_err(|why| format!("line {}: {why}", i + 1))?;
        events.push(event);
    }
    Log::new(programs, events).ok_or_else(|| "an event names no program".to_owned())
}

fn event(
    line: &str,
    programs: &mut Vec<Program>,
    known: &mut HashMap<String, usize>,
) -> Result<Event, String> {
    let mut cells = line.splitn(5, ',');
    let mut cell = |name| cells.next().ok_or_else(|| format!("there is no cell for {name}"));
    let (seconds, what, times, bytes, name) =
        (cell("seconds")?, cell("event")?, cell("times")?, cell("bytes")?, cell("program")?);
    let at = seconds.parse::<f64>().ok().filter(|s| (0.0..1e9).contains(s));
    let at = Nanos((at.ok_or("seconds are no number from 0 to 1,000,000,000")? * SECOND).round() as u64);
    let what = match what {
        "emptied" => What::Emptied,
        "start" => {
            let times = times.parse().ok().filter(|n| (1..=1_000_000_000).contains(n));
            let times = times.ok_or("times are no count from 1 to 1,000,000,000")?;
            let bytes =
                bytes.parse().ok().filter(|n| *n <= 1 << 40).ok_or("bytes are no size up to 1 TiB")?;
            let name = unquoted(name).ok_or("a quote of the program's name is not closed")?;
            let program = *known.entry(name).or_insert_with_key(|name| {
                programs.push(Program { name: name.clone(), bytes: 0 });
                programs.len() - 1
            });
            if let Some(program) = programs.get_mut(program) {
                // A start that found part of its pages tells less than its plans read.
                program.bytes = program.bytes.max(bytes);
            }
            What::Starts { program, times }
        }
        _ => return Err("the event is neither start nor emptied".to_owned()),
    };
    Ok(Event { at, what })
}

/// The text of the last cell of a line.
fn unquoted(cell: &str) -> Option<String> {
    let text = match cell.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"')?.replace("\"\"", "\""),
        None => cell.to_owned(),
    };
    let guarded = usize::from(csv::is_guarded(&text));
    text.get(guarded..).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_again() {
        let program = |name: &str, bytes| Program { name: name.to_owned(), bytes };
        let programs = vec![program("/usr/bin/a", 5), program("/x, \"y\"", 7), program("=1", 9)];
        let start = |s: u64, program, times| Event {
            at: Nanos(s * 1_000_000_000),
            what: What::Starts { program, times },
        };
        let emptied = Event { at: Nanos(4_500_000_000), what: What::Emptied };
        let log =
            Log::new(programs, vec![start(7, 2, 1), start(3, 0, 2), emptied, start(5, 1, 1)]).expect("a log");
        let text = write(&log);
        assert!(text.starts_with(
            "seconds,event,times,bytes,program\n0.000,start,2,5,/usr/bin/a\n1.500,emptied,,,\n"
        ));
        let again = read(&text).expect("read");
        assert_eq!(write(&again), text);
        assert_eq!(again.programs, log.programs);
        assert_eq!(again.length(), log.length());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (line, why) in [
            ("x,start,1,1,a", "line 2: seconds"),
            ("-1,start,1,1,a", "line 2: seconds"),
            ("NaN,start,1,1,a", "line 2: seconds"),
            ("1,start,0,1,a", "line 2: times"),
            ("1,start,1,-1,a", "line 2: bytes"),
            ("1,start,1,1,\"a", "line 2: a quote"),
            ("1,stop,1,1,a", "line 2: the event"),
            ("1,start", "line 2: there is no cell for times"),
        ] {
            let error = read(&format!("{HEAD}\n{line}\n")).expect_err(line);
            assert!(error.starts_with(why), "{line}: {error}");
        }
        assert!(read("time,program\n").expect_err("head").contains(HEAD));
        assert_eq!(read(&format!("{HEAD}\n")).expect("empty").events(), []);
    }
}
