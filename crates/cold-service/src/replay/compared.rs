//! All policies on several logs, each beside the service's own.

use cold_stats::compare::{Comparison, paired};
use serde::Serialize;

use super::{Log, Outcome, Policy, What, play};

/// What logs tell together, and what each policy brought on them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// How many logs.
    pub logs: usize,
    /// Programs of all of them.
    pub programs: usize,
    /// Their lengths, added.
    pub seconds: f64,
    /// How often something emptied the cache.
    pub emptied: usize,
    /// The service's own first.
    pub policies: Vec<Played>,
}

/// What one policy brought on all logs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Played {
    /// Its name, as `Policy::name` gives it.
    pub policy: String,
    /// Summed over all logs; bytes held are averaged.
    #[serde(flatten)]
    pub sum: Outcome,
    /// What it saves divided by what the service's rule saves, by pairs of logs; null without at least two of them.
    pub against_service: Option<Comparison>,
}

/// Plays every policy on every log; `room` is what may be held at once, in bytes.
pub fn compared(logs: &[Log], room: u64) -> Compared {
    let emptied = |log: &Log| log.events().iter().filter(|e| e.what == What::Emptied).count();
    let own = played(logs, Policy::OWN, room);
    let row = |policy: Policy| {
        let each = if policy == Policy::OWN { own.clone() } else { played(logs, policy, room) };
        let pairs: Vec<(f64, f64)> = each
            .iter()
            .zip(&own)
            .map(|(one, own)| (one.saved_bytes as f64, own.saved_bytes as f64))
            .collect();
        let against_service = paired(&pairs).filter(|_| policy != Policy::OWN);
        Played { policy: policy.name(), sum: sum(&each), against_service }
    };
    Compared {
        logs: logs.len(),
        programs: logs.iter().map(|log| log.programs.len()).sum(),
        seconds: logs.iter().map(|log| log.length().0 as f64 / 1e9).sum(),
        emptied: logs.iter().map(emptied).sum(),
        policies: Policy::compared().into_iter().map(row).collect(),
    }
}

fn played(logs: &[Log], policy: Policy, room: u64) -> Vec<Outcome> {
    logs.iter().map(|log| play(log, policy, room)).collect()
}

fn sum(each: &[Outcome]) -> Outcome {
    let sum = |of: &dyn Fn(&Outcome) -> u64| each.iter().map(of).sum();
    Outcome {
        starts: sum(&|o| o.starts),
        first: sum(&|o| o.first),
        hits: sum(&|o| o.hits),
        lost_bytes: sum(&|o| o.lost_bytes),
        saved_bytes: sum(&|o| o.saved_bytes),
        read_bytes: sum(&|o| o.read_bytes),
        used_bytes: sum(&|o| o.used_bytes),
        held_bytes: each.iter().map(|o| o.held_bytes).sum::<f64>() / each.len().max(1) as f64,
        most_held_bytes: each.iter().map(|o| o.most_held_bytes).max().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::Made;
    use super::*;

    #[test]
    fn policies_are_summed_over_logs_and_stand_beside_the_services_own() {
        let made = Made::default();
        let logs = [made.log(1), made.log(2)];
        let room = 100 << 20;
        let found = compared(&logs, room);
        assert_eq!((found.logs, found.policies.len()), (2, Policy::compared().len()));
        let own = &found.policies[0];
        assert_eq!((own.policy.as_str(), &own.against_service), ("service", &None));
        let each = logs.each_ref().map(|log| play(log, Policy::OWN, room));
        assert_eq!(own.sum.hits, each[0].hits + each[1].hits);
        assert_eq!(own.sum.most_held_bytes, each[0].most_held_bytes.max(each[1].most_held_bytes));
        assert!((own.sum.held_bytes - f64::midpoint(each[0].held_bytes, each[1].held_bytes)).abs() < 1.0);
        let nothing = found.policies.iter().find(|p| p.policy == "nothing").expect("compared");
        assert_eq!((nothing.sum.hits, nothing.sum.starts), (0, own.sum.starts));
        let lru = found.policies.iter().find(|p| p.policy == "lru").expect("compared");
        let ratio = lru.against_service.as_ref().expect("two pairs").ratio;
        let alone = lru.sum.saved_bytes as f64 / own.sum.saved_bytes as f64;
        assert!((ratio / alone - 1.0).abs() < 0.3, "{ratio} and {alone}");
    }
}
