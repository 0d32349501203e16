use super::*;
use cold_model::sample::{PAGE, empty};
use cold_model::{Dev, Known};

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
    assert_eq!(requests(&r, |_| true).iter().filter(|r| r.alone).count(), 0);
    assert!(DeviceCost::of(&r).is_some());
}

/// Eight requests at a time, each in the time of one alone, 10 times; then one by one of another size.
#[test]
fn the_disk_takes_as_many_at_once_as_were_seen() {
    let mut r = empty();
    let f = r.file("/a", 100_000 * PAGE);
    for i in 0..10 {
        for k in 0..8 {
            r.request(i * 20, 1, f, i * 1000 + k * 20..i * 1000 + k * 20 + 1);
        }
        r.request(i * 20 + 10, 1, f, i * 1000 + 500..i * 1000 + 501);
        r.request(i * 20 + 12, 3, f, i * 1000 + 600..i * 1000 + 664);
    }
    let cost = DeviceCost::of(&r).unwrap();
    assert!(cost.knows_sizes());
    let model = cost.disk(bounds(&r));
    // The sample's disk takes 168 segments.
    assert_eq!((model.channels, model.request), (8, Bounds { bytes: 64 << 12, segments: 168 }));
    let mut disk = cold_sim::disk::Disk::new(model, 1 << 40, 0);
    let millis = |ns: u64| (ns as f64 / 1e6 * 100.0).round() / 100.0;
    let eight: Vec<f64> = (0..8).map(|k| millis(disk.submit(0, k << 20, PAGE).done_ns)).collect();
    // Their bytes pass one after the other, 32 µs each.
    assert!(eight.iter().all(|t| (1.0..1.25).contains(t)), "{eight:?}");
    // The ninth waits for a channel; a larger one takes what it took alone.
    assert!(millis(disk.submit(0, 1 << 30, PAGE).done_ns) >= 2.0);
    assert!((millis(disk.submit(1_000_000_000, 1 << 31, 64 * PAGE).done_ns) - 1003.0).abs() < 0.02);
}

#[test]
fn one_size_says_nothing_of_others() {
    let mut r = empty();
    let f = r.file("/a", 100_000 * PAGE);
    for i in 0..20 {
        r.request(i * 20, 1, f, i * 1000..i * 1000 + 2);
    }
    assert!(!DeviceCost::of(&r).unwrap().knows_sizes());
}

#[test]
fn a_request_is_bounded_by_the_devices_that_were_read() {
    let mut r = empty();
    let f = r.file("/a", 100 * PAGE);
    let of = |minor, bytes, segments| Device {
        dev: Dev { major: 7, minor },
        max_request: Known::Value(Bytes(bytes)),
        max_segments: segments,
        ..empty().manifest.devices[0].clone()
    };
    r.manifest.devices = vec![of(1, 1 << 20, Known::Value(254)), of(2, 2 << 20, Known::Value(64))];
    assert_eq!(bounds(&r), Bounds { bytes: 1 << 20, segments: 64 }, "no request tells of a device");
    r.request(0, 1, f, 0..1);
    r.device_reads.as_mut().unwrap()[0].dev = Dev { major: 7, minor: 2 };
    assert_eq!(bounds(&r), Bounds { bytes: 2 << 20, segments: 64 });
    r.manifest.devices[1] = of(2, 512, Known::default());
    assert_eq!(bounds(&r), Bounds::default(), "an older recording; and no device reads less than a page");
}
