//! Writes a small made-up recording, for trials of what reads recordings:
//! `cargo run -p cold-recording --features sample --example sample NAME.cold`.

use cold_recording::{sample, write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = std::env::args_os().nth(1).ok_or("name a directory that is not there yet: NAME.cold")?;
    write(place.as_ref(), &sample::firefox_like(2000, 1))?;
    Ok(())
}
