//! The journal against SIGKILL at every step, against tampering and against other processes.

mod crash;
mod nesting;
mod root;
mod trust;
