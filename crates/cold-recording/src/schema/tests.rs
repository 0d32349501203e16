use std::collections::BTreeSet;

use super::*;

#[test]
fn names_are_unique_and_references_lead_somewhere() {
    let all = documented();
    let names: BTreeSet<_> = all.iter().map(|t| t.name).collect();
    assert_eq!(names.len(), 17);
    for table in &all {
        let columns: BTreeSet<_> = table.columns.iter().map(|c| c.name).collect();
        assert_eq!(columns.len(), table.columns.len(), "{}", table.name);
        for column in &table.columns {
            assert!(
                !column.doc.is_empty() && column.doc.ends_with(['.', '…']),
                "{}.{}",
                table.name,
                column.name
            );
            assert!(!column.optional || column.doc.contains("Null: "), "{}.{}", table.name, column.name);
            if let ColumnKind::Ref(target) = column.kind {
                let target = all.iter().find(|t| t.name == target).unwrap();
                assert_eq!(target.columns[0].kind, ColumnKind::Id);
            }
        }
    }
}

/// The same word in Parquet, CSV and wherever serde writes the type.
#[test]
fn words_are_those_of_the_model() {
    use cold_model::recording::tables::{FileKind, FillCause, StallCause};
    fn same<T: Field + serde::de::DeserializeOwned + serde::Serialize>() {
        let ColumnKind::Choice(words) = T::KIND else { panic!("no choice") };
        for word in words {
            let value: T = serde_json::from_value((*word).into()).unwrap();
            let Cell::Word(written) = value.cell() else { panic!("no word") };
            assert_eq!(written, *word);
        }
    }
    same::<cold_model::recording::tables::Began>();
    same::<FileKind>();
    same::<cold_model::recording::PathFrom>();
    same::<cold_model::recording::TouchKind>();
    same::<FillCause>();
    same::<cold_model::recording::ReadaheadKind>();
    same::<StallCause>();
    same::<cold_model::recording::LookupKind>();
}
