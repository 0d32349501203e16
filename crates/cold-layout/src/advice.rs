//! What else a program's link costs a start, and what changes it.

use cold_model::linkage::Linkage;

/// Bytes of an unpacked relocation.
const RELA: u64 = 24;
/// Bytes of a page.
const PAGE: u64 = 4096;
/// Below so many of something nobody notices it.
const FEW: u64 = 100;

/// A change of the link that saves something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkAdvice {
    /// The flags, as a compiler takes them.
    pub flags: &'static str,
    /// Pages of 4 KiB that a start reads or copies less.
    pub pages: u64,
    /// What there is now and what it becomes.
    pub why: String,
}

/// What pays, that which saves most pages first.
pub fn of_link(linkage: &Linkage) -> Vec<LinkAdvice> {
    let mut found = Vec::new();
    let unpacked = linkage.relative.saturating_sub(linkage.packed);
    let table = unpacked.saturating_mul(RELA);
    let relr = table.saturating_sub(linkage.as_relr_bytes) / PAGE;
    if unpacked >= FEW && relr > 0 {
        found.push(LinkAdvice {
            flags: "-Wl,-z,pack-relative-relocs",
            pages: relr,
            why: format!(
                "{unpacked} relative relocations take {} KiB, packed (RELR) {} KiB; glibc 2.36 or later reads them",
                table.div_ceil(1024),
                linkage.as_relr_bytes.div_ceil(1024)
            ),
        });
    }
    if linkage.position_independent && linkage.relative >= FEW {
        let read = table / PAGE;
        found.push(LinkAdvice {
            flags: "-no-pie (compiled with -fno-pie; of programs, not of libraries)",
            pages: linkage.written_pages.saturating_add(read),
            why: format!(
                "{} relative relocations are for a program at any address: up to {} pages are copied to write them; at \
                 a fixed one they go, and with them the protection by random addresses",
                linkage.relative, linkage.written_pages
            ),
        });
    }
    if linkage.bind_now && linkage.jump_slots >= FEW {
        found.push(LinkAdvice {
            flags: "-Wl,-z,lazy",
            pages: 0,
            why: format!(
                "{} functions of libraries are looked up before main(); lazily only those that are called, but the \
                 table of their addresses stays writable",
                linkage.jump_slots
            ),
        });
    }
    // Segments that begin on pages of their own end with a page that is read for a part of it.
    let apart: u64 = linkage.segments.iter().map(|bytes| bytes.div_ceil(PAGE)).sum();
    let together = linkage.segments.iter().sum::<u64>().div_ceil(PAGE);
    if linkage.segments.len() >= 4 && apart > together {
        found.push(LinkAdvice {
            flags: "-Wl,-z,noseparate-code",
            pages: apart - together,
            why: format!(
                "{} segments begin on pages of their own; together the headers, code and constants have one mapping \
                 less each, and constants become executable",
                linkage.segments.len()
            ),
        });
    }
    if !linkage.gnu_hash && linkage.symbolic.saturating_add(linkage.jump_slots) >= FEW {
        found.push(LinkAdvice {
            flags: "-Wl,--hash-style=gnu",
            pages: 0,
            why: "symbols are found by DT_HASH only, which compares names where DT_GNU_HASH passes over most"
                .to_owned(),
        });
    }
    found.sort_by_key(|advice| std::cmp::Reverse(advice.pages));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_saves_most_comes_first_and_what_is_done_is_not_advised() {
        let linkage = Linkage {
            relative: 10_000,
            as_relr_bytes: 2048,
            written_pages: 20,
            jump_slots: 300,
            bind_now: true,
            position_independent: true,
            gnu_hash: true,
            segments: vec![4096, 8192, 100],
            ..Linkage::default()
        };
        let flags: Vec<_> =
            of_link(&linkage).iter().map(|a| (a.flags.split(' ').next().unwrap(), a.pages)).collect();
        assert_eq!(flags, [("-no-pie", 78), ("-Wl,-z,pack-relative-relocs", 58), ("-Wl,-z,lazy", 0)]);
        let packed = Linkage { packed: 10_000, bind_now: false, ..linkage.clone() };
        let flags: Vec<_> =
            of_link(&packed).iter().map(|a| (a.flags.split(' ').next().unwrap(), a.pages)).collect();
        assert_eq!(flags, [("-no-pie", 20)]);
        let fixed = Linkage { segments: vec![100, 5000, 100, 100], ..Linkage::default() };
        assert_eq!(of_link(&fixed).len(), 1);
        assert_eq!(of_link(&fixed)[0].pages, 5 - 2);
        assert!(of_link(&Linkage::default()).is_empty());
    }
}
