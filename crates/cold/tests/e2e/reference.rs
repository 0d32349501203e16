//! `--help`, the reference in docs/, man pages and completions say the same.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::*;

/// Help of a command, 100 columns wide.
fn help(place: &Sandbox, command: &[String]) -> String {
    let mut args = command.to_vec();
    args.push("--help".to_owned());
    place.cold(args).run().expect(0).stdout
}

/// Every command with its help, found by reading the help.
fn commands(place: &Sandbox) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    let mut open = vec![Vec::<String>::new()];
    while let Some(command) = open.pop() {
        let text = help(place, &command);
        let listed = text
            .lines()
            .skip_while(|l| *l != "Commands:" || !text.contains(" <COMMAND>"))
            .skip(1)
            .take_while(|l| l.starts_with("  "));
        for line in listed.filter(|l| !l.starts_with("   ")) {
            let name = line.split_whitespace().next().unwrap();
            if name != "help" && !name.starts_with('-') {
                open.push([&command[..], &[name.to_owned()]].concat());
            }
        }
        found.push((command, text));
    }
    found
}

/// `--long-flags` named in the list of options.
fn flags(help: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in help.lines().filter(|l| l.trim_start().starts_with('-') && l.starts_with("  ")) {
        if let Some(at) = line.find("--") {
            let flag = line[at..].split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap();
            found.insert(flag.to_owned());
        }
    }
    found
}

#[test]
fn the_reference_is_the_help_of_every_command() {
    let place = Sandbox::new();
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let bless = std::env::var_os("COLD_BLESS").is_some();
    let mut expected = BTreeSet::new();
    for (command, help) in commands(&place) {
        let name = format!("{}.txt", [&["cold".to_owned()], &command[..]].concat().join("-"));
        if bless {
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join(&name), &help).unwrap();
        }
        let written = fs::read_to_string(dir.join(&name)).unwrap_or_default();
        assert!(
            written == help,
            "docs/reference/{name} is not the help (COLD_BLESS=1 cargo test writes it): {help}"
        );
        assert!(help.contains("Examples:") && help.contains("Exit codes:"), "{name} has examples and codes");
        assert!(help.lines().all(|l| l.chars().count() <= 100), "{name} fits 100 columns");
        expected.insert(name);
    }
    let files = fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path());
    let files = files.filter(|p| p.extension().is_some_and(|e| e == "txt"));
    let texts: BTreeSet<String> =
        files.map(|p| p.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(texts, expected);
    assert!(expected.len() >= 11, "{expected:?}");
}

#[test]
fn man_pages_mention_every_flag() {
    let place = Sandbox::new();
    let dir = place.path("man");
    place.cold(["man", dir.to_str().unwrap()]).run().expect(0);
    for (command, help) in commands(&place) {
        let name = format!("{}.1", [&["cold".to_owned()], &command[..]].concat().join("-"));
        let page =
            fs::read_to_string(dir.join(&name)).unwrap_or_else(|e| panic!("{name}: {e}")).replace("\\-", "-");
        let flags = flags(&help);
        assert!(flags.contains("--help") && flags.contains("--quiet"), "{name}: {flags:?}");
        for flag in flags {
            assert!(page.contains(&flag), "{name} does not mention {flag}");
        }
    }
}

#[test]
fn completions_mention_every_flag_and_are_valid_scripts() {
    let place = Sandbox::new();
    let all: BTreeSet<String> = commands(&place).iter().flat_map(|(_, help)| flags(help)).collect();
    assert!(all.len() > 40 && all.contains("--require-cold") && all.contains("--reclaim"), "{all:?}");
    for shell in ["bash", "zsh", "fish"] {
        let script = place.cold(["completions", shell]).run().expect(0).stdout;
        for flag in &all {
            let mentioned = match shell {
                "fish" => script.contains(&format!("-l {}", flag.trim_start_matches("--"))),
                _ => script.contains(flag),
            };
            assert!(mentioned, "{shell} does not complete {flag}");
        }
        let file = place.path(shell);
        fs::write(&file, script).unwrap();
        if let Ok(out) = Command::new(shell).arg("-n").arg(&file).output() {
            assert!(out.status.success(), "{shell}: {}", String::from_utf8_lossy(&out.stderr));
        }
    }
    let ran = place.cold(["completions", "tcl"]).run().expect(2);
    assert!(ran.stderr.starts_with("error: "));
}

/// Anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text
        .lines()
        .filter_map(|l| l.trim_start_matches('#').strip_prefix(' ').filter(|_| l.starts_with('#')));
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    headings.map(|h| h.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

/// Every `.md` file below a directory.
fn documents(dir: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
        if path.is_dir() {
            documents(&path, found);
        } else if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
}

#[test]
fn links_between_the_documents_lead_to_files_and_headings() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].map(|n| root.join(n)).into();
    documents(&root.join("docs"), &mut all);
    let mut links = 0;
    for path in &all {
        let text = fs::read_to_string(path).unwrap();
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(to, _)| to);
        for target in targets.filter(|t| !t.contains("://")) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let to = if file.is_empty() { path.clone() } else { path.with_file_name("").join(file) };
            assert!(to.exists(), "{}: {target} is not there", path.display());
            let there = anchor.is_empty() || anchors(&fs::read_to_string(&to).unwrap()).contains(anchor);
            assert!(there, "{}: {target}: no such heading", path.display());
            links += 1;
        }
    }
    assert!(links > 50, "{links} links in {} documents", all.len());
}
