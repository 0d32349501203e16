//! The frame of every page, one policy for all: no request to anywhere, and of scripts and styles exactly ours, by
//! digest. Then what reports have in common: their style, their picture on top, their tables.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::escape::markup;

/// Style of the pages whose picture is an SVG.
const STYLE: &str = include_str!("page/style.css");
/// Sorts tables of the class `sortable`.
const SORT: &str = include_str!("page/script.js");

/// A whole page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page<'a> {
    /// Its title, as text.
    pub(crate) title: &'a str,
    /// The command that made it.
    pub(crate) program: &'a str,
    /// Its only style.
    pub(crate) style: &'a str,
    /// Its only script; may be empty.
    pub(crate) script: &'a str,
}

impl Page<'_> {
    /// The page with this markup as its body.
    pub(crate) fn html(self, body: &str) -> String {
        let Self { title, program, style, script } = self;
        let title = markup(title);
        let scripts = if script.is_empty() { "'none'".to_owned() } else { allowed(script) };
        let element = if script.is_empty() { String::new() } else { format!("<script>{script}</script>") };
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src {}; \
             script-src {scripts}; base-uri 'none'; form-action 'none'\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <title>{title} – {program}</title><style>{style}</style></head><body>\n{body}\n{element}</body></html>\n",
            allowed(style)
        )
    }
}

/// The expression of a policy that allows this inline text.
fn allowed(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

/// A report: a picture that shows its title, and the markup below it.
pub(crate) fn report(title: &str, program: &str, picture: &str, below: &str) -> String {
    let script = if below.contains("class=\"sortable") { SORT } else { "" };
    let heading = markup(title);
    let body = format!("<main>\n<h1>{heading}</h1>\n<figure>{picture}</figure>\n{below}</main>");
    Page { title, program, style: STYLE, script }.html(&body)
}

/// One cell: what is shown, by what it is sorted, what hovering shows.
#[derive(Debug, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) sort: Option<f64>,
    pub(crate) hover: String,
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
    pub(crate) fn number(value: f64, text: impl Into<String>) -> Self {
        Self { text: text.into(), sort: Some(value), hover: String::new() }
    }
    pub(crate) fn unknown(why: &str) -> Self {
        Self { text: "unknown".into(), sort: None, hover: why.to_owned() }
    }
    /// A time in nanoseconds; a dash where there is none.
    pub(crate) fn time(ns: Option<f64>) -> Self {
        ns.map_or_else(|| Self::text("–"), |v| Self::number(v, crate::axis::time(v)))
    }
}

/// A table; the first `text` columns are text, the others figures.
pub(crate) fn table(
    out: &mut String,
    class: &str,
    head: &[&str],
    text: usize,
    rows: impl IntoIterator<Item = Vec<Cell>>,
) {
    let kind = |i: usize| if i < text { "" } else { " class=\"n\"" };
    let _ = write!(out, "<div class=\"wide\"><table class=\"{class}\"><thead><tr>");
    for (i, name) in head.iter().enumerate() {
        let _ = write!(out, "<th scope=\"col\"{}>{}</th>", kind(i), markup(name));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (i, cell) in row.iter().enumerate() {
            let sort = cell.sort.map_or(String::new(), |v| format!(" data-v=\"{v}\""));
            let hover = if cell.hover.is_empty() {
                String::new()
            } else {
                format!(" title=\"{}\"", markup(&cell.hover))
            };
            let _ = write!(out, "<td{}{sort}{hover}>{}</td>", kind(i), markup(&cell.text));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the page's policy allows.
    fn policy(page: &str) -> &str {
        page.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap()
    }

    #[test]
    fn a_page_allows_its_own_style_and_script_and_nothing_else() {
        let page = Page { title: "a <b>", program: "cold", style: "p{}", script: "1" }.html("<p>x</p>");
        assert!(page.contains("<title>a &lt;b&gt; – cold</title><style>p{}</style>"), "{page}");
        let expected = format!(
            "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
            allowed("p{}"),
            allowed("1")
        );
        assert_eq!(policy(&page), expected);
        // The first example of FIPS 180-4.
        assert_eq!(allowed("abc"), "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='");
        let silent = Page { title: "", program: "", style: "p{}", script: "" }.html("");
        assert!(policy(&silent).contains("script-src 'none'") && !silent.contains("<script"), "{silent}");
    }

    #[test]
    fn every_report_has_that_policy_and_sorts_what_can_be_sorted() {
        let plan = crate::plan::html(&cold_plan::sample::sample());
        assert!(policy(&plan).contains(&allowed(SORT)) && plan.contains(SORT));
        let probe = crate::probe::html("t", "f", &[]);
        for page in [&plan, &probe] {
            assert!(policy(page).contains(&allowed(STYLE)) && page.contains(STYLE));
            assert!(!policy(page).contains("unsafe"));
            crate::svg::tests::assert_well_formed(
                page.split("<figure>").nth(1).unwrap().split("</figure>").next().unwrap(),
            );
        }
    }
}
