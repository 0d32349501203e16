//! Requests to end: Ctrl-C, a closed terminal, `kill`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Failure;

/// Signals that ask for the end.
const ENDS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
/// A second request to end is meant when it comes this much later.
const INSIST: Duration = Duration::from_secs(1);

/// A flag that SIGINT, SIGTERM or SIGHUP sets. Another one a second later ends `cold` at once (its
/// supervisor then still ends the tree and undoes the changes); sooner it is the same wish twice, as
/// `timeout` and terminals send it to a process and to its group.
pub(crate) fn interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    // By the handler itself: Ctrl-C ends the program as well, which may be seen before a thread of ours has run, and is
    // then no failure of the program's.
    for signal in ENDS {
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    let mut signals = Signals::new(ENDS)?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut first = None;
        for signal in signals.forever() {
            let since = first.get_or_insert_with(Instant::now).elapsed();
            if since >= INSIST {
                crate::exit::now(128 + signal);
            }
        }
    })?;
    Ok(flag)
}
