//! When the tree has to end.

use std::time::{Duration, Instant};

use super::protocol::{Order, Request};
use crate::helper::Channel;

/// Between two rounds of SIGKILL at a tree that goes on forking.
const KILL_AGAIN: Duration = Duration::from_millis(50);

/// Why the tree is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The caller has seen enough.
    Asked,
    /// The time limit is over.
    Deadline,
    /// The caller is gone.
    Abandoned,
}

/// What is to be done to the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// SIGTERM for every process.
    Ask(End),
    /// SIGKILL for every process; comes again until the tree is gone.
    Kill(End),
}

/// Decides when the tree has to end.
pub(super) struct Watch {
    deadline: Option<Instant>,
    grace: Duration,
    /// Why it has to end, and when force comes.
    ending: Option<(End, Instant)>,
}

impl Watch {
    pub(super) fn new(request: &Request, started: Instant) -> Self {
        let deadline = request.deadline_ns.and_then(|ns| started.checked_add(Duration::from_nanos(ns)));
        Self { deadline, grace: Duration::from_nanos(request.grace_ns), ending: None }
    }

    pub(super) fn look(&mut self, channel: &mut Channel) -> Option<Act> {
        let now = Instant::now();
        let asked = asked(channel);
        if asked == Some(End::Abandoned) {
            // Nobody is left to wait for a graceful end.
            self.ending = Some((End::Abandoned, now));
        } else if self.ending.is_none() {
            let over = self.deadline.is_some_and(|d| now >= d).then_some(End::Deadline);
            let why = asked.or(over)?;
            self.ending = Some((why, now + self.grace));
            return Some(Act::Ask(why));
        }
        let (why, force) = self.ending?;
        (now >= force).then(|| {
            self.ending = Some((why, now + KILL_AGAIN));
            Act::Kill(why)
        })
    }
}

/// What the client wants, if it said anything.
fn asked(channel: &mut Channel) -> Option<End> {
    if !channel.is_readable(Some(Duration::ZERO)).unwrap_or(true) {
        return None;
    }
    match channel.receive::<Order>() {
        Ok(Some(_)) => Some(End::Asked),
        Ok(None) | Err(_) => Some(End::Abandoned),
    }
}
