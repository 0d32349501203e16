//! What every picture is drawn with: its frame, words, lines, axes, markers.
//!
//! Looks are set by attributes; classes (`fg`, `muted`, `grid`, `bg`, …) let a page override them for a dark
//! background. Words pass through [`markup`].

use std::fmt::Write;

use crate::escape::{line, markup};

pub(crate) mod marker;

/// Height of a heading: what is drawn below it begins here.
pub(crate) const HEADING: f64 = 64.0;

/// Colour of words.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ink {
    /// What is read first.
    Strong,
    /// What explains it.
    Muted,
    /// What means something by its colour.
    Of(&'static str),
}

/// Begins a picture of this size on a light ground. `font`: size of words without one of their own.
pub(crate) fn open(title: &str, width: f64, height: f64, font: f64) -> String {
    let title = markup(title);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" font-family="system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif" font-size="{font}" fill="#1a1a1a"><title>{title}</title><rect class="bg" width="{width}" height="{height}" fill="#ffffff"/>"##
    )
}

/// Title and a line of facts, from `left` on.
pub(crate) fn heading(out: &mut String, left: f64, title: &str, facts: &str) {
    text(out, (left, 32.0), Ink::Strong, "font-size=\"20\" font-weight=\"600\"", &line(title, 100));
    text(out, (left, 52.0), Ink::Muted, "font-size=\"12\"", &line(facts, 160));
}

/// Ends a picture.
pub(crate) fn close(mut out: String) -> String {
    out.push_str("</svg>\n");
    out
}

/// Words at a place; `attributes` are more of the element's.
pub(crate) fn text(out: &mut String, (x, y): (f64, f64), ink: Ink, attributes: &str, content: &str) {
    let looks = match ink {
        Ink::Strong => "class=\"fg\" fill=\"#1a1a1a\"".to_owned(),
        Ink::Muted => "class=\"muted\" fill=\"#5a5a5a\"".to_owned(),
        Ink::Of(color) => format!("fill=\"{color}\""),
    };
    let content = markup(content);
    // Writing to a String cannot fail, here and everywhere.
    let _ = write!(out, r#"<text x="{x:.1}" y="{y:.1}" {looks} {attributes}>{content}</text>"#);
}

/// Colours of Okabe & Ito (2008), which all eyes tell apart.
pub(crate) const BLUE: &str = "#0072b2";
pub(crate) const VERMILION: &str = "#d55e00";
pub(crate) const GREEN: &str = "#009e73";
pub(crate) const PURPLE: &str = "#cc79a7";
/// Beside them, for what is compared with.
pub(crate) const GREY: &str = "#767676";

/// A bar from `left` to `right`.
pub(crate) fn bar(
    out: &mut String,
    (left, right): (f64, f64),
    (top, height): (f64, f64),
    color: &'static str,
) {
    let width = (right - left).max(0.0);
    let _ = write!(
        out,
        r#"<rect x="{left:.2}" y="{top:.1}" width="{width:.2}" height="{height:.1}" fill="{color}"/>"#
    );
}

/// What a colour means: a patch of it, and the words behind.
pub(crate) fn key(out: &mut String, (x, y): (f64, f64), color: &'static str, words: &str) {
    bar(out, (x, x + 14.0), (y - 10.0, 12.0), color);
    text(out, (x + 20.0, y), Ink::Muted, "", words);
}

/// A straight line.
pub(crate) fn rule(
    out: &mut String,
    (x1, y1): (f64, f64),
    (x2, y2): (f64, f64),
    class: &str,
    attributes: &str,
) {
    let _ = write!(
        out,
        r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" {attributes}/>"#
    );
}

/// A faint line between two places, by which values are read.
pub(crate) fn grid(out: &mut String, from: (f64, f64), to: (f64, f64)) {
    rule(out, from, to, "grid", "stroke=\"#e2e2e2\"");
}

/// The base of a plot.
pub(crate) fn base(out: &mut String, (left, right): (f64, f64), y: f64) {
    rule(out, (left, y), (right, y), "axis", "stroke=\"#5a5a5a\"");
}

/// A value of the upright axis: a line across and its label left of it.
pub(crate) fn level(out: &mut String, (left, right): (f64, f64), y: f64, label: &str) {
    grid(out, (left, y), (right, y));
    text(out, (left - 9.0, y + 5.0), Ink::Strong, "text-anchor=\"end\"", label);
}

/// A value of the lower axis: a tick and its label below.
pub(crate) fn foot(out: &mut String, (x, bottom): (f64, f64), label: &str) {
    rule(out, (x, bottom), (x, bottom + 5.0), "axis", "stroke=\"#5a5a5a\"");
    text(out, (x, bottom + 20.0), Ink::Strong, "text-anchor=\"middle\"", label);
}

/// What the lower axis is, below its labels.
pub(crate) fn under(out: &mut String, (left, right): (f64, f64), bottom: f64, what: &str) {
    text(out, (f64::midpoint(left, right), bottom + 40.0), Ink::Muted, "text-anchor=\"middle\"", what);
}

/// What the upright axis is, turned.
pub(crate) fn beside(out: &mut String, x: f64, (top, bottom): (f64, f64), what: &str) {
    let middle = f64::midpoint(top, bottom);
    let turned = format!("text-anchor=\"middle\" transform=\"rotate(-90 {x} {middle:.1})\"");
    text(out, (x, middle), Ink::Muted, &turned, what);
}
