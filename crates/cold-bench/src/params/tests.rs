use proptest::prelude::*;

use super::*;

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

fn lists(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
}

fn scan(min: &str, max: &str, step: Option<&str>) -> Result<Vec<String>, ParamError> {
    let p = Parameters::new(&[], Some(Scan { name: "d", min, max }), step)?;
    Ok(p.values[0].1.clone())
}

#[test]
fn combinations_come_in_hyperfines_order() {
    // hyperfine 1.15 -L a 1,2 -L b x,y 'echo {a} {b}' 'printf {a}{b}'
    let p = Parameters::new(&lists(&[("a", "1,2"), ("b", "x,y")]), None, None).unwrap();
    let all = p.expand(&strings(&["echo {a} {b}", "printf {a}{b}"]), &[]).unwrap();
    let lines: Vec<&str> = all.iter().map(|e| e.line.as_str()).collect();
    assert_eq!(
        lines,
        ["echo 1 x", "printf 1x", "echo 2 x", "printf 2x", "echo 1 y", "printf 1y", "echo 2 y", "printf 2y"]
    );
    assert_eq!(all[2].parameters, lists(&[("a", "2"), ("b", "x")]));
    assert_eq!(all[3].name, "printf 2x");
}

#[test]
fn scans_are_exact_and_shown_as_hyperfine_shows_them() {
    assert_eq!(scan("1", "3", None).unwrap(), ["1", "2", "3"]);
    assert_eq!(scan("0", "1", Some("0.5")).unwrap(), ["0", "0.5", "1.0"]);
    assert_eq!(scan("0.1", "0.5", Some("0.1")).unwrap(), ["0.1", "0.2", "0.3", "0.4", "0.5"]);
    assert_eq!(scan("-1", "4", Some("2")).unwrap(), ["-1", "1", "3"]);
    assert_eq!(scan("-0.5", "0.25", Some("0.25")).unwrap(), ["-0.5", "-0.25", "0.00", "0.25"]);
    assert_eq!(scan("1", "2.50", Some("1")).unwrap(), ["1", "2"]);
    assert_eq!(scan("3", "1", None), Err(ParamError::EmptyRange { min: "3".into(), max: "1".into() }));
    assert_eq!(scan("0.5", "1", None), Err(ParamError::NoStep));
    assert_eq!(scan("0", "5", Some("0")), Err(ParamError::BadStep("0".into())));
    assert_eq!(scan("5", "0", Some("-2")), Err(ParamError::BadStep("-2".into())));
    assert_eq!(scan("a", "5", None), Err(ParamError::NotANumber("a".into())));
    assert_eq!(scan("0", "1000000", None), Err(ParamError::TooMany(1_000_001)));
}

#[test]
fn commas_can_be_escaped() {
    assert_eq!(split_list(r"a\,b,c\x,d\\,"), [r"a,b", r"c\x", r"d\", ""]);
}

#[test]
fn contradictions_are_errors() {
    let one = lists(&[("a", "1")]);
    let twice = lists(&[("a", "1"), ("a", "2")]);
    let s = Some(Scan { name: "b", min: "1", max: "2" });
    assert_eq!(Parameters::new(&one, s, None), Err(ParamError::ScanAndList));
    assert_eq!(Parameters::new(&twice, None, None), Err(ParamError::Duplicate("a".into())));
    assert_eq!(Parameters::new(&[], None, Some("1")), Err(ParamError::StepAlone));
    assert_eq!(Parameters::new(&lists(&[("", "1")]), None, None), Err(ParamError::BadName(String::new())));
    let p = Parameters::new(&lists(&[("a", "1,2")]), None, None).unwrap();
    let too_many = p.expand(&strings(&["x"]), &strings(&["1", "2", "3"]));
    assert_eq!(too_many, Err(ParamError::TooManyNames { names: 3, commands: 2 }));
    let huge: Vec<(String, String)> = (0..300).map(|i| (format!("p{i}"), "1,2".to_owned())).collect();
    assert!(matches!(
        Parameters::new(&huge, None, None).unwrap().expand(&strings(&["x"]), &[]),
        Err(ParamError::TooMany(_))
    ));
}

#[test]
fn names_belong_to_commands_or_to_results_and_take_parameters() {
    let p = Parameters::new(&lists(&[("a", "1,2")]), None, None).unwrap();
    let names = |given: &[&str]| -> Vec<String> {
        p.expand(&strings(&["x {a}"]), &strings(given)).unwrap().into_iter().map(|e| e.name).collect()
    };
    assert_eq!(names(&["n {a}"]), ["n 1", "n 2"]);
    assert_eq!(names(&["first", "second"]), ["first", "second"]);
}

#[test]
fn substitution_is_done_once_and_leaves_other_braces() {
    let p = lists(&[("a", "{b}"), ("b", "2")]);
    assert_eq!(substitute("x {a} {b} {c} {{a}} ${d} {", &p), "x {b} 2 {c} {{b}} ${d} {");
}

#[test]
fn as_many_commands_as_are_allowed_are_made_and_no_more() {
    assert_eq!(scan("1", "10000", None).unwrap().len(), 10_000);
    assert_eq!(scan("0", "10000", None), Err(ParamError::TooMany(10_001)));
    let p = Parameters::new(&lists(&[("a", &vec!["x"; 5000].join(","))]), None, None).unwrap();
    assert_eq!(p.expand(&strings(&["1", "2"]), &[]).unwrap().len(), 10_000);
    assert_eq!(p.expand(&strings(&["1", "2", "3"]), &[]), Err(ParamError::TooMany(15_000)));
}

#[test]
fn numbers_of_more_digits_than_are_exact_are_refused() {
    for text in
        ["", "-", ".", "+.", "1.2.3", "1e3", "0x10", " 1", "١", "1234567890123456", "0.1234567890123456"]
    {
        assert_eq!(scan(text, "5", Some("1")), Err(ParamError::NotANumber(text.into())), "{text:?}");
    }
    let most = "999999999999999";
    assert_eq!(scan(most, most, None).unwrap(), [most]);
    let finest = "0.000000000000001";
    let twice = "0.000000000000002";
    assert_eq!(scan(finest, twice, Some(finest)).unwrap(), [finest, twice]);
    assert_eq!(scan("-.5", "5.", Some("5")).unwrap(), ["-0.5", "4.5"]);
    assert_eq!(scan("-0", "0", None).unwrap(), ["0"]);
}

#[test]
fn names_of_results_are_given_where_there_are_more_than_commands() {
    let p = Parameters::new(&lists(&[("a", "1,2")]), None, None).unwrap();
    let names = |given: &[&str]| -> Vec<String> {
        let all = p.expand(&strings(&["x {a}", "y {a}"]), &strings(given)).unwrap();
        all.into_iter().map(|e| e.name).collect()
    };
    // Two names are those of the two commands; a third makes them names of results, in their order.
    assert_eq!(names(&["n", "m"]), ["n", "m", "n", "m"]);
    assert_eq!(names(&["n", "m", "o"]), ["n", "m", "o", "y 2"]);
    assert_eq!(names(&["n"]), ["n", "y 1", "n", "y 2"]);
}

proptest! {
    #[test]
    fn lists_round_trip(values in prop::collection::vec("[a-z,\\\\ ]{0,6}", 1..6)) {
        let typed: Vec<String> =
            values.iter().map(|v| v.replace('\\', "\\\\").replace(',', "\\,")).collect();
        prop_assert_eq!(split_list(&typed.join(",")), values);
    }
    #[test]
    fn any_text_is_substituted_or_kept(text in ".{0,40}", value in ".{0,5}") {
        let out = substitute(&text, &[("a".to_owned(), value.clone())]);
        prop_assert_eq!(out, text.replace("{a}", &value));
    }
    #[test]
    fn any_scan_ends(min in "-?[0-9.]{1,6}", max in "-?[0-9.]{1,6}", step in "-?[0-9.]{1,4}") {
        let _ = scan(&min, &max, Some(&step));
    }
    #[test]
    fn decimals_print_as_they_were_typed(text in "-?[1-9][0-9]{0,5}(\\.[0-9]{1,5})?") {
        let d = Decimal::parse(&text).unwrap();
        prop_assert_eq!(d.show(d.scale), text);
    }
}
