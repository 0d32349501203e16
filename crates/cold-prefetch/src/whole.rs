//! A plan of whole files: what it brings to ask for some files whole before the program does.

use cold_model::Extent;
use cold_plan::Plan;
use cold_plan::plan::{FileKind, PAGE, Range};
use std::path::Path;

use crate::compile;

/// The plan with these of its files alone, each whole and from when it is first needed on, made for the same device with
/// the same knobs. `None` where it has none of them.
pub fn whole(plan: &Plan, files: &[&Path], extents: &dyn Fn(&Path) -> Option<Vec<Extent>>) -> Option<Plan> {
    let wanted = |file: &cold_plan::plan::PlanFile| {
        file.kind == FileKind::Regular && file.identity.size > 0 && files.contains(&file.path.as_path())
    };
    let kept: Vec<_> = plan.files.iter().filter(|file| wanted(file)).cloned().collect();
    let range = |(n, file): (usize, &cold_plan::plan::PlanFile)| Range {
        file: n as u32,
        first_page: 0,
        pages: u32::try_from(file.identity.size.div_ceil(PAGE)).unwrap_or(u32::MAX),
        need_ns: file.need_ns,
        uses: file.uses,
        around: false,
    };
    let ranges: Vec<Range> = kept.iter().enumerate().map(range).collect();
    if ranges.is_empty() {
        return None;
    }
    let mut out = Plan { files: kept, ranges, bound: None, ..plan.clone() };
    let (knobs, device) = (plan.knobs, plan.device.clone());
    compile(&mut out, &knobs, device.as_ref(), extents);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::tests::{disk, plan};
    use crate::knobs_for;

    #[test]
    fn the_named_files_are_read_whole_and_no_other() {
        let device = disk(100.0, 1.0);
        let mut learnt = plan(&[3, 900, 77], 0);
        let knobs = knobs_for(&learnt, Some(&device));
        compile(&mut learnt, &knobs, Some(&device), &|_| None);
        let file = learnt.files[0].clone();
        let bytes = file.identity.size;
        assert!(bytes > 0, "{file:?}");
        let made = whole(&learnt, &[&file.path], &|_| None).expect("the file is in the plan");
        let read: u64 = made.reads().map(|s| u64::from(s.bytes)).sum();
        assert_eq!(read, bytes.next_multiple_of(PAGE));
        let mut at = 0;
        for step in made.reads() {
            assert_eq!((step.file, step.offset), (0, at), "one behind the other");
            at += u64::from(step.bytes);
        }
        assert_eq!((made.knobs, made.device), (learnt.knobs, learnt.device.clone()));
        assert_eq!(whole(&learnt, &[Path::new("/elsewhere")], &|_| None), None);
    }
}
