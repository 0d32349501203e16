//! The table of a .OUT file.

use super::Ran;
use crate::spec::Mode;

/// The names of the columns, in two lines as the original prints them.
const HEAD: [(&str, &str); 21] = [
    ("", "PID"),
    ("", "TID"),
    ("File", "Mode"),
    ("Rec", "Size"),
    ("Total", "Time"),
    ("Resp", "Time"),
    ("Resp", "Count"),
    ("", "Mean"),
    ("", "SDev"),
    ("", "Min"),
    ("", "Max"),
    ("Think", "Mean"),
    ("Think", "SDev"),
    ("Reads", "Mean"),
    ("Reads", "SDev"),
    ("CPU", "Mean"),
    ("CPU", "SDev"),
    ("DataPg", "Mean"),
    ("DataPg", "SDev"),
    ("CodePg", "Mean"),
    ("CodePg", "SDev"),
];

/// One row per thread under the original's headings: times in milliseconds (three digits behind the point,
/// which 1993 did not need), `Total Time` of the measured half, `Resp Time` spent in responses.
pub fn table(ran: &[Ran]) -> Vec<Vec<String>> {
    let mut rows = vec![
        HEAD.iter().map(|h| h.0.to_owned()).collect::<Vec<_>>(),
        HEAD.iter().map(|h| h.1.to_owned()).collect(),
    ];
    rows.extend(ran.iter().map(row));
    rows
}

fn row(r: &Ran) -> Vec<String> {
    let (s, cycles) = (&r.script, &r.report.cycles);
    let ms = |ns: Option<f64>| ns.map_or("-".to_owned(), |ns| format!("{:.3}", ns / 1e6));
    let n = |v: f64| if v.fract() == 0.0 { format!("{v:.0}") } else { format!("{v}") };
    let letter = match s.mode {
        Mode::Direct => 'U',
        Mode::Buffered { .. } => 'B',
        Mode::Mapped(_) => 'M',
    };
    let mut cells = vec![
        r.place.0.to_string(),
        r.place.1.to_string(),
        format!("{} {letter}", if s.sequential { 'S' } else { 'R' }),
        s.record.to_string(),
        ms(Some(r.report.ns as f64)),
        ms(cycles.mean().map(|m| m * cycles.count as f64)),
        cycles.count.to_string(),
        ms(cycles.mean()),
        ms(cycles.sd()),
        ms(cycles.min().map(|v| v as f64)),
        ms(cycles.max().map(|v| v as f64)),
    ];
    for v in [s.think, s.reads, s.cpu, s.data, s.code] {
        cells.extend([n(v.mean), n(v.sd)]);
    }
    cells
}
