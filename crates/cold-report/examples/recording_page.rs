//! Writes the page and the picture of a made-up recording: `recording_page EVENTS DIR`. For looking at
//! them and for measuring; events 0 is a small Python start.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use cold_model::layout::Layouts;
use cold_recording::sample;
use cold_report::recording::{View, html, svg};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let events: usize = arguments.next().ok_or("EVENTS is missing")?.parse()?;
    let directory = PathBuf::from(arguments.next().ok_or("DIR is missing")?);
    let made = |seed| if events == 0 { sample::small() } else { sample::firefox_like(events, seed) };
    let (a, b) = (made(7), made(8));
    let layouts = Layouts::default();
    let (one, two) = (cold_analyze::analyze(&a, &layouts), cold_analyze::analyze(&b, &layouts));
    let first = View { name: "first.cold", recording: &a, layouts: &layouts, analysis: &one };
    let second = View { name: "second.cold", recording: &b, layouts: &layouts, analysis: &two };
    let write = |name: &str, begin: Instant, text: String| {
        let (bytes, time) = (text.len(), begin.elapsed());
        std::fs::write(directory.join(name), text).map(|()| format!("{name}: {bytes} bytes in {time:.0?}\n"))
    };
    let mut said = format!("{:?}\n", a.counts());
    let begin = Instant::now();
    said += &write("one.html", begin, html::page(&a, &layouts, &one))?;
    let begin = Instant::now();
    said += &write("one.svg", begin, svg::picture(first))?;
    let comparison = cold_analyze::compare(&a, &one, &b, &two);
    let begin = Instant::now();
    said += &write("two.html", begin, html::page_of_two(first, second, &comparison))?;
    let begin = Instant::now();
    said += &write("two.svg", begin, svg::picture_of_two(first, second))?;
    std::io::Write::write_all(&mut std::io::stdout(), said.as_bytes())?;
    Ok(())
}
