//! What the other tests of this crate do not load: programs for kernels that are not this one.

use crate::bpf::support::PROGRAMS;

/// The slots of the map `costs` are told apart by nothing but their order.
#[test]
fn programs_count_their_cost_in_the_slots_they_are_read_from() {
    let text = include_str!("../costs.h");
    let (_, list) = text.split_once("enum cold_program {").unwrap();
    let names = list.lines().filter_map(|line| line.trim().strip_prefix("COST_")?.strip_suffix(','));
    let names: Vec<_> = names.take(PROGRAMS.len()).collect();
    assert_eq!(names, PROGRAMS.map(|program| program.name));
    assert!(list.contains(&format!("COST_{},\n\tCOSTS,\n}}", names.last().unwrap())));
}

mod root {
    use cold_model::recording::manifest::Tier;

    use crate::bpf::{BpfOptions, Stacks, available, load};

    /// With loops instead of `bpf_loop`, tracepoints missing, and every choice of stacks.
    #[test]
    fn programs_for_older_kernels_pass_the_verifier_too() {
        cold_testbed::needs_root!();
        let Ok(mut support) = available() else {
            cold_testbed::need(false, "BPF with BTF tracepoints");
            return;
        };
        for old in ["page_fault_user", "page_fault_kernel", "block_io_start", "page_cache_ra_order"] {
            support.missing.push(old);
        }
        support.shapes.bpf_loop = false;
        support.shapes.page_faults = false;
        support.shapes.io_start = false; // block_bio_queue stands in for it
        for stacks in [Stacks::None, Stacks::FramePointers, Stacks::Copy] {
            let count_calls = stacks != Stacks::FramePointers;
            let options = BpfOptions { stacks, count_calls, ..BpfOptions::default() };
            let tier = if stacks == Stacks::None { Tier::B } else { Tier::A };
            let object = load::load(&support, tier, &options, 1 << 20).unwrap();
            let links = load::attach(&object, |_| true).unwrap();
            assert_eq!(links.len(), if tier == Tier::A { 20 } else { 17 });
        }
    }
}
