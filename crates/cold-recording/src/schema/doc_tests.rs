//! docs/formats/recording.md, order.md and fleet.md are in step with the schema.

use std::fmt::Write;
use std::path::Path;

use super::*;

const BEGIN: &str = "by COLD_BLESS=1 cargo test -p cold-recording -->\n";
const END: &str = "<!-- end of the generated part -->";

fn generated(tables: Vec<Documented>) -> String {
    let mut text = String::new();
    for table in tables {
        let Documented { name, tiers, doc, columns } = table;
        let tiers = if tiers.is_empty() { String::new() } else { format!(" Tiers: {tiers}.") };
        write!(text, "\n### {name}\n\n{doc}{tiers}\n\n").unwrap();
        text.push_str("| column | type | unit | meaning |\n|---|---|---|---|\n");
        for About { name, kind, optional, unit, doc, .. } in columns {
            let null = if optional { ", null" } else { "" };
            let refers = match kind {
                ColumnKind::Ref(target) => format!(" Row of [`{target}`](#{target})."),
                ColumnKind::Choice(words) if words.iter().any(|w| !doc.contains(&format!("`{w}`"))) => {
                    format!(" One of `{}`.", words.join("`, `"))
                }
                _ => String::new(),
            };
            writeln!(text, "| `{name}` | {}{null} | {unit} | {doc}{refers} |", kind.name()).unwrap();
        }
    }
    text.push('\n');
    text
}

#[test]
fn the_documentation_lists_every_table_and_column() {
    in_step("recording.md", documented());
    let mut order = Documentation(Vec::new());
    order.table(&tables::order::FUNCTIONS, &[]).unwrap();
    order.table(&tables::order::ENTRIES, &[]).unwrap();
    in_step("order.md", order.0);
    let mut fleet = Documentation(Vec::new());
    fleet.table(&tables::fleet::STARTS, &[]).unwrap();
    fleet.table(&tables::fleet::PAGES, &[]).unwrap();
    fleet.table(&tables::fleet::REMEDIES, &[]).unwrap();
    in_step("fleet.md", fleet.0);
}

fn in_step(file: &str, tables: Vec<Documented>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats").join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let begin = text.find(BEGIN).unwrap() + BEGIN.len();
    let end = text.find(END).unwrap();
    if std::env::var_os("COLD_BLESS").is_some() {
        std::fs::write(&path, format!("{}{}{}", &text[..begin], generated(tables), &text[end..])).unwrap();
        return;
    }
    assert_eq!(&text[begin..end], generated(tables), "COLD_BLESS=1 cargo test -p cold-recording writes it");
}
