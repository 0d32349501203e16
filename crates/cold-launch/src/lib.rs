//! Replays a plan, then becomes the program: small, static, harmless.
//!
//! Never traces, never learns, never prints, and never is the reason that a program does not start: every
//! way out of [`launch`] leads to the exec. What is read ahead is read by a helper process, so that no file
//! of the plan can hold the program back. Start reading at [`launch`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

mod brought;
mod early;
mod engine;
mod files;
mod flight;
mod guard;
mod helped;
mod launch;
mod load;
mod options;
mod own;
mod places;
mod prepare;
mod progress;
mod record;
mod served;
mod watch;
mod wrappers;

pub use brought::{Brought, Completed, Wanted};
pub use engine::Tally;
pub use guard::{Guards, Sample, Weather};
pub use helped::{Charged, Helpers, NotOwn, serve};
pub use launch::{Decision, Explanation, explain, launch};
pub use options::{Options, Skip, Source};
pub use own::{Replay, replay_self};
pub use places::may_hang;
pub use prepare::Conditions;
pub use served::{Began, Held, Prospect, Served, apply};
