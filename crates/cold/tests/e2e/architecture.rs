//! What ARCHITECTURE.md says of the crates is what their `Cargo.toml` files say.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

type Edges = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Of each crate those of ours that its programs and libraries are built from: no tests, no build scripts.
fn dependencies() -> Edges {
    let mut found = Edges::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let dir = entry.unwrap().path();
        let text = fs::read_to_string(dir.join("Cargo.toml")).unwrap();
        let section = text.lines().skip_while(|l| *l != "[dependencies]").skip(1);
        let names = section.take_while(|l| !l.starts_with('[')).filter(|l| l.starts_with("cold-"));
        let names = names.map(|l| l.split(['.', ' ', '=']).next().unwrap().to_owned());
        found.insert(dir.file_name().unwrap().to_str().unwrap().to_owned(), names.collect());
    }
    found
}

/// `a, b ─► c (why), d`, line by line.
fn arrows(document: &str) -> Edges {
    let names = |side: &str| -> Vec<String> {
        side.split(", ").map(|n| n.split_whitespace().next().unwrap().to_owned()).collect()
    };
    let drawn = document.split("Dependencies point one way").nth(1).unwrap().lines().skip(1);
    let drawn = drawn.take_while(|l| l.is_empty() || l.starts_with("    "));
    let mut found = Edges::new();
    for (from, to) in drawn.filter_map(|l| l.trim().split_once("─►")) {
        for from in names(from) {
            found.entry(from).or_default().extend(names(to));
        }
    }
    found
}

#[test]
fn every_crate_has_its_room_and_depends_on_what_lies_below() {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (dependencies, mut arrows) = (dependencies(), arrows(&document));
    assert_eq!(arrows.remove("cold"), Some(["everything".to_owned()].into()), "cold is above all of them");
    for (from, to) in &arrows {
        let real = &dependencies[from];
        assert!(to.is_subset(real), "{from} ─► {to:?}: it depends on {real:?}");
    }
    for (name, direct) in &dependencies {
        assert!(document.contains(&format!("\n| `{name}` |")), "{name} has no room");
        if matches!(name.as_str(), "cold" | "cold-testbed" | "cold-fuzz") {
            continue;
        }
        let mut below = BTreeSet::new();
        let mut open = vec![name];
        while let Some(next) = open.pop() {
            for to in arrows.get(next).into_iter().flatten() {
                if below.insert(to) {
                    open.push(to);
                }
            }
        }
        assert!(!below.contains(name), "the arrows from {name} lead back to it");
        let undrawn: Vec<_> = direct.iter().filter(|d| !below.contains(d)).collect();
        assert!(undrawn.is_empty(), "{name} depends on {undrawn:?}, which no arrow says");
    }
}

/// What clippy.toml gives one home each is asked for by each of these roots, and by no run of its own.
#[test]
fn every_program_and_library_keeps_to_the_homes_of_files_and_printing() {
    const DENIED: &str =
        "#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]";
    let mut roots = 0;
    for name in dependencies().keys().filter(|n| !matches!(n.as_str(), "cold-testbed" | "cold-fuzz")) {
        for root in ["lib.rs", "main.rs"].map(|file| root().join("crates").join(name).join("src").join(file))
        {
            let Ok(text) = fs::read_to_string(&root) else { continue };
            assert!(text.lines().any(|line| line.starts_with(DENIED)), "{}", root.display());
            roots += 1;
        }
    }
    assert!(roots > 20, "{roots}");
}
