use cold_model::layout::Layouts;

use super::*;
use cold_model::sample::{PAGE, empty, long, ms};

fn layout() -> FileLayout {
    let symbol = |name: &str, offset, bytes| Symbol { name: name.to_string(), offset, bytes };
    let symbols = vec![symbol("a", 0, 100), symbol("b", 100, 50), symbol("huge", PAGE, 3 * PAGE)];
    FileLayout { symbols, ..FileLayout::default() }
}

#[test]
fn a_page_of_many_functions_names_none_without_the_instruction() {
    let l = layout();
    let name = |page, ip| symbol_at(&l, PAGE, page, ip).map(|(s, e)| (s.name.as_str(), e));
    assert_eq!(name(0, None), None);
    assert_eq!(name(0, Some(120)), Some(("b", SymbolEvidence::Instruction)));
    assert_eq!(name(0, Some(200)), None);
    assert_eq!(name(2, None), Some(("huge", SymbolEvidence::WholePage)));
    // The instruction lies elsewhere (it reads data): only the page can tell.
    assert_eq!(name(2, Some(120)), Some(("huge", SymbolEvidence::WholePage)));
    assert_eq!(name(0, Some(2 * PAGE)), None);
}

#[test]
fn functions_get_their_faults_waits_and_first_use() {
    let mut r = empty();
    let f = r.file("/bin/p", 16 * PAGE);
    r.mappings = Some(vec![Mapping {
        at: ms(0),
        pid: 10,
        address: 0x10000,
        bytes: 16 * PAGE,
        offset: 0,
        file: f,
        executable: true,
    }]);
    r.fault(5, 3, f, 0, 0..4);
    r.touches.as_mut().unwrap()[0].ip = Some(0x10000 + 110);
    r.touch(9, f, 2..3, TouchKind::Fault);
    r.touch(10, f, 3..4, TouchKind::Fault);
    let mut layouts = Layouts::default();
    layouts.files.insert(f, layout());
    let out = symbols(&Context::new(&r, &layouts));
    let short: Vec<_> = out.iter().map(|s| (s.symbol.as_str(), s.touches, s.stall, s.first_use)).collect();
    assert_eq!(short, [("b", 1, long(3), long(5)), ("huge", 2, long(0), long(9))]);
}
