//! What else a program's link costs a start, and what changes it.

use std::ops::Range;

use cold_model::linkage::Linkage;
use cold_model::order::{Linked, TracedFile};
use cold_model::pages::Runs;

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

/// What pays in the link of `file`, that which saves most pages first. Each is counted alone.
pub fn of_link(linkage: &Linkage, file: &TracedFile) -> Vec<LinkAdvice> {
    let mut found = Vec::new();
    let unpacked = linkage.relative.saturating_sub(linkage.packed);
    let table = unpacked.saturating_mul(RELA);
    let relr = table.saturating_sub(linkage.as_relr_bytes) / PAGE;
    if unpacked >= FEW && relr > 0 {
        found.push(LinkAdvice {
            flags: "-Wl,-z,pack-relative-relocs",
            pages: relr,
            why: format!(
                "{unpacked} relative relocations take {} KiB, packed (RELR) {} KiB; GNU ld 2.38 and lld 15 \
                 pack them, glibc 2.36 reads them",
                table.div_ceil(1024),
                linkage.as_relr_bytes.div_ceil(1024)
            ),
        });
    }
    if linkage.position_independent && file.linked != Linked::Library && linkage.relative >= FEW {
        found.push(LinkAdvice {
            flags: "-no-pie (compiled with -fno-pie)",
            pages: linkage.written_by_relative,
            why: format!(
                "{} relative relocations are for a program at any address: {} pages are copied for them alone; at a \
                 fixed one they go, packed or not, and with them the protection by random addresses",
                linkage.relative, linkage.written_by_relative
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
    // GNU ld lets each segment begin on a page of its own; lld lets them share the pages of the file.
    let pages = |bytes: &Range<u64>| bytes.start / PAGE..bytes.end.div_ceil(PAGE);
    let apart = Runs::of(linkage.constant_segments.iter().map(pages).collect()).pages();
    let bytes = linkage
        .constant_segments
        .iter()
        .map(|s| s.end.saturating_sub(s.start))
        .fold(0_u64, u64::saturating_add);
    // Together they still begin and end within a page.
    let saved = apart.saturating_sub(bytes.div_ceil(PAGE).saturating_add(1));
    if saved > 0 {
        found.push(LinkAdvice {
            flags: "-Wl,-z,noseparate-code",
            pages: saved,
            why: format!(
                "{} segments of headers, code and constants begin on pages of their own; together constants become \
                 executable",
                linkage.constant_segments.len()
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
    if file.build_id.is_none() {
        found.push(LinkAdvice {
            flags: "-Wl,--build-id",
            pages: 0,
            why: "it has none: traces and recordings of it are not told from those of another build, and its separate \
                  debug file is found by name and checksum only"
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
            // As lld lays them: they share pages.
            constant_segments: vec![0..4500, 4500..9000, 9000..9100],
            written_by_relative: 18,
            dynamic: true,
            ..Linkage::default()
        };
        let file = |linked: Linked, build_id: Option<&str>| TracedFile {
            path: "/p".into(),
            build_id: build_id.map(str::to_owned),
            linked,
            is_go: false,
            texts: vec![],
            functions: vec![],
        };
        let (program, library) = (file(Linked::Pie, Some("ab")), file(Linked::Library, Some("ab")));
        let flags = |linkage: &Linkage, file: &TracedFile| -> Vec<(&str, u64)> {
            let all = of_link(linkage, file);
            all.iter().map(|a| (a.flags.split(' ').next().unwrap_or_default(), a.pages)).collect()
        };
        let relr = ("-Wl,-z,pack-relative-relocs", 58);
        assert_eq!(flags(&linkage, &program), [relr, ("-no-pie", 18), ("-Wl,-z,lazy", 0)]);
        assert_eq!(flags(&linkage, &library), [relr, ("-Wl,-z,lazy", 0)], "a library lies anywhere");
        let packed = Linkage { packed: 10_000, bind_now: false, ..linkage.clone() };
        assert_eq!(flags(&packed, &program), [("-no-pie", 18)]);
        // As GNU ld lays them: 100 bytes, 5000, 100.
        let apart = vec![0..100, 4096..9096, 12288..12388, 16384..16484];
        let apart = Linkage { constant_segments: apart, ..Linkage::default() };
        assert_eq!(flags(&apart, &program), [("-Wl,-z,noseparate-code", 5 - 3)]);
        assert!(of_link(&Linkage::default(), &program).is_empty());
        let nameless = file(Linked::Pie, None);
        assert_eq!(flags(&packed, &nameless), [("-no-pie", 18), ("-Wl,--build-id", 0)]);
    }
}
