//! The processes of a whole command (a build, say), from a recording of it.

use std::collections::{BTreeMap, HashMap};

use cold_model::recording::tables::Began;
use cold_model::recording::{Process, Recording};
use cold_model::{Nanos, path_text};
use serde::Serialize;

/// Buckets of [`Tree::per_bucket`].
const BUCKETS: usize = 60;
/// Links a chain may have: a recording that names a process its own ancestor ends here.
const MOST_LINKS: usize = 1000;

/// One program of the tree.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Program {
    /// Name of the executed file; `(no exec)` for processes that stayed what their parent was.
    pub name: String,
    /// Processes that executed it.
    pub count: u64,
    /// Wall time of them together, from exec (or fork) to the next exec or the end.
    pub total_ns: u64,
}

impl Program {
    /// Wall time of one process of it, nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        self.total_ns as f64 / self.count.max(1) as f64
    }
}

/// What the tree consisted of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Tree {
    /// Processes seen, those that already ran at the beginning included.
    pub processes: u64,
    /// Times that a process executed a program.
    pub execs: u64,
    /// Processes that never executed a program.
    pub without_exec: u64,
    /// Wall time from each fork to the first exec, together.
    pub fork_to_exec_ns: u64,
    /// From the first fork to the last end.
    pub wall_ns: u64,
    /// Per program, most total time first.
    pub programs: Vec<Program>,
    /// The deepest chain of parents and children, outermost first; the longer-lived among equally deep ones.
    pub deepest: Vec<String>,
    /// Processes created in each of up to 60 equal parts of the wall time.
    pub per_bucket: Vec<u64>,
    /// Length of one of them.
    pub bucket_ns: u64,
}

impl Tree {
    /// Processes created per second in the part of the wall time in which most were.
    pub fn most_per_second(&self) -> f64 {
        let most = self.per_bucket.iter().copied().max().unwrap_or(0);
        most as f64 * 1e9 / self.bucket_ns.max(1) as f64
    }
}

/// One process from fork to exit.
struct One<'a> {
    images: Vec<&'a Process>,
    parent: u32,
}

impl One<'_> {
    fn born(&self) -> Nanos {
        self.images.first().map_or(Nanos(0), |p| p.began)
    }
    fn end(&self) -> Option<Nanos> {
        self.images.last().and_then(|p| p.ended)
    }
    fn forked(&self) -> bool {
        self.images.first().is_some_and(|p| p.how == Began::Fork)
    }
    fn first_exec(&self) -> Option<Nanos> {
        self.images.iter().find(|p| p.how == Began::Exec).map(|p| p.began)
    }
}

/// Everything about the tree of a recording.
pub fn of(recording: &Recording) -> Tree {
    let ones = processes(recording);
    let mut tree = Tree { processes: ones.len() as u64, ..Tree::default() };
    let begin = ones.iter().map(One::born).min().unwrap_or_default();
    let end = ones.iter().filter_map(One::end).max().unwrap_or(begin).max(begin);
    tree.wall_ns = end.saturating_sub(begin).0;
    let mut programs: BTreeMap<String, Program> = BTreeMap::new();
    for one in &ones {
        let exec = one.first_exec();
        tree.without_exec += u64::from(exec.is_none());
        if let Some(exec) = exec.filter(|_| one.forked()) {
            tree.fork_to_exec_ns += exec.saturating_sub(one.born()).0;
        }
        for image in &one.images {
            let executed = image.how == Began::Exec;
            tree.execs += u64::from(executed);
            if !executed && exec.is_some() {
                continue; // the time before its exec is told above
            }
            let name = if executed { name(recording, image) } else { "(no exec)".to_owned() };
            let p = programs.entry(name.clone()).or_insert_with(|| Program { name, ..Program::default() });
            p.count += 1;
            p.total_ns += image.ended.unwrap_or(end).saturating_sub(image.began).0;
        }
    }
    tree.programs = programs.into_values().collect();
    tree.programs.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
    tree.deepest = deepest(recording, &ones);
    tree.bucket_ns = tree.wall_ns.div_ceil(BUCKETS as u64).max(1);
    let buckets = usize::try_from(tree.wall_ns / tree.bucket_ns).unwrap_or(0).min(BUCKETS - 1) + 1;
    tree.per_bucket = vec![0; buckets];
    for one in ones.iter().filter(|o| o.forked()) {
        let at = usize::try_from(one.born().saturating_sub(begin).0 / tree.bucket_ns).unwrap_or(usize::MAX);
        tree.per_bucket[at.min(buckets - 1)] += 1;
    }
    tree
}

/// Images put together by pid; a pid that was used again makes another process.
fn processes(recording: &Recording) -> Vec<One<'_>> {
    let mut images: Vec<&Process> = recording.processes.iter().filter(|p| p.in_tree).collect();
    images.sort_by_key(|p| p.began);
    let mut all: Vec<One<'_>> = Vec::new();
    let mut current: HashMap<u32, usize> = HashMap::new();
    for image in images {
        if let Some(at) = current.get(&image.pid).filter(|_| image.how == Began::Exec) {
            all[*at].images.push(image);
        } else {
            current.insert(image.pid, all.len());
            all.push(One { images: vec![image], parent: image.parent });
        }
    }
    all
}

fn name(recording: &Recording, image: &Process) -> String {
    let file = image.executable.and_then(|f| recording.files.get(f as usize)?.path.as_deref());
    let base = file.map(path_text::base).filter(|n| !n.is_empty());
    base.unwrap_or(&image.name).to_owned()
}

fn deepest(recording: &Recording, ones: &[One<'_>]) -> Vec<String> {
    // A later process of the same pid comes later in the list; parents are born before their children.
    let mut by_pid: HashMap<u32, usize> = HashMap::new();
    let mut links: Vec<(usize, Option<usize>)> = Vec::with_capacity(ones.len());
    for (i, one) in ones.iter().enumerate() {
        let parent = by_pid.get(&one.parent).copied();
        let depth = parent.map_or(0, |p| links.get(p).map_or(0, |(depth, _)| depth + 1));
        links.push((depth, parent));
        if let Some(first) = one.images.first() {
            by_pid.insert(first.pid, i);
        }
    }
    let length = |i: usize| ones[i].end().unwrap_or(ones[i].born()).saturating_sub(ones[i].born());
    let last = (0..ones.len()).max_by_key(|i| (links[*i].0, length(*i)));
    let mut chain = Vec::new();
    let mut at = last;
    while let Some(i) = at.filter(|_| chain.len() < MOST_LINKS) {
        chain.push(ones[i].images.last().map_or_else(String::new, |p| name(recording, p)));
        at = links[i].1;
    }
    chain.reverse();
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(began: u64, how: Began, pid: u32, parent: u32, name: &str, ended: u64) -> Process {
        Process {
            began: Nanos(began),
            how,
            pid,
            parent,
            name: name.into(),
            executable: None,
            arguments: None,
            in_tree: true,
            ended: Some(Nanos(ended)),
            status: Some(0),
        }
    }

    #[test]
    fn programs_chains_and_the_way_to_each_exec_are_told() {
        let processes = vec![
            image(0, Began::Fork, 10, 1, "cold", 5),
            image(5, Began::Exec, 10, 1, "make", 1000),
            image(100, Began::Fork, 11, 10, "make", 120),
            image(120, Began::Exec, 11, 10, "sh", 400),
            image(150, Began::Fork, 12, 11, "sh", 155),
            image(155, Began::Exec, 12, 11, "cc", 300),
            image(310, Began::Fork, 13, 11, "sh", 320),
            image(500, Began::Fork, 12, 10, "make", 505), // the pid again
            image(505, Began::Exec, 12, 10, "cc", 700),
        ];
        let tree = of(&Recording { processes, ..Recording::default() });
        assert_eq!((tree.processes, tree.execs, tree.without_exec), (5, 4, 1));
        assert_eq!(tree.fork_to_exec_ns, 5 + 20 + 5 + 5);
        let program =
            |name: &str| tree.programs.iter().find(|p| p.name == name).map(|p| (p.count, p.total_ns));
        assert_eq!(program("cc"), Some((2, 145 + 195)));
        assert_eq!(program("(no exec)"), Some((1, 10)));
        assert_eq!((program("make"), tree.wall_ns), (Some((1, 995)), 1000));
        assert_eq!(tree.deepest, ["make", "sh", "cc"]);
        assert_eq!(tree.per_bucket.iter().sum::<u64>(), 5);
        assert_eq!(of(&Recording::default()).processes, 0);
    }

    #[test]
    fn a_process_that_is_its_own_parent_ends_the_chain() {
        let processes = vec![image(0, Began::Fork, 7, 7, "a", 1), image(2, Began::Fork, 7, 7, "b", 3)];
        let tree = of(&Recording { processes, ..Recording::default() });
        assert_eq!((tree.processes, tree.deepest.len()), (2, 2));
    }
}
