//! A plan that everybody may read, and what the service alone knows beside it, as one to follow.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use cold_plan::Plan;
use cold_plan::plan::Step;

/// `plan` with what `private` reads beside it, in the order of need; a plan that is in no store. Files that are in both
/// are read as the first says, and files that `leaves_out` names are not read. `None` where nothing is added.
pub fn with_private(plan: &Plan, private: &Plan, leaves_out: &dyn Fn(&Path) -> bool) -> Option<Plan> {
    let known: HashSet<&Path> = plan.files.iter().map(|file| file.path.as_path()).collect();
    let mut files = plan.files.clone();
    let mut numbers = HashMap::new();
    for (number, file) in (0_u32..).zip(&private.files) {
        if !known.contains(file.path.as_path()) && !leaves_out(&file.path) {
            numbers.insert(number, u32::try_from(files.len()).ok()?);
            files.push(file.clone());
        }
    }
    let added = private.steps.iter().filter_map(|s| Some(Step { file: *numbers.get(&s.file)?, ..*s }));
    let mut added = added.peekable();
    added.peek()?;
    let mut steps = Vec::with_capacity(plan.steps.len() + private.steps.len());
    for step in &plan.steps {
        while let Some(before) = added.next_if(|private| place(private) < place(step)) {
            steps.push(before);
        }
        steps.push(*step);
    }
    steps.extend(added);
    Some(Plan { files, steps, ranges: Vec::new(), ..plan.clone() })
}

/// By what the steps of two plans are merged. Within each they stay as they are, by need or by place on the disk: critical
/// ones first.
fn place(step: &Step) -> (bool, u64) {
    (!step.critical, step.need_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cold_plan::plan::{FileKind, Op, PlanFile};

    const NONE: &dyn Fn(&Path) -> bool = &|_| false;

    /// Looks up a name at each of these times, in microseconds; critical those before 1 ms.
    fn names(of: &[(&str, u64)]) -> Plan {
        let sample = cold_plan::sample::sample();
        let file = |(name, us): &(&str, u64)| PlanFile {
            path: Path::new("/root").join(name),
            kind: FileKind::Name,
            identity: cold_plan::plan::Identity::default(),
            need_ns: us * 1000,
            uses: 1,
            exact: false,
        };
        let step = |(number, (_, us)): (usize, &(&str, u64))| Step {
            op: Op::Stat,
            critical: *us < 1000,
            file: number as u32,
            offset: 0,
            bytes: 0,
            need_ns: us * 1000,
        };
        let files = of.iter().map(file).collect();
        Plan { files, steps: of.iter().enumerate().map(step).collect(), ranges: Vec::new(), ..sample }
    }

    fn order(plan: &Plan) -> Vec<(&str, u64)> {
        let name = |s: &Step| plan.files[s.file as usize].path.file_name().and_then(|n| n.to_str());
        plan.steps.iter().map(|s| (name(s).expect("a name"), s.need_ns / 1000)).collect()
    }

    #[test]
    fn what_is_private_is_read_when_it_is_needed_and_nothing_twice() {
        let plan = names(&[("a", 10), ("b", 900), ("c", 2000), ("d", 1500), ("e", 5000)]);
        let private = names(&[("x", 5), ("b", 20), ("y", 950), ("z", 1800), ("last", 9000)]);
        let both = with_private(&plan, &private, NONE).expect("something");
        let wanted = [
            ("x", 5),
            ("a", 10),
            ("b", 900),
            ("y", 950),
            ("z", 1800),
            ("c", 2000),
            ("d", 1500),
            ("e", 5000),
            ("last", 9000),
        ];
        assert_eq!(order(&both), wanted);
        assert!(cold_plan::format::encode(&both).is_ok(), "it can be followed like any plan");
        assert_eq!((&both.key, &both.standing, both.trial), (&plan.key, &plan.standing, plan.trial));
    }

    #[test]
    fn what_is_left_out_by_choice_is_not_read() {
        let (plan, private) = (names(&[("a", 10)]), names(&[("mail/x", 5), ("y", 20)]));
        let except = |path: &Path| path.starts_with("/root/mail");
        let both = with_private(&plan, &private, &except).expect("something");
        assert_eq!(order(&both), [("a", 10), ("y", 20)]);
        assert_eq!(with_private(&plan, &private, &|path| path.starts_with("/root")), None);
        assert_eq!(with_private(&plan, &plan, NONE), None);
    }
}
