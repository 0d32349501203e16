//! What all plans of a program read: the part that can begin before its arguments are known.

use std::collections::HashSet;
use std::path::Path;

use cold_plan::Plan;
use cold_plan::plan::{FileKind, Op, Step};

/// The scenario's name of such a plan; no name that a user gives or that is derived begins so.
const NAME: &str = "~common";

/// The steps of the first plan that all others have as well, as a plan of its own that is in no store. With one plan
/// alone: those of its executable, and of its libraries, which hardly depend on arguments. `None` where nothing is
/// common. Metadata steps are left to the whole plan, which follows within milliseconds.
pub fn common(plans: &[&Plan]) -> Option<Plan> {
    let (first, others) = plans.split_first()?;
    let others: Vec<HashSet<(&Path, u64)>> = others.iter().map(|plan| pages(plan)).collect();
    let is_common = |step: &&Step| {
        let Some(file) = first.files.get(step.file as usize) else { return false };
        let is_read = step.op == Op::Read && file.kind == FileKind::Regular;
        is_read
            && if others.is_empty() {
                file.path == first.key.executable || is_library(&file.path)
            } else {
                // The first page stands for the step: plans of one program are cut alike where they agree.
                others.iter().all(|pages| pages.contains(&(file.path.as_path(), step.offset)))
            }
    };
    let steps: Vec<Step> = first.steps.iter().filter(is_common).copied().collect();
    if steps.is_empty() {
        return None;
    }
    let mut plan = Plan { steps, ranges: Vec::new(), trial: None, bound: None, ..(*first).clone() };
    NAME.clone_into(&mut plan.key.scenario);
    plan.key.script = None;
    Some(plan)
}

/// Offsets of all pages that a plan reads, by file.
fn pages(plan: &Plan) -> HashSet<(&Path, u64)> {
    let read = |step: &Step| {
        let file = plan.files.get(step.file as usize)?;
        let pages =
            (step.offset..step.offset + u64::from(step.bytes)).step_by(cold_plan::plan::PAGE as usize);
        Some(pages.map(|at| (file.path.as_path(), at)).collect::<Vec<_>>())
    };
    plan.reads().filter_map(read).flatten().collect()
}

fn is_library(path: &Path) -> bool {
    cold_model::path_text::is_library(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(plan: &Plan) -> Vec<(&Path, u64)> {
        plan.reads().map(|s| (plan.files[s.file as usize].path.as_path(), s.offset)).collect()
    }

    #[test]
    fn only_what_every_plan_reads_is_common() {
        let one = cold_plan::sample::sample();
        let all: Vec<_> = one.reads().copied().collect();
        assert!(all.len() > 1);
        let mut two = one.clone();
        two.steps.retain(|s| s.op == Op::Read && *s == all[0]);
        let plan = common(&[&one, &two]).expect("something");
        let step = all[0];
        assert_eq!(reads(&plan), [(one.files[step.file as usize].path.as_path(), step.offset)]);
        two.steps.clear();
        assert_eq!(common(&[&one, &two]), None);
        assert!(cold_plan::format::encode(&plan).is_ok(), "it can be followed like any plan");
    }

    #[test]
    fn of_one_plan_alone_program_and_libraries_are_taken() {
        let plan = cold_plan::sample::sample();
        let taken = common(&[&plan]);
        let fits = |path: &Path| *path == plan.key.executable || is_library(path);
        let wanted: Vec<_> = reads(&plan).into_iter().filter(|(path, _)| fits(path)).collect();
        assert_eq!(taken.as_ref().map(reads).unwrap_or_default(), wanted);
        assert_eq!(common(&[]), None);
    }
}
