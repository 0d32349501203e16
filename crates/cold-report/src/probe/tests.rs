use super::*;

fn panel(scales: (Scale, Scale), points: Vec<(f64, f64)>) -> Panel {
    let series = vec![ProbeLine { name: "a <b>".to_owned(), points }];
    Panel { title: "Hits & misses".to_owned(), x: "s".to_owned(), y: "ms".to_owned(), scales, series }
}

/// Places of the curve's points.
fn places(svg: &str) -> Vec<(f64, f64)> {
    let path = svg.split("<path d=\"").nth(1).unwrap().split('"').next().unwrap();
    let pair = |p: &str| {
        let (x, y) = p.split_once(' ').unwrap();
        (x.parse().unwrap(), y.parse().unwrap())
    };
    path.split(['M', 'L']).filter(|p| !p.is_empty()).map(pair).collect()
}

#[test]
fn points_lie_where_their_values_are() {
    let found =
        svg("t", "f", &[panel((Scale::Linear, Scale::Linear), vec![(0.0, 0.0), (5.0, 50.0), (10.0, 100.0)])]);
    let p = places(&found);
    assert_eq!(p.len(), 3);
    assert!((p[1].0 - f64::midpoint(p[0].0, p[2].0)).abs() < 0.2);
    assert!((p[1].1 - f64::midpoint(p[0].1, p[2].1)).abs() < 0.2 && p[2].1 < p[0].1);
    // Equal ratios are equal distances.
    let found = svg(
        "t",
        "f",
        &[panel((Scale::Log, Scale::Log), vec![(1.0, 0.01), (10.0, 0.1), (100.0, 1.0), (1000.0, 0.0)])],
    );
    let p = places(&found);
    assert_eq!(p.len(), 3, "0 has no place");
    assert!((p[1].0 - p[0].0 - (p[2].0 - p[1].0)).abs() < 0.2);
    assert!((p[1].1 - p[0].1 - (p[2].1 - p[1].1)).abs() < 0.2);
}

const WORDS: &[&str] = &["sequential", "normal"];

/// What stands along the axes, upward and across.
fn labels(scales: (Scale, Scale), points: &[(f64, f64)]) -> [Vec<String>; 2] {
    let of = |values: Vec<f64>, scale, wanted| {
        Ruler::new(values.into_iter(), scale, wanted).labels().into_iter().map(|l| l.1).collect()
    };
    [
        of(points.iter().map(|p| p.0).collect(), scales.0, 10),
        of(points.iter().map(|p| p.1).collect(), scales.1, 5),
    ]
}

#[test]
fn axes_end_at_what_is_drawn() {
    let doubled: Vec<(f64, f64)> = [4.0, 8.0, 16.0, 64.0].map(|n: f64| (n, n / 4.0)).to_vec();
    let [across, up] = labels((Scale::Doubling, Scale::Log), &doubled);
    assert_eq!(across, ["4", "8", "16", "32", "64"]);
    assert_eq!(up, ["1", "10", "100"]);
    let [across, _] = labels((Scale::Words(WORDS), Scale::Linear), &[(0.0, 1.0), (1.0, 2.0)]);
    assert_eq!(across, WORDS);
    let found = svg("t", "f", &[panel((Scale::Words(WORDS), Scale::Linear), vec![(0.0, 1.0), (1.0, 2.0)])]);
    let p = places(&found);
    assert!((p[0].0 - (LEFT + (WIDTH - LEFT - RIGHT) / 4.0)).abs() < 0.2, "{p:?}");
}

#[test]
fn names_are_escaped_and_nothing_is_not_a_number() {
    let strange = vec![(f64::NAN, 1.0), (1.0, f64::INFINITY), (2.0, 2.0)];
    for points in [strange, vec![], vec![(0.0, 0.0)], vec![(3.0, 7.0); 4000]] {
        for scale in [Scale::Linear, Scale::Log, Scale::Doubling, Scale::Words(&["one"])] {
            let page = html("a <script>", "f", &[panel((scale, scale), points.clone())]);
            assert!(page.contains("a &lt;b&gt;") && !page.contains("<script"), "{page}");
            assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
            assert!(page.len() < 100_000);
        }
    }
    assert!(svg("t", "f", &[]).contains("nothing to draw"));
}

#[test]
fn more_series_than_can_be_told_apart_are_counted() {
    let mut p = panel((Scale::Linear, Scale::Linear), vec![(0.0, 1.0)]);
    p.series = vec![p.series[0].clone(); 15];
    let found = svg("t", "f", &[p]);
    assert_eq!(found.matches("<path").count(), 12);
    assert!(found.contains("and 3 more, not drawn"));
}
