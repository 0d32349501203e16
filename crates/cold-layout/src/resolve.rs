//! The functions of one build found again in another.

use std::borrow::Cow;
use std::collections::HashMap;

use cold_model::order::Function;

/// How functions of traces were found in the program that is to be ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resolved {
    /// By address, in the same build.
    pub by_address: u64,
    /// By the same name.
    pub by_name: u64,
    /// By a name that differs in hashes only.
    pub without_hash: u64,
    /// Not at all.
    pub missing: u64,
}

impl Resolved {
    /// The counts of both, added.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            by_address: self.by_address.saturating_add(other.by_address),
            by_name: self.by_name.saturating_add(other.by_name),
            without_hash: self.without_hash.saturating_add(other.without_hash),
            missing: self.missing.saturating_add(other.missing),
        }
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        [self.by_address, self.by_name, self.without_hash, self.missing]
            .iter()
            .fold(0, |a, b| a.saturating_add(*b))
    }
}

/// Finds functions by name.
#[derive(Debug)]
pub struct Resolver<'a> {
    functions: &'a [Function],
    exact: HashMap<&'a str, Vec<u32>>,
    hashless: HashMap<Cow<'a, str>, Vec<u32>>,
}

impl<'a> Resolver<'a> {
    /// For a program with these functions, by address.
    pub fn new(functions: &'a [Function]) -> Self {
        let (mut exact, mut hashless) = (HashMap::<_, Vec<u32>>::new(), HashMap::<_, Vec<u32>>::new());
        for (f, n) in functions.iter().zip(0..) {
            for name in &f.names {
                exact.entry(name.as_str()).or_default().push(n);
                hashless.entry(without_hashes(name)).or_default().push(n);
            }
        }
        Self { functions, exact, hashless }
    }

    /// The function at this address of the same build.
    pub fn at(&self, address: u64) -> Option<u32> {
        let n = self.functions.binary_search_by_key(&address, |f| f.address).ok()?;
        u32::try_from(n).ok()
    }

    /// The functions that a function of another build is here, and the count of how.
    pub fn find<'s>(&'s self, f: &Function, count: &mut Resolved) -> &'s [u32] {
        let exact = f.names.iter().find_map(|name| self.exact.get(name.as_str()));
        let (found, counter) = match exact {
            Some(found) => (found.as_slice(), &mut count.by_name),
            None => match f.names.iter().find_map(|name| self.hashless.get::<str>(&without_hashes(name))) {
                Some(found) => (found.as_slice(), &mut count.without_hash),
                None => (&[][..], &mut count.missing),
            },
        };
        *counter = counter.saturating_add(1);
        found
    }

    /// How many names of `order` stand for more than one function: a linker places all of them together.
    pub fn ambiguous(&self, order: &[u32]) -> u64 {
        let names = order.iter().filter_map(|n| self.functions.get(*n as usize)?.name());
        names.filter(|name| self.exact.get(name).is_some_and(|all| all.len() > 1)).count() as u64
    }
}

/// A name without what changes from build to build: suffixes of LLVM's and of unique internal names, the hash of Rust's
/// legacy mangling, the disambiguators of crates in its v0 mangling.
pub fn without_hashes(name: &str) -> Cow<'_, str> {
    let end = [".llvm.", ".__uniq."].iter().filter_map(|mark| name.find(mark)).min().unwrap_or(name.len());
    let name = name.get(..end).unwrap_or(name);
    if let Some(hashless) = legacy(name) {
        return hashless.into();
    }
    if name.starts_with("_R") { v0(name).into() } else { name.into() }
}

/// `_ZN…17h0123456789abcdefE` without the hash.
fn legacy(name: &str) -> Option<&str> {
    const HASH: usize = 16;
    let body = name.starts_with("_ZN").then(|| name.strip_suffix('E'))??;
    let (head, hash) = body.split_at_checked(body.len().checked_sub(HASH)?)?;
    let is_hash = hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    head.strip_suffix("17h").filter(|_| is_hash)
}

/// `_RNvCs1a2b_5crate4name` as `_RNvC5crate4name`. What looks so within an identifier goes, too: both sides of a
/// comparison lose the same.
fn v0(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("Cs") {
        let (head, tail) = rest.split_at(at);
        out.push_str(head);
        let number = tail.get(2..).unwrap_or_default();
        let digits = number.bytes().take_while(u8::is_ascii_alphanumeric).count();
        if number.as_bytes().get(digits) == Some(&b'_') {
            out.push('C');
            rest = number.get(digits.saturating_add(1)..).unwrap_or_default();
        } else {
            out.push_str("Cs");
            rest = number;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(address: u64, names: &[&str]) -> Function {
        Function {
            address,
            bytes: 8,
            names: names.iter().map(|n| (*n).to_owned()).collect(),
            sources: vec![],
        }
    }

    #[test]
    fn hashes_go_and_nothing_else() {
        for (name, bare) in [
            ("_ZN4core3fmt5write17h0123456789abcdefE", "_ZN4core3fmt5write"),
            ("_ZN4core3fmt5write17h0123456789abcdefE.llvm.123", "_ZN4core3fmt5write"),
            ("_ZN4core3fmt5write17h0123456789abcdeXE", "_ZN4core3fmt5write17h0123456789abcdeXE"),
            ("_ZN3foo3barEv", "_ZN3foo3barEv"),
            ("_RNvNtCs1234_7mycrate3foo3bar", "_RNvNtC7mycrate3foo3bar"),
            ("_RINvCsa_1aNtCsbc_1b1cE", "_RINvC1aNtC1b1cE"),
            ("_RNvC7mycrate3foo", "_RNvC7mycrate3foo"),
            ("helper.__uniq.9876.llvm.12", "helper"),
            ("main", "main"),
            ("", ""),
            ("foo.cold", "foo.cold"),
        ] {
            assert_eq!(without_hashes(name), bare);
        }
    }

    #[test]
    fn functions_are_found_by_address_name_and_name_without_hash() {
        let (old, new) = ("_ZN1a1b17h0000000000000000E", "_ZN1a1b17h1111111111111111E");
        let functions =
            [function(1, &["main"]), function(2, &["dup"]), function(3, &["dup"]), function(4, &[new])];
        let resolver = Resolver::new(&functions);
        let mut count = Resolved::default();
        assert_eq!((resolver.at(3), resolver.at(5)), (Some(2), None));
        assert_eq!(resolver.find(&function(9, &["x", "main"]), &mut count), [0]);
        assert_eq!(resolver.find(&function(9, &["dup"]), &mut count), [1, 2]);
        assert_eq!(resolver.find(&function(9, &[old]), &mut count), [3]);
        assert!(resolver.find(&function(9, &["gone"]), &mut count).is_empty());
        assert!(resolver.find(&function(9, &[]), &mut count).is_empty());
        assert_eq!(count, Resolved { by_address: 0, by_name: 2, without_hash: 1, missing: 2 });
        assert_eq!((count.all(), resolver.ambiguous(&[0, 1, 3])), (5, 1));
    }
}
