use proptest::prelude::*;

use super::*;

#[test]
fn ticks_are_round_numbers_around_the_values() {
    let a = Axis::new(397.0e6, 447.0e6, 6);
    assert_eq!((a.low, a.high, a.ticks.len()), (390.0e6, 450.0e6, 7));
    assert_eq!(a.time_unit(), TimeUnit { name: "ms", ns: 1e6, decimals: 0 });
    assert!(Axis::new(90.0, 410.0, 5).low.abs() < 1e-9, "less than half: from 0");
    let fine = Axis::new(1.234e9, 1.236e9, 4);
    assert_eq!(fine.time_unit(), TimeUnit { name: "s", ns: 1e9, decimals: 4 });
    let one = Axis::new(5e6, 5e6, 4);
    assert!(one.low.abs() < 1e-9 && one.high >= 5e6, "a lone value stands above 0: {one:?}");
}

proptest! {
    #[test]
    fn values_lie_on_the_axis_and_ticks_are_few(a in 0.0..1e13_f64, b in 0.0..1e13_f64, wanted in 2_usize..12) {
        let (min, max) = (a.min(b), a.max(b));
        let axis = Axis::new(min, max, wanted);
        let slack = 1e-6 * (axis.high - axis.low);
        prop_assert!(axis.low <= min + slack && axis.high >= max - slack, "{axis:?}");
        prop_assert!(axis.ticks.len() >= 2 && axis.ticks.len() <= wanted + 3, "{axis:?}");
        prop_assert!((0.0..=1.0 + 1e-6).contains(&(axis.place(max) - 1e-9)) || axis.place(max) < 1e-9);
    }
    #[test]
    fn any_numbers_make_an_axis(a in any::<f64>(), b in any::<f64>()) {
        let axis = Axis::new(a, b, 5);
        prop_assert!(axis.ticks.len() < 1000);
    }
}
