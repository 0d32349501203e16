//! Patterns of paths: `*` and `?` within one name, `**` across names.

/// A pattern of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern(Vec<PatternPart>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternPart {
    /// Exactly this character; letters of the other case do not match.
    One(char),
    /// Any character but `/`.
    Any,
    /// Any number of characters but `/`.
    Name,
    /// Any number of any characters.
    Path,
}

impl Pattern {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            parts.push(match c {
                '\\' => PatternPart::One(chars.next().ok_or("a backslash at the end stands for nothing")?),
                '?' => PatternPart::Any,
                '*' if chars.peek() == Some(&'*') => {
                    while chars.peek() == Some(&'*') {
                        chars.next();
                    }
                    PatternPart::Path
                }
                '*' => PatternPart::Name,
                c => PatternPart::One(c),
            });
        }
        match parts.first() {
            Some(PatternPart::One('/') | PatternPart::Path) => Ok(Self(parts)),
            _ => Err(format!("{text:?} begins with neither / nor **")),
        }
    }

    /// The pattern that only this path matches.
    pub(super) fn escaped(path: &str) -> String {
        let mut out = String::with_capacity(path.len());
        for c in path.chars() {
            if matches!(c, '*' | '?' | '\\') {
                out.push('\\');
            }
            out.push(c);
        }
        out
    }

    /// Whether all of the path matches: the states of a machine side by side, so that no pattern takes more than its
    /// length times the path's.
    pub(super) fn matches(&self, path: &str) -> bool {
        let n = self.0.len();
        let mut now = vec![false; n + 1];
        let mut next = now.clone();
        self.enter(&mut now, 0);
        for c in path.chars() {
            next.fill(false);
            for (i, part) in self.0.iter().enumerate().filter(|(i, _)| now[*i]) {
                match part {
                    PatternPart::One(wanted) if *wanted == c => self.enter(&mut next, i + 1),
                    PatternPart::Any if c != '/' => self.enter(&mut next, i + 1),
                    PatternPart::Name if c != '/' => self.enter(&mut next, i),
                    PatternPart::Path => self.enter(&mut next, i),
                    _ => {}
                }
            }
            std::mem::swap(&mut now, &mut next);
        }
        now[n]
    }

    /// Enters a state, and those behind parts that may stand for nothing.
    fn enter(&self, states: &mut [bool], mut at: usize) {
        loop {
            states[at] = true;
            match self.0.get(at) {
                Some(PatternPart::Name | PatternPart::Path) => at += 1,
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stay_in_a_name_unless_doubled() {
        let rows = [
            ("/usr/lib/*.so", "/usr/lib/a.so", true),
            ("/usr/lib/*.so", "/usr/lib/x/a.so", false),
            ("/usr/lib/**.so", "/usr/lib/x/a.so", true),
            ("/usr/**/libc.so.?", "/usr/lib/x86/libc.so.6", true),
            ("/usr/**/libc.so.?", "/usr/lib/x86/libc.so.66", false),
            ("/a\\*b", "/a*b", true),
            ("/a\\*b", "/axb", false),
            ("**", "/any thing", true),
            ("/a**", "/a", true),
            ("/a*", "/a/", false),
            ("/ä?", "/äö", true),
        ];
        for (pattern, path, expected) in rows {
            assert_eq!(Pattern::parse(pattern).unwrap().matches(path), expected, "{pattern} {path}");
        }
        assert!(
            Pattern::parse("usr").is_err() && Pattern::parse("").is_err() && Pattern::parse("/a\\").is_err()
        );
    }

    #[test]
    fn a_pattern_of_stars_takes_no_time() {
        let pattern = Pattern::parse(&format!("/{}b", "*a".repeat(2000))).unwrap();
        assert!(!pattern.matches(&format!("/{}", "a".repeat(4000))));
    }

    proptest::proptest! {
        #[test]
        fn an_escaped_path_matches_itself_alone(path in "/[a-z*?\\\\ ]{0,12}", other in "/[a-z*?\\\\ ]{0,12}") {
            let pattern = Pattern::parse(&Pattern::escaped(&path)).unwrap();
            proptest::prop_assert!(pattern.matches(&path));
            proptest::prop_assert_eq!(pattern.matches(&other), path == other);
        }
    }
}
