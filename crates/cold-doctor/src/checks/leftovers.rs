//! Changes that an interrupted run did not undo.

use crate::context::Context;
use crate::finding::Finding;

pub(crate) fn run(c: &Context) -> Vec<Finding> {
    let Some(leftovers) = &c.config.leftovers else { return Vec::new() };
    if leftovers.is_empty() {
        return vec![
            Finding::ok("leftover", "no change of an interrupted run is left behind")
                .so("the machine is as its owner set it up"),
        ];
    }
    let finding = |l: &crate::Leftover| {
        let minutes = l.age.as_secs() / 60;
        Finding::disturbs("leftover", format!("{} (left behind {minutes} min ago)", l.description))
            .so("the machine is not as its owner set it up, and later figures are wrong for it")
            .remedy("cold doctor --repair")
    };
    leftovers.iter().map(finding).collect()
}
