//! The SQL that asks a dataset, and what its answers hold.
//!
//! One text per question (`sql/`), the same for every engine: views, window functions and common table expressions
//! that DuckDB and Spark both know. Only how an engine finds the Parquet files differs ([`Engine`]).

use std::fmt::Write as _;

/// Who runs the SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// DuckDB 1.0 and later.
    DuckDb,
    /// Spark 3.4 and later (`spark-sql -f`, or `spark.sql` statement by statement).
    Spark,
}

/// What a question is about. Empty texts leave a choice open.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Name of the program.
    pub program: String,
    /// Version of the program, as the partitions have it.
    pub version: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Class of the machine.
    pub machine: String,
    /// A page is agreed upon when at least this share of the starts needed it; above 0, at most 1.
    pub share: f64,
    /// The fold that does not teach and judges ([`crate::start::FOLDS`]); `None`: all starts teach.
    pub hold_out: Option<u32>,
}

/// A column of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name in the SQL.
    pub name: &'static str,
    /// What its values are.
    pub unit: Unit,
}

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Any text; it says what a row is about.
    Text,
    /// A path, or a digest of one.
    Path,
    /// A number of things.
    Count,
    /// A size in bytes.
    Bytes,
    /// Pages of 4096 bytes.
    Pages,
    /// A length of time in nanoseconds.
    Time,
    /// Nanoseconds since 1970.
    Date,
    /// A part of 1.
    Share,
    /// One figure over another.
    Ratio,
    /// True or false.
    Flag,
}

/// A question to a dataset, with what its answer looks like.
#[derive(Debug, Clone, Copy)]
pub struct Query {
    /// Its name on the command line and in `sql/`.
    pub name: &'static str,
    /// What it answers, in one sentence.
    pub about: &'static str,
    /// It holds a part of the starts out, where none is named.
    pub holds_out: bool,
    /// Its columns in order.
    pub columns: &'static [Column],
    sql: &'static str,
}

/// Views that questions are made of, in the order in which they are made.
const VIEWS: [(&str, &str); 4] = [
    ("chosen", include_str!("../sql/chosen.sql")),
    ("learnt", include_str!("../sql/learnt.sql")),
    ("runs", include_str!("../sql/runs.sql")),
    ("agreed", include_str!("../sql/agreed.sql")),
];

macro_rules! query {
    ($name:literal, $about:literal, $holds_out:literal; $($column:ident: $unit:ident,)*) => {
        Query {
            name: $name,
            about: $about,
            holds_out: $holds_out,
            columns: &[$(Column { name: stringify!($column), unit: Unit::$unit },)*],
            sql: include_str!(concat!("../sql/", $name, ".sql")),
        }
    };
}

/// All questions that people ask.
pub const QUERIES: [Query; 7] = [
    query! { "overview", "what the dataset holds, by program", false;
    program: Text, starts: Count, whole: Count, cold: Count, versions: Count, scenarios: Count, machines: Count,
    first_at: Date, last_at: Date, },
    CONSENSUS,
    query! { "stability", "how far starts agree about each file", false;
    program: Text, version: Text, scenario: Text, path: Path, build_id: Text, size: Bytes, starts: Count,
    any_pages: Pages, all_pages: Pages, agreed_pages: Pages, needed_pages: Count, jaccard: Ratio, },
    query! { "coverage", "what the consensus is worth to starts that did not teach it", true;
    program: Text, version: Text, scenario: Text, learnt_from: Count, held_out: Count, needed_pages: Pages,
    covered_pages: Pages, planned_pages: Pages, coverage: Share, in_vain: Share, },
    query! { "regressions", "cold starts by version, each against the one before", false;
    program: Text, scenario: Text, machine: Text, version: Text, starts: Count, median: Time, low: Time, high: Time,
    before: Text, ratio: Ratio, verdict: Text, },
    query! { "outliers", "classes of machines that are slower or faster than the others", false;
    program: Text, version: Text, scenario: Text, machine: Text, starts: Count, median: Time, all_median: Time,
    ratio: Ratio, verdict: Text, },
    query! { "remedies", "what would help, summed over all cold starts", false;
    program: Text, remedy: Text, helped: Count, starts: Count, saves: Time, saves_each: Time, share: Share, },
];

/// What a plan is made of besides [`CONSENSUS`]: what was started.
pub const SUBJECT: Query = query! { "subject", "what was started", false;
program: Text, version: Text, scenario: Text, executable: Path, executable_build_id: Text, executable_size: Bytes,
script: Path, starts: Count, cold: Count, tier: Text, all_exact: Count, all_one_thread: Count, first_at: Date,
last_at: Date, computing: Time, };

/// Directories and names of a plan.
pub const NAMES: Query = query! { "names", "directories and names that most starts looked up", false;
program: Text, version: Text, scenario: Text, kind: Text, path: Path, used: Count, starts: Count, need: Time, };

/// Pages of a plan.
pub const CONSENSUS: Query = query! { "consensus", "pages that most starts needed, in order of need", false;
program: Text, version: Text, scenario: Text, path: Path, build_id: Text, size: Bytes, first_page: Count,
pages: Pages, used: Count, starts: Count, need: Time, around: Flag, sections: Text, };

impl Query {
    /// The question of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        QUERIES.iter().find(|q| q.name == name)
    }

    /// The question itself, without the statements that make its views.
    pub fn sql(&self) -> &'static str {
        self.sql.trim_end()
    }
}

/// The statements that make the views of all questions, for a dataset at `dataset`: a directory, or what the engine
/// takes for one (`s3://…`). Each ends with `;`.
pub fn views(dataset: &str, settings: &Settings, engine: Engine) -> String {
    let mut out = String::new();
    let root = dataset.trim_end_matches('/');
    if engine == Engine::Spark {
        // Else a version 3.10 becomes the number 3.1.
        out.push_str("SET spark.sql.sources.partitionColumnTypeInference.enabled=false;\n");
    }
    for table in ["starts", "pages", "remedies"] {
        let made = match engine {
            Engine::DuckDb => {
                let files = text(&format!("{root}/{table}/**/*.parquet"));
                format!(
                    "CREATE TEMPORARY VIEW {table} AS SELECT * FROM read_parquet({files}, hive_partitioning = true, \
                     hive_types_autocast = false);"
                )
            }
            Engine::Spark => {
                let path = text(&format!("{root}/{table}"));
                format!("CREATE TEMPORARY VIEW {table} USING parquet OPTIONS (path {path});")
            }
        };
        out.push_str(&made);
        out.push('\n');
    }
    let Settings { program, version, scenario, machine, share, hold_out } = settings;
    let hold_out = hold_out.map_or(-1, i64::from);
    let words = [("program", program), ("version", version), ("scenario", scenario), ("machine", machine)]
        .map(|(name, value)| format!("{} AS {name}", text(value)))
        .join(", ");
    let _ = writeln!(
        out,
        "CREATE TEMPORARY VIEW settings AS SELECT {words}, CAST({share} AS DOUBLE) AS share, {hold_out} AS hold_out;"
    );
    for (name, sql) in VIEWS {
        let _ = writeln!(out, "CREATE TEMPORARY VIEW {name} AS\n{};", sql.trim_end());
    }
    out
}

/// A literal of SQL. A backslash means something to Spark and nothing to others, so none may be within: what holds one
/// is refused by [`is_plain`].
fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// Whether a text can be a literal for every engine: without backslashes, quotes and control characters.
pub fn is_plain(value: &str) -> bool {
    !value.chars().any(|c| matches!(c, '\\' | '\'' | '"' | '`') || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_in_the_sql_in_their_order() {
        for q in QUERIES.iter().chain([&SUBJECT, &NAMES]) {
            let last = q.sql().rsplit_once("\nSELECT").map_or(q.sql(), |(_, last)| last);
            let mut rest = last;
            for column in q.columns {
                let at = rest.find(column.name).unwrap_or_else(|| panic!("{}: {}", q.name, column.name));
                rest = &rest[at..];
            }
        }
    }

    #[test]
    fn statements_end_and_literals_are_quoted() {
        let settings = Settings {
            program: "it's".into(),
            version: String::new(),
            scenario: String::new(),
            machine: String::new(),
            share: 0.5,
            hold_out: Some(3),
        };
        for engine in [Engine::DuckDb, Engine::Spark] {
            let views = views("/data/", &settings, engine);
            assert!(views.contains("'it''s' AS program") && views.contains("3 AS hold_out"), "{views}");
            assert!(views.contains("'/data/starts"), "{views}");
            assert_eq!(views.matches(";\n").count(), views.matches(';').count(), "one end per statement");
        }
        assert!(is_plain("/srv/fleet data") && is_plain("s3://bucket/x"));
        assert!(!["a\\b", "a'b", "a\nb"].into_iter().any(is_plain));
    }
}
