//! The journal against SIGKILL at every step, against tampering and against other processes.

mod crash;
mod kernel;
mod nesting;
mod others;
mod root;
mod trust;
