//! What was cached before a start.

use cold_model::recording::Resident;

use super::*;

/// (path, first page, pages)
fn rows(r: &Recording) -> Option<Vec<(String, u64, u32)>> {
    let row = |c: &Resident| (path(r, c.file), c.first_page, c.pages);
    r.residency.as_ref().map(|rows| rows.iter().map(row).collect())
}

fn events() -> Vec<Vec<u8>> {
    let (f, g) = (id(5), id(6));
    let (c, stranger) = (fault_context(20, f, 3), fault_context(20, g, 3));
    vec![
        named(f, 100, "lib"),
        named(g, 100, "not the start's"),
        pages(7, 21, c, f, 3, 3),
        add(22, c, f, 0, 2),
        // 40 to 43 go, of which 40 and 41 come back; 60 comes and goes.
        delete(30, f, 40, 2),
        add(31, c, f, 40, 1),
        add(32, stranger, f, 60, 0),
        delete(33, f, 60, 0),
        add(34, stranger, g, 1, 0),
    ]
}

#[test]
fn what_is_there_in_the_end_and_did_not_come_was_there_before_and_so_was_what_went_first() {
    let now = vec![(5, vec![(0, 4), (40, 2), (90, 3)]), (6, vec![(0, 50)])];
    let lib = |first, pages| ("/lib".to_owned(), first, pages);
    assert_eq!(rows(&run_on(&events(), now)), Some(vec![lib(40, 4), lib(90, 3)]));
}

#[test]
fn a_look_before_it_counts_for_more_than_one_after_it() {
    let mut facts = facts();
    for (after, runs) in [(false, vec![(7, 2)]), (true, vec![(0, 4), (7, 2), (90, 3)])] {
        facts.push(Fact::Resident { after, dev: dev(1), inode: 5, runs });
    }
    let r = assemble(log(&facts, &events()), &mut InnermostOnly, &mut Cached(Vec::new(), None));
    assert_eq!(rows(&r), Some(vec![("/lib".to_owned(), 7, 2)]));
}

#[test]
fn nothing_is_said_where_nobody_looked_or_something_was_lost() {
    assert_eq!(rows(&run(&events())), None);
    let mut lossy = facts();
    lossy.push(Fact::Lost([("pages".to_owned(), 1)].into()));
    let now = Cached(vec![(5, vec![(90, 3)])], None);
    let r = assemble(log(&lossy, &events()), &mut InnermostOnly, &mut { now });
    assert_eq!(rows(&r), None);
}
