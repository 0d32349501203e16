//! The readers for arbitrary bytes.

use crate::format::{View, decode, encode, seal};
use crate::store::private;
use crate::{history, portable};

/// Reads `bytes` as a plan as they are, and with checksums that fit, so that what lies behind them is
/// reached. What is a plan encodes to something that decodes to the same.
///
/// # Panics
/// Where it does not, or where the view gives something else than the values.
pub fn plan(bytes: &[u8]) {
    let mut sealed = bytes.to_vec();
    seal(&mut sealed);
    for bytes in [bytes, &sealed] {
        let Ok(view) = View::parse(bytes) else {
            assert!(decode(bytes).is_err());
            continue;
        };
        // What a launcher does with it, before anybody looked at the evidence.
        let files = view.files().len();
        assert!(view.steps().all(|s| view.file(s.file).is_some() && (s.file as usize) < files));
        assert!(view.critical_steps().len() + view.tail_steps().len() == view.steps().len());
        assert!(view.files().all(|f| f.path_cstr().to_bytes() == f.path().as_os_str().as_encoded_bytes()));
        let _ = (view.key(), view.knobs(), view.learnt(), view.standing(), view.bound(), view.trial());
        if let Ok(plan) = view.to_plan() {
            let again = encode(&plan).ok().and_then(|b| decode(&b).ok());
            assert_eq!(again.as_ref(), Some(&plan));
        }
    }
    if let Ok(parts) = private::parse(bytes) {
        let again = private::bytes(&parts).ok().and_then(|b| private::parse(&b).ok());
        assert_eq!(again.as_ref(), Some(&parts));
    }
}

/// Reads `bytes` as a history.
///
/// # Panics
/// Where a record that was read is not the record that is written.
pub fn history(bytes: &[u8]) {
    for record in history::parse(bytes) {
        assert_eq!(history::Record::decode(&record.encode()), Some(record));
    }
}

/// Reads `bytes` as an exported plan.
pub fn portable(bytes: &[u8]) {
    let sections = portable::Parts::from(vec![portable::Part(".text".to_owned(), 4096, 1 << 20)]);
    let _ = portable::import(
        &String::from_utf8_lossy(bytes),
        &|_| None,
        &|_| sections.clone(),
        portable::Others::Carry,
    );
}
