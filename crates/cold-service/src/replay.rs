//! Policies of keeping, compared on a log of starts.
//!
//! What a start reads stays cached until something empties the cache. Then a policy says what is read again before
//! anybody wants it, when nothing has happened for [`REST`], as the service does
//! ([`keep`]). A program's first start after that is a hit where the policy holds it, and cold where not;
//! its further starts are warm under every policy. Start reading at [`play`].

mod compared;
pub mod made;
pub mod text;

pub use compared::{Compared, Played, compared};

use cold_model::Nanos;
use serde::Serialize;

use crate::keep::{self, BESIDES, Candidate, HALF_LIFE, REST, Uses};

const HOUR: u64 = 3_600_000_000_000;

/// A program of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its name; two programs of a log have different ones.
    pub name: String,
    /// Bytes that reading its plans takes.
    pub bytes: u64,
}

/// What happened at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A program, by its place in [`Log::programs`], was started so many times.
    Starts {
        /// Index of the program in [`Log::programs`].
        program: usize,
        /// How many times.
        times: u64,
    },
    /// Something has emptied the cache: boot, a program that took all memory, a drop.
    Emptied,
}

/// A line of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Since any moment.
    pub at: Nanos,
    /// What happened at that time.
    pub what: What,
}

/// Starts and what came between them, in the order of time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Log {
    /// Programs whose starts the log tells.
    pub programs: Vec<Program>,
    events: Vec<Event>,
}

impl Log {
    /// Of these events, in any order; `None` where one names a program that is not there.
    pub fn new(programs: Vec<Program>, mut events: Vec<Event>) -> Option<Self> {
        let known = |e: &Event| matches!(e.what, What::Starts { program, .. } if program < programs.len());
        if !events.iter().all(|e| e.what == What::Emptied || known(e)) {
            return None;
        }
        events.sort_by_key(|e| e.at);
        Some(Self { programs, events })
    }

    /// What happened, in the order of time.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// From the first event to the last.
    pub fn length(&self) -> Nanos {
        let at = |event: Option<&Event>| event.map_or(Nanos(0), |e| e.at);
        at(self.events.last()).saturating_sub(at(self.events.first()))
    }
}

/// By what programs are put in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// How likely they are started next.
    Likelihood,
    /// The same for each byte that they take.
    Byte,
    /// The time that this saves for each byte ([`keep::Candidate::worth`]).
    Gain,
}

/// What is read again after the cache was emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Nothing is read again.
    Nothing,
    /// Every program that was ever started, whatever the room: what keeping can bring at most.
    All,
    /// The programs that were started last. One that does not fit is passed over.
    Recency,
    /// Those that were started most often since the log begins.
    Frequency,
    /// Recency and frequency: a start counts half after so long.
    Halving(Nanos, By),
    /// What a cache of as many bytes as there is room would hold that drops whatever was used least recently.
    Lru,
    /// What is started before the cache is emptied again, the smallest first: no policy can hit more often in the same
    /// room.
    Foreseen,
}

impl Policy {
    /// The service's own.
    pub const OWN: Self = Self::Halving(HALF_LIFE, By::Gain);

    /// Its name in text and JSON.
    pub fn name(self) -> String {
        let hours = |half: Nanos| half.0 / HOUR;
        match self {
            Self::Nothing => "nothing".to_owned(),
            Self::All => "all".to_owned(),
            Self::Recency => "recency".to_owned(),
            Self::Frequency => "frequency".to_owned(),
            Self::OWN => "service".to_owned(),
            Self::Halving(half, By::Gain) => format!("gain:{}h", hours(half)),
            Self::Halving(half, By::Likelihood) => format!("likely:{}h", hours(half)),
            Self::Halving(half, By::Byte) => format!("byte:{}h", hours(half)),
            Self::Lru => "lru".to_owned(),
            Self::Foreseen => "foreseen".to_owned(),
        }
    }

    /// Those that are compared, the service's own first.
    pub fn compared() -> Vec<Self> {
        let after = |hours: u64, by| Self::Halving(Nanos(hours * HOUR), by);
        vec![
            Self::OWN,
            Self::Nothing,
            Self::Recency,
            Self::Lru,
            Self::Frequency,
            after(24, By::Likelihood),
            Self::Halving(HALF_LIFE, By::Likelihood),
            Self::Halving(HALF_LIFE, By::Byte),
            after(6, By::Gain),
            after(24, By::Gain),
            after(168, By::Gain),
            Self::All,
            Self::Foreseen,
        ]
    }
}

/// What a policy brought on a log.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Outcome {
    /// Starts in the log.
    pub starts: u64,
    /// Those that were their program's first after the cache was emptied, or in the log; the others are warm anyway.
    pub first: u64,
    /// First ones that found their program held.
    pub hits: u64,
    /// What first starts lose to the disk when nothing is held, as bytes read in the same time
    /// ([`BESIDES`] and those of the program, for each).
    pub lost_bytes: u64,
    /// What hits save of it.
    pub saved_bytes: u64,
    /// Bytes that were read before anybody wanted them.
    pub read_bytes: u64,
    /// Those of them that a start found.
    pub used_bytes: u64,
    /// Bytes held and not used yet, averaged over the log's time.
    pub held_bytes: f64,
    /// The most that were held at once.
    pub most_held_bytes: u64,
}

impl Outcome {
    /// Bytes that were read and not found by any start.
    pub fn vain_bytes(&self) -> u64 {
        self.read_bytes - self.used_bytes
    }
}

/// Follows `policy` through the log; `room` is what may be held at once, in bytes.
pub fn play(log: &Log, policy: Policy, room: u64) -> Outcome {
    let mut now = Player::new(log, policy, room);
    for (i, event) in log.events.iter().enumerate() {
        now.read_if_rested(i, event.at);
        now.pass(event.at);
        match event.what {
            What::Starts { program, times } => now.starts(program, times),
            What::Emptied => now.emptied(),
        }
    }
    let length = log.length().0;
    let held_bytes = if length == 0 { 0.0 } else { now.held_time / length as f64 };
    Outcome { held_bytes, ..now.out }
}

/// Of one program, at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct ProgramState {
    /// Its pages are there because it was started.
    cached: bool,
    /// They are there because the policy has read them.
    held: bool,
    /// When it was started last.
    last: Option<Nanos>,
    starts: u64,
    uses: Uses,
}

struct Player<'a> {
    log: &'a Log,
    policy: Policy,
    room: u64,
    programs: Vec<ProgramState>,
    at: Nanos,
    /// The cache was emptied, and nothing has happened since this moment.
    rests_since: Option<Nanos>,
    held: u64,
    /// Bytes by nanoseconds.
    held_time: f64,
    out: Outcome,
}

impl<'a> Player<'a> {
    fn new(log: &'a Log, policy: Policy, room: u64) -> Self {
        let programs = vec![ProgramState::default(); log.programs.len()];
        let at = log.events.first().map_or(Nanos(0), |e| e.at);
        let out = Outcome::default();
        Self { log, policy, room, programs, at, rests_since: Some(at), held: 0, held_time: 0.0, out }
    }

    fn pass(&mut self, to: Nanos) {
        self.held_time += self.held as f64 * to.saturating_sub(self.at).0 as f64;
        self.at = to;
    }

    /// Before the event at `until`, the `next` one of the log.
    fn read_if_rested(&mut self, next: usize, until: Nanos) {
        let Some(since) = self.rests_since else { return };
        let at = Nanos(since.0.saturating_add(REST.0));
        if at > until {
            return;
        }
        self.rests_since = None;
        self.pass(at);
        let mut left = if self.policy == Policy::All { u64::MAX } else { self.room };
        for program in self.order(next) {
            let (Some(state), Some(bytes)) = (self.programs.get_mut(program), bytes(self.log, program))
            else {
                continue;
            };
            let is_lru = self.policy == Policy::Lru;
            // What was started meanwhile is there, and takes no room but in a cache.
            if state.cached && !is_lru {
                continue;
            }
            if bytes > left {
                // A cache has dropped all that was used before this.
                if is_lru {
                    break;
                }
                continue;
            }
            left -= bytes;
            if !state.cached {
                state.held = true;
                self.held += bytes;
                self.out.read_bytes += bytes;
            }
        }
        self.out.most_held_bytes = self.out.most_held_bytes.max(self.held);
    }

    /// Programs in the order in which they are to be read.
    fn order(&self, next: usize) -> Vec<usize> {
        let known = |key: &dyn Fn(&ProgramState) -> u64| {
            let mut all: Vec<usize> = (0..self.programs.len())
                .filter(|i| self.programs.get(*i).is_some_and(|s| s.starts > 0))
                .collect();
            all.sort_by_key(|i| std::cmp::Reverse(self.programs.get(*i).map(key)));
            all
        };
        match self.policy {
            Policy::Nothing => Vec::new(),
            Policy::Recency | Policy::Lru => known(&|s| s.last.map_or(0, |at| at.0)),
            Policy::All | Policy::Frequency => known(&|s| s.starts),
            Policy::Halving(half, by) => {
                let all = self.candidates(half);
                match by {
                    By::Gain => keep::order(&all),
                    By::Likelihood => keep::order_by(&all, |c| c.score),
                    By::Byte => keep::order_by(&all, |c| c.score / c.bytes.max(1) as f64),
                }
            }
            Policy::Foreseen => self.foreseen(next),
        }
    }

    fn candidates(&self, half: Nanos) -> Vec<Candidate> {
        let programs = self.programs.iter().zip(&self.log.programs);
        let of = |(state, program): (&ProgramState, &Program)| Candidate {
            score: state.uses.score_halving(self.at, half),
            bytes: program.bytes,
        };
        programs.map(of).collect()
    }

    fn foreseen(&self, next: usize) -> Vec<usize> {
        let coming = self.log.events.get(next..).unwrap_or_default();
        let coming = coming.iter().map_while(|e| match e.what {
            What::Starts { program, .. } => Some(program),
            What::Emptied => None,
        });
        let mut all: Vec<usize> = coming.collect();
        all.sort_unstable();
        all.dedup();
        all.sort_by_key(|i| bytes(self.log, *i));
        all
    }

    fn starts(&mut self, program: usize, times: u64) {
        let (at, policy) = (self.at, self.policy);
        let Some(state) = self.programs.get_mut(program) else { return };
        self.out.starts += times;
        if !state.cached {
            let bytes = bytes(self.log, program).unwrap_or_default();
            let loses = BESIDES.saturating_add(bytes);
            self.out.first += 1;
            self.out.lost_bytes = self.out.lost_bytes.saturating_add(loses);
            if state.held {
                self.out.hits += 1;
                self.out.saved_bytes = self.out.saved_bytes.saturating_add(loses);
                self.out.used_bytes += bytes;
                self.held -= bytes;
            } else if let Some(since) = &mut self.rests_since {
                // A cold start goes first.
                *since = at;
            }
        }
        (state.cached, state.held) = (true, false);
        state.last = Some(at);
        state.starts += times;
        if let Policy::Halving(half, _) = policy {
            state.uses.add_halving(times as f64, at, half);
        }
    }

    fn emptied(&mut self) {
        self.programs.iter_mut().for_each(|s| (s.cached, s.held) = (false, false));
        self.held = 0;
        self.rests_since = Some(self.at);
    }
}

fn bytes(log: &Log, program: usize) -> Option<u64> {
    log.programs.get(program).map(|p| p.bytes)
}

#[cfg(test)]
mod tests;
