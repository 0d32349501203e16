//! The tables of a fleet's dataset.

use super::super::{About, Column, Field, Table};
use super::{dictionary_of, kind_of, optional_of};
use crate::fleet::{PagesRow, RemedyRow, StartRow};

table! {
    STARTS: StartRow = "starts", "",
        "A recorded start. Its file is written last: rows of the other tables whose start is not here do not count.";
    check |_, _| None;
    start, "", "Name of the start, made of the recording: 32 hexadecimal digits.";
    started, "ns", "When, since 1970.";
    fold, "", "0 to 9, made of the name: what may be held out to judge what was learnt from the others.";
    scenario, "", "Name of the way in which the program was started.";
    executable, "", "The program, as a text that can be turned back ([paths](paths.md)); redacted where it begins with `redacted/`.";
    executable_build_id, "", "Its GNU build-id in hexadecimal. Empty: it has none, or it is not known.";
    executable_size, "bytes", "Its size; 0: not known.";
    script, "", "What an interpreter ran. Empty: the executable itself.";
    kernel, "", "The kernel's release.";
    os, "", "Name and version of the system. Empty: not known.";
    tier, "", "Tier of the recording, `A` to `D`.";
    state, "", "State of the cache that was asked for: `cold`, `warm`, …; `as found`.";
    exact, "", "Faults were exact to the page.";
    one_thread, "", "No other thread or process was there beside the first.";
    whole, "", "The recording is complete and no event was lost: what it needed counts.";
    undisturbed, "", "And nothing disqualified it as a measurement: its times count.";
    ready, "ns", "Start to ready.";
    computing, "ns", "The same with the waits of the first process' line taken out.";
    waited, "ns", "Time in which at least one task waited for storage. Null: not known, here and in what follows.";
    needed, "bytes", "Pages that were needed, an upper bound where the start is not exact.";
    read, "bytes", "Read into the page cache by the start.";
    unused, "bytes", "Of these, not needed.";
    requests, "", "Requests to devices.";
    files, "", "Regular files that were executed, mapped or opened.";
    lookups, "", "Names that were looked up.";
    misses, "", "Of these, names that were not there.";
}

table! {
    PAGES: PagesRow = "pages", "",
        "What a start needed and a plan can hold. Rows of one start and file have no page in common.";
    check |r, _| r.first_page.checked_add(r.pages).is_none().then_some("pages beyond the last one");
    start, "", "The start.";
    kind, "", "`regular`: pages of a file; `directory`: it was listed; `name`: it was looked up.";
    path, "", "The file, as `executable` of `starts`.";
    build_id, "", "Its GNU build-id. Empty: it has none, or it is not known.";
    size, "bytes", "Its size; 0 for directories and names.";
    first_page, "pages", "First page, of 4096 bytes.";
    pages, "pages", "Number of pages; 0 for directories and names.";
    need, "ns", "First need, from the exec, without waits.";
    around, "", "Only an upper bound: mapped around a fault.";
    sections, "", "The file's loaded sections as a JSON array of name, offset and bytes. Empty: it has none, or they are not known.";
}

table! {
    REMEDIES: RemedyRow = "remedies", "",
        "What would help a start, by the advice of its report.";
    check |_, _| None;
    start, "", "The start.";
    remedy, "", "Stable name of the advice (`prefetch_plan`, …).";
    saves, "ns", "Time that it would save. Null: not known.";
}
