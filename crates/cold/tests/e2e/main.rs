//! The command `cold` from outside, as its users run it: real programs, real caches, real disturbances.
//!
//! Programs under test are copies in a directory of their own, so that nobody else holds their pages.
//! This machine may be busy: a scenario that a stranger disturbed is repeated (see [`support::attempts`]).

// clippy's allowance for tests does not reach the helper functions of an integration test.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod support;

mod architecture;
mod bench;
mod budget;
mod cache;
mod commands;
mod counts;
mod diagnose;
mod diagnose_apply;
mod diagnose_offers;
mod disk;
mod disturbed;
mod doctor;
mod endings;
mod fidelity;
mod fleet;
mod foreign;
mod gates;
mod import;
mod input;
mod install;
mod interrupted;
mod launch;
mod layout;
mod layout_disk;
mod layout_link;
mod layout_predict;
mod other_root;
mod package;
mod prefetch;
mod prefetch_safe;
mod prefetch_use;
mod probe;
mod reached;
mod ready;
mod reference;
mod report;
mod results;
mod service;
mod service_group;
mod service_keep;
mod service_learn;
mod service_replay;
mod simulate;
mod snapshots;
mod spawn;
mod trace;
mod trace_attach;
mod trace_disk;
mod trace_only;
mod trace_places;
mod trace_storm;
mod trace_waits;
mod user;
mod why;
