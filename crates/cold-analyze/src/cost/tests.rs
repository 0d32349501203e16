use super::*;
use cold_model::sample::{PAGE, empty};

/// Ten requests of 4 KiB and ten of 1 MiB; 1 ms each and 9 ms per MiB when nothing is beside them.
fn sizes(r: &mut Recording, beside: bool) {
    let f = r.file("/a", 100_000 * PAGE);
    for i in 0..10 {
        r.request(i * 100, 1, f, i * 1000..i * 1000 + 1);
        r.request(i * 100 + 20, 10, f, i * 1000 + 500..i * 1000 + 756);
        if beside {
            // A queue of three: each one's time holds the others'.
            for k in 0..3 {
                r.request(i * 100 + 50, 30, f, i * 1000 + 800 + 10 * k..i * 1000 + 801 + 10 * k);
            }
        }
    }
}

#[test]
fn requests_beside_others_do_not_raise_the_price_of_one_alone() {
    let (mut quiet, mut busy) = (empty(), empty());
    sizes(&mut quiet, false);
    sizes(&mut busy, true);
    let (quiet, busy) = (DeviceCost::of(&quiet).unwrap(), DeviceCost::of(&busy).unwrap());
    assert_eq!(
        (quiet.per_request, quiet.per_byte, quiet.largest),
        (busy.per_request, busy.per_byte, busy.largest)
    );
    assert!((quiet.one_by_one(1, Bytes(4096)).0 as f64 - 1e6).abs() < 1e3, "{quiet:?}");
    assert!((quiet.one_by_one(1, Bytes(1 << 20)).0 as f64 - 10e6).abs() < 1e3, "{quiet:?}");
}

#[test]
fn another_device_and_a_stranger_count_as_they_should() {
    let mut r = empty();
    sizes(&mut r, false);
    let alone = DeviceCost::of(&r).unwrap();
    let rows = r.device_reads.as_mut().unwrap();
    let mut other = rows.clone();
    // The same at the same time on another device: still alone there.
    for d in &mut other {
        d.dev.minor += 16;
    }
    rows.append(&mut other);
    assert_eq!(DeviceCost::of(&r).map(|c| c.per_request), Some(alone.per_request));
    // A stranger beside each on its own device: none is alone, and all are taken.
    let rows = r.device_reads.as_mut().unwrap();
    let mut stranger = rows.clone();
    for d in &mut stranger {
        d.in_tree = false;
    }
    rows.append(&mut stranger);
    assert_eq!(requests(&r).iter().filter(|r| r.alone).count(), 0);
    assert!(DeviceCost::of(&r).is_some());
}
