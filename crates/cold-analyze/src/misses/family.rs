//! Directories side by side in which the same names are looked for: `conf.d/00`, `conf.d/01`, ….

use std::collections::{BTreeSet, HashMap, HashSet};

/// So many directories with one name are a pattern; two or three are a list that somebody wrote.
const LEAST: usize = 4;

/// Failed lookups by the directory above the one that was searched.
#[derive(Debug, Default)]
pub(super) struct Families<'a> {
    /// Per directory above and name that was looked for: the directories in between.
    between: HashMap<&'a str, HashMap<&'a str, BTreeSet<&'a str>>>,
}

impl<'a> Families<'a> {
    /// `name` was not in `directory`.
    pub(super) fn add(&mut self, directory: &'a str, name: &'a str) {
        if let Some((above, part)) = directory.rsplit_once('/').filter(|(above, _)| !above.is_empty()) {
            self.between.entry(above).or_default().entry(name).or_default().insert(part);
        }
    }

    /// What the directory has in common with those beside it.
    pub(super) fn of(&self, directory: &str) -> Option<String> {
        let (above, part) = directory.rsplit_once('/')?;
        let beside: HashSet<&str> = self
            .between
            .get(above)?
            .values()
            .filter(|parts| parts.len() >= LEAST && parts.contains(part))
            .flatten()
            .copied()
            .collect();
        (!beside.is_empty()).then(|| format!("{above}/{}", pattern(&beside)))
    }
}

/// `NN` where all are numbers of two digits, `web-N` where only a number differs, else `*`.
fn pattern(parts: &HashSet<&str>) -> String {
    let masked =
        |part: &str| part.chars().map(|c| if c.is_ascii_digit() { 'N' } else { c }).collect::<String>();
    let short = |mask: String| {
        let mut out = String::new();
        for c in mask.chars() {
            if c != 'N' || !out.ends_with('N') {
                out.push(c);
            }
        }
        out
    };
    let masks: BTreeSet<String> = parts.iter().map(|p| masked(p)).collect();
    if let [one] = masks.iter().collect::<Vec<_>>().as_slice() {
        return (*one).clone();
    }
    let shorter: BTreeSet<String> = masks.into_iter().map(short).collect();
    match shorter.into_iter().collect::<Vec<_>>().as_slice() {
        [one] => one.clone(),
        _ => "*".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(directories: &[&str]) -> Option<String> {
        let mut f = Families::default();
        for d in directories {
            f.add(d, "app.json");
        }
        f.of(directories[0])
    }

    #[test]
    fn numbers_and_names_side_by_side_are_a_pattern() {
        let of =
            |parts: [&str; 4]| family(&parts.map(|p| format!("/etc/app/{p}")).each_ref().map(String::as_str));
        assert_eq!(of(["00", "01", "02", "17"]).as_deref(), Some("/etc/app/NN"));
        assert_eq!(of(["web-1", "web-2", "web-12", "web-3"]).as_deref(), Some("/etc/app/web-N"));
        assert_eq!(of(["a", "b", "c", "d"]).as_deref(), Some("/etc/app/*"));
    }

    #[test]
    fn a_few_directories_or_other_names_are_none() {
        assert_eq!(family(&["/etc/a", "/etc/b", "/etc/c"]), None);
        assert_eq!(family(&["/a", "/b", "/c", "/d", "/e"]), None);
        let mut f = Families::default();
        for (d, name) in [("/w/a", "1"), ("/w/b", "2"), ("/w/c", "3"), ("/w/d", "4")] {
            f.add(d, name);
        }
        assert_eq!(f.of("/w/a"), None);
    }
}
