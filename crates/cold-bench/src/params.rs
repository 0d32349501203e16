//! Parameters of commands, as in hyperfine: `-L VAR a,b,c`, `-P VAR MIN MAX [-D STEP]`, `{VAR}`.
//!
//! Every combination of the values is a command of its own. The order is hyperfine's: the commands
//! vary fastest, then the first parameter.

mod decimal;

use decimal::Decimal;

/// Parameters that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// A name twice.
    #[error("the parameter {0:?} is given twice; use one --parameter-list with all its values")]
    Duplicate(String),
    /// A name that cannot stand in `{}`.
    #[error("{0:?} cannot be the name of a parameter: it is empty or holds '{{' or '}}'")]
    BadName(String),
    /// Lists and a scan together.
    #[error(
        "--parameter-scan and --parameter-list cannot be used together; write the scan's values as a list"
    )]
    ScanAndList,
    /// A step without a scan.
    #[error("--parameter-step-size needs --parameter-scan")]
    StepAlone,
    /// A bound or step that is no number.
    #[error("{0:?} is not a number; --parameter-scan takes integers or decimals such as 0.25")]
    NotANumber(String),
    /// Minimum above maximum.
    #[error("the range from {min} to {max} is empty")]
    EmptyRange {
        /// Lower bound as typed.
        min: String,
        /// Upper bound as typed.
        max: String,
    },
    /// Decimals need a step.
    #[error("a range with decimals needs --parameter-step-size")]
    NoStep,
    /// A step that never arrives.
    #[error("the step {0} must be above 0")]
    BadStep(String),
    /// More than [`MOST`] combinations.
    #[error("the parameters make {0} commands; at most {MOST} are allowed")]
    TooMany(u128),
    /// More names than commands.
    #[error("{names} names are given for {commands} commands")]
    TooManyNames {
        /// Number of names.
        names: usize,
        /// Number of commands.
        commands: usize,
    },
}

/// Most commands that parameters may make: each is started several times, so more is a slip.
pub const MOST: u128 = 10_000;

/// Parameters with all their values, in the order given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parameters {
    values: Vec<(String, Vec<String>)>,
}

/// A command with its parameters put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    /// Its name: the one given with parameters put in, else the line.
    pub name: String,
    /// The command line.
    pub line: String,
    /// Index of the command it was made from.
    pub source: usize,
    /// Name and value of each parameter.
    pub parameters: Vec<(String, String)>,
}

/// The values of a `--parameter-scan`, from its two ends and its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scan<'a> {
    /// Name of the parameter: `{NAME}` in a command is replaced.
    pub name: &'a str,
    /// First value, as typed: an integer or a decimal.
    pub min: &'a str,
    /// Last value, if the steps meet it.
    pub max: &'a str,
}

impl Parameters {
    /// From the options: lists as (name, values with commas), a scan and its step.
    pub fn new(
        lists: &[(String, String)],
        scan: Option<Scan<'_>>,
        step: Option<&str>,
    ) -> Result<Self, ParamError> {
        let mut values: Vec<(String, Vec<String>)> = Vec::new();
        if scan.is_some() && !lists.is_empty() {
            return Err(ParamError::ScanAndList);
        }
        match (scan, step) {
            (Some(s), step) => values.push((s.name.to_owned(), scan_values(s, step)?)),
            (None, Some(_)) => return Err(ParamError::StepAlone),
            (None, None) => {}
        }
        for (name, list) in lists {
            if values.iter().any(|(n, _)| n == name) {
                return Err(ParamError::Duplicate(name.clone()));
            }
            values.push((name.clone(), split_list(list)));
        }
        if let Some((name, _)) = values.iter().find(|(n, _)| n.is_empty() || n.contains(['{', '}'])) {
            return Err(ParamError::BadName(name.clone()));
        }
        Ok(Self { values })
    }

    /// Every command with every combination of values. `names` belong to the commands or, when there
    /// are more of them, to the commands that come out; missing ones are the command line.
    pub fn expand(&self, commands: &[String], names: &[String]) -> Result<Vec<Expanded>, ParamError> {
        let combinations: u128 = self
            .values
            .iter()
            .map(|(_, v)| v.len() as u128)
            .try_fold(1, u128::checked_mul)
            .unwrap_or(u128::MAX);
        let total = combinations.saturating_mul(commands.len() as u128);
        if total > MOST {
            return Err(ParamError::TooMany(total));
        }
        if names.len() as u128 > total {
            return Err(ParamError::TooManyNames { names: names.len(), commands: total as usize });
        }
        let per_result = names.len() > commands.len();
        let mut all = Vec::with_capacity(total as usize);
        for combination in 0..combinations as usize {
            let parameters = self.combination(combination);
            for (source, command) in commands.iter().enumerate() {
                let line = substitute(command, &parameters);
                let name = names.get(if per_result { all.len() } else { source });
                let name = name.map_or_else(|| line.clone(), |n| substitute(n, &parameters));
                all.push(Expanded { name, line, source, parameters: parameters.clone() });
            }
        }
        Ok(all)
    }

    /// The values of a combination; the first parameter varies fastest.
    fn combination(&self, mut index: usize) -> Vec<(String, String)> {
        let mut chosen = Vec::with_capacity(self.values.len());
        for (name, values) in &self.values {
            chosen.push((name.clone(), values[index % values.len()].clone()));
            index /= values.len();
        }
        chosen
    }
}

/// Puts values in for `{NAME}`, in one pass: a value that holds `{OTHER}` stays as it is. Braces
/// around anything else stay too.
pub fn substitute(text: &str, parameters: &[(String, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        let inside = rest[1..].find(['{', '}']).filter(|end| rest.as_bytes()[end + 1] == b'}');
        let found =
            inside.and_then(|end| Some((end, parameters.iter().find(|(name, _)| *name == rest[1..=end])?)));
        if let Some((end, (_, value))) = found {
            out.push_str(value);
            rest = &rest[end + 2..];
        } else {
            out.push('{');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}

/// Splits at commas; `\,` is a comma and `\\` a backslash, any other backslash stands for itself.
fn split_list(list: &str) -> Vec<String> {
    let mut values = vec![String::new()];
    let mut chars = list.chars().peekable();
    while let Some(c) = chars.next() {
        if c == ',' {
            values.push(String::new());
            continue;
        }
        let escaped = (c == '\\').then(|| chars.next_if(|next| matches!(next, ',' | '\\'))).flatten();
        if let Some(last) = values.last_mut() {
            last.push(escaped.unwrap_or(c));
        }
    }
    values
}

fn scan_values(scan: Scan<'_>, step: Option<&str>) -> Result<Vec<String>, ParamError> {
    let number = |text: &str| Decimal::parse(text).ok_or_else(|| ParamError::NotANumber(text.to_owned()));
    let (min, max) = (number(scan.min)?, number(scan.max)?);
    let step = match step {
        Some(text) => Some((text, number(text)?)),
        None => None,
    };
    if step.is_none() && (min.scale > 0 || max.scale > 0) {
        return Err(ParamError::NoStep);
    }
    let (text, step) = step.unwrap_or(("1", Decimal { digits: 1, scale: 0 }));
    if step.digits <= 0 {
        return Err(ParamError::BadStep(text.to_owned()));
    }
    let scale = min.scale.max(max.scale).max(step.scale);
    let (from, to, by) = (min.at(scale), max.at(scale), step.at(scale));
    if from > to {
        return Err(ParamError::EmptyRange { min: scan.min.to_owned(), max: scan.max.to_owned() });
    }
    let count = (to - from) / by + 1;
    if count as u128 > MOST {
        return Err(ParamError::TooMany(count as u128));
    }
    // As in hyperfine, the first value keeps the decimals of the minimum, sums have those of the step.
    let shown = min.scale.max(step.scale);
    Ok((0..count)
        .map(|i| {
            let value = Decimal { digits: from + i * by, scale };
            value.show(if i == 0 { min.scale } else { shown })
        })
        .collect())
}

#[cfg(test)]
mod tests;
