//! A plan as a picture: which file's pages are read when. Time runs to the right, each file is a row, each
//! read a box as tall as its share of the file.

use std::fmt::Write;

use cold_model::Shown as _;
use cold_model::{Bytes, Nanos};
use cold_plan::Plan;
use cold_plan::plan::{Key, Step};

use crate::axis::Axis;
use crate::chart::{self, Ink, text};
use crate::escape::markup;
use crate::page::{self, Cell, table};

const WIDTH: f64 = 1280.0;
/// Room for the files' names.
const LEFT: f64 = 330.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = chart::HEADING;
const ROW: f64 = 22.0;
/// Files drawn, those of which most is read; the rest is summed up in the last line. More rows than a page can show
/// help nobody.
const ROWS: usize = 80;
/// Blue for what is read before the program begins, orange for the rest (Okabe and Ito).
const CRITICAL: &str = chart::BLUE;
const TAIL: &str = "#e69f00";

/// The reads of one file.
struct FileRow<'a> {
    path: String,
    /// As the plan knows it.
    size: u64,
    steps: Vec<&'a Step>,
}

impl FileRow<'_> {
    fn bytes(&self) -> u64 {
        self.steps.iter().map(|s| u64::from(s.bytes)).sum()
    }

    fn first_need(&self) -> u64 {
        self.steps.iter().map(|s| s.need_ns).min().unwrap_or(0)
    }

    /// Bytes that its row stands for: reads may go to the end of the last page.
    fn extent(&self) -> f64 {
        let end = self.steps.iter().map(|s| s.offset.saturating_add(s.bytes.into())).max().unwrap_or(0);
        self.size.max(end).max(1) as f64
    }
}

/// Rows by first need.
fn rows(plan: &Plan) -> Vec<FileRow<'_>> {
    let mut place = vec![None; plan.files.len()];
    let mut rows: Vec<FileRow<'_>> = Vec::new();
    for step in plan.reads() {
        let Some(slot) = place.get_mut(step.file as usize) else { continue };
        let at = *slot.get_or_insert_with(|| {
            let file = &plan.files[step.file as usize];
            let path = cold_model::path_text::encode(&file.path);
            rows.push(FileRow { path, size: file.identity.size, steps: Vec::new() });
            rows.len() - 1
        });
        rows[at].steps.push(step);
    }
    rows.sort_by_key(FileRow::first_need);
    rows
}

/// The rows of which most is read, still by first need.
fn largest<'a, 'p>(rows: &'a [FileRow<'p>]) -> Vec<&'a FileRow<'p>> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(rows.get(*i).map_or(0, FileRow::bytes)));
    order.truncate(ROWS);
    order.sort_unstable();
    order.into_iter().filter_map(|i| rows.get(i)).collect()
}

/// The picture alone.
pub fn svg(plan: &Plan) -> String {
    let rows = rows(plan);
    let shown = largest(&rows);
    let drawn = shown.len();
    let last = plan.steps.iter().map(|s| s.need_ns).max().unwrap_or(0);
    let axis = Axis::new(0.0, last.max(plan.learnt.cpu_ns) as f64, 8);
    let x = |ns: f64| LEFT + (WIDTH - LEFT - RIGHT) * axis.place(ns);
    let bottom = TOP + ROW * drawn as f64;
    let title = format!("What {} needs when", program(plan));
    let mut out = chart::open(&title, WIDTH, bottom + 70.0, 12.0);
    chart::heading(&mut out, 20.0, &title, &summary(plan, rows.len()));
    for &tick in &axis.ticks {
        chart::grid(&mut out, (x(tick), TOP), (x(tick), bottom));
        chart::foot(&mut out, (x(tick), bottom), &axis.time_label(tick));
    }
    for (i, row) in shown.iter().enumerate() {
        draw(&mut out, row, TOP + ROW * i as f64, &x);
    }
    let bytes = |rows: &mut dyn Iterator<Item = &FileRow<'_>>| rows.map(FileRow::bytes).sum::<u64>();
    let rest = bytes(&mut rows.iter()) - bytes(&mut shown.iter().copied());
    let mut foot = "need time, waits taken out; blue is read before the program begins".to_owned();
    if rows.len() > ROWS {
        let _ = write!(
            foot,
            "; {} more files, of which less is read ({} in all), are not drawn",
            rows.len() - ROWS,
            Bytes(rest)
        );
    }
    text(&mut out, (LEFT, bottom + 40.0), Ink::Muted, "", &foot);
    chart::close(out)
}

/// The program, or the script that an interpreter runs.
fn program(plan: &Plan) -> String {
    let Key { executable, script, .. } = &plan.key;
    match script {
        Some(script) => format!("{} with {}", executable.shown(), script.shown()),
        None => executable.shown().to_string(),
    }
}

fn summary(plan: &Plan, files: usize) -> String {
    let (bytes, requests) = (Bytes(plan.read_bytes()), plan.reads().count());
    format!("{bytes} in {requests} requests, {files} files; scenario {}", plan.key.scenario)
}

/// One file: its name, its reads. The place of a box within the row is its place in the file.
fn draw(out: &mut String, row: &FileRow<'_>, top: f64, x: &dyn Fn(f64) -> f64) {
    let name: String = {
        let n = row.path.chars().count();
        let cut: String = row.path.chars().skip(n.saturating_sub(44)).collect();
        if n > 44 { format!("…{cut}") } else { cut }
    };
    text(out, (LEFT - 8.0, top + ROW / 2.0 + 4.0), Ink::Muted, "text-anchor=\"end\"", &name);
    let (tall, extent) = (ROW - 4.0, row.extent());
    for step in &row.steps {
        let (first, share) = (step.offset as f64 / extent, f64::from(step.bytes) / extent);
        let color = if step.critical { CRITICAL } else { TAIL };
        let _ = write!(
            out,
            r#"<rect x="{:.1}" y="{:.2}" width="3" height="{:.2}" fill="{color}"><title>{}: {} at {}, needed at {}</title></rect>"#,
            x(step.need_ns as f64),
            top + 2.0 + tall * first.min(1.0),
            (tall * share).clamp(0.6, tall),
            markup(&row.path),
            Bytes(step.bytes.into()),
            Bytes(step.offset),
            Nanos(step.need_ns),
        );
    }
}

/// A page of its own: the picture, and a table with every file.
pub fn html(plan: &Plan) -> String {
    let mut files = String::new();
    let cells = |row: FileRow<'_>| {
        let bytes = Cell::number(row.bytes() as f64, Bytes(row.bytes()).to_string());
        let requests = Cell::number(row.steps.len() as f64, row.steps.len().to_string());
        let need = Cell::number(row.first_need() as f64, Nanos(row.first_need()).to_string());
        vec![Cell::text(row.path), bytes, requests, need]
    };
    let head = ["file", "read", "requests", "first need"];
    table(&mut files, "sortable", &head, 1, rows(plan).into_iter().map(cells));
    page::report(&format!("Plan of {}", program(plan)), "cold prefetch", &svg(plan), &files)
}

#[cfg(test)]
mod tests {
    use cold_plan::Plan;
    use cold_plan::plan::FileKind;

    use super::*;

    fn plan() -> Plan {
        let mut plan = cold_plan::sample::sample();
        for f in plan.files.iter_mut().filter(|f| f.kind == FileKind::Regular) {
            f.path = "/opt/<b>&\u{1b}[31m".into();
        }
        plan
    }

    #[test]
    fn every_read_is_a_box_and_names_stay_text() {
        let plan = plan();
        let reads = plan.reads().count();
        assert!(reads > 0);
        let picture = svg(&plan);
        assert_eq!(picture.matches("width=\"3\"").count(), reads);
        assert!(!picture.contains("<b>") && !picture.contains('\u{1b}'));
        let page = html(&plan);
        assert!(page.contains("<table ") && !page.contains("<b>"));
    }

    #[test]
    fn the_largest_files_are_drawn_though_they_are_needed_last() {
        let mut plan = plan();
        let (file, step) = (plan.files[0].clone(), *plan.reads().next().unwrap());
        (plan.files, plan.steps) = (Vec::new(), Vec::new());
        for i in 0..100 {
            plan.files.push(cold_plan::plan::PlanFile { path: format!("/lib/f{i}").into(), ..file.clone() });
            let bytes = if i < 90 { 4096 } else { 8192 };
            plan.steps.push(Step { file: i, bytes, offset: 0, need_ns: u64::from(i), ..step });
        }
        let picture = svg(&plan);
        assert!((90..100).all(|i| picture.contains(&format!(">/lib/f{i}<"))), "{picture}");
        assert!(picture.contains("20 more files, of which less is read (80.0 KiB in all)"), "{picture}");
    }

    #[test]
    fn the_axis_has_round_times() {
        let mut plan = plan();
        plan.learnt.cpu_ns = 317_300_000;
        let picture = svg(&plan);
        assert!(picture.contains(">0 ms<") && picture.contains(">50 ms<") && picture.contains(">350 ms<"));
    }

    #[test]
    fn an_empty_plan_is_an_empty_picture() {
        let plan = Plan { files: Vec::new(), ranges: Vec::new(), steps: Vec::new(), ..plan() };
        assert!(svg(&plan).ends_with("</svg>\n"));
    }
}
