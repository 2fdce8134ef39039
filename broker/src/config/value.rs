//! Parsing and checking of single values, with Kafka's own error texts.

use std::collections::BTreeMap;

use super::table::{ConfigDef, Type, Valid};

/// Why a value is refused; the text is Kafka's where Kafka has one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(pub String);

impl ValueError {
    fn new(name: &str, value: &str, problem: &str) -> Self {
        Self(format!(
            "Invalid value {value} for configuration {name}: {problem}"
        ))
    }
}

/// A boolean, whatever its case.
pub(super) fn boolean(text: &str) -> Option<bool> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// The trimmed elements of a list; an empty text is an empty list.
pub(super) fn list(text: &str) -> Vec<String> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    text.split(',')
        .map(|element| element.trim().to_owned())
        .collect()
}

/// Checks `text` against its row and returns it as Kafka shows it: numbers, booleans and lists trimmed.
///
/// `group.share.*` bounds and other checks that need more than one value are not made here.
pub fn check(def: &ConfigDef, text: &str) -> Result<String, ValueError> {
    let shown = normalize(def, text)?;
    check_range(def, &shown)?;
    Ok(shown)
}

fn normalize(def: &ConfigDef, text: &str) -> Result<String, ValueError> {
    let not_a_number = || {
        ValueError::new(
            def.name,
            text,
            &format!("Not a number of type {}", def.kind.name()),
        )
    };
    // Kafka reads whole numbers with Java's parser: one sign, digits, nothing else.
    let whole = || text.trim().parse::<i64>().map_err(|_| not_a_number());
    Ok(match def.kind {
        Type::Boolean => boolean(text)
            .ok_or_else(|| {
                ValueError::new(def.name, text, "Expected value to be either true or false")
            })?
            .to_string(),
        Type::Short => i16::try_from(whole()?)
            .map_err(|_| not_a_number())?
            .to_string(),
        Type::Int => i32::try_from(whole()?)
            .map_err(|_| not_a_number())?
            .to_string(),
        Type::Long => whole()?.to_string(),
        Type::Double => double(text)
            .map(|_| text.trim().to_owned())
            .ok_or_else(not_a_number)?,
        Type::List => list(text).join(","),
        Type::String | Type::Class => text.trim().to_owned(),
        Type::Password => text.to_owned(),
    })
}

/// A floating-point number as Java reads it: a trailing `d` or `f` is allowed, infinity and NaN have one
/// spelling each.
pub(super) fn double(text: &str) -> Option<f64> {
    let text = text.trim();
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned != "NaN" && unsigned != "Infinity" && unsigned.starts_with(char::is_alphabetic) {
        return None;
    }
    let digits = match text.strip_suffix(['d', 'D', 'f', 'F']) {
        Some(digits) if unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') => digits,
        _ => text,
    };
    digits.parse().ok()
}

/// `HOST:NUMBER` pairs, as in `max.connections.per.ip.overrides`.
pub(super) fn host_limits(text: &str) -> Option<BTreeMap<String, i32>> {
    list(text)
        .into_iter()
        .map(|entry| {
            let (host, number) = entry.rsplit_once(':')?;
            Some((host.trim().to_owned(), number.trim().parse().ok()?))
        })
        .collect()
}

fn check_range(def: &ConfigDef, text: &str) -> Result<(), ValueError> {
    let refuse = |problem: &str| Err(ValueError::new(def.name, text, problem));
    // Only number types carry number ranges, and `text` was read as one.
    let number = text.parse::<i64>().unwrap_or_default();
    match def.valid {
        Valid::Any | Valid::NonNull => Ok(()),
        Valid::Min(min) | Valid::Between(min, _) if number < min => {
            refuse(&format!("Value must be at least {min}"))
        }
        Valid::Between(_, max) if number > max => {
            refuse(&format!("Value must be no more than {max}"))
        }
        Valid::Min(_) | Valid::Between(..) => Ok(()),
        Valid::Ratio(min, max) => check_ratio(def, text, min, max),
        Valid::Share => match double(text) {
            Some(share) if share > 0.0 && share <= 1.0 => Ok(()),
            _ => refuse("Value must be more than 0 and no more than 1"),
        },
        Valid::MinusOneOrMin(min) if number != -1 && number < min => {
            refuse(&format!("Value must be at least {min} or equal to -1"))
        }
        Valid::MinusOneOrMin(_) => Ok(()),
        Valid::GzipLevel if number != -1 && !(1..=9).contains(&number) => {
            refuse("Value must be between 1 and 9 or equal to -1")
        }
        Valid::GzipLevel => Ok(()),
        Valid::OneOf(allowed) if !allowed.contains(&text) => {
            refuse(&format!("String must be one of: {}", allowed.join(", ")))
        }
        Valid::OneOf(_) => Ok(()),
        Valid::OneOfIgnoringCase(allowed)
            if !allowed.iter().any(|word| word.eq_ignore_ascii_case(text)) =>
        {
            refuse(&format!(
                "String must be one of (case insensitive): {}",
                allowed.join(", ")
            ))
        }
        Valid::OneOfIgnoringCase(_) => Ok(()),
        Valid::EachOf(allowed) => check_each(def, text, allowed),
        Valid::NonEmpty if text.is_empty() => refuse("String must be non-empty"),
        Valid::NonEmpty => Ok(()),
        Valid::NonEmptyList if list(text).iter().any(String::is_empty) => Err(empty_element(def)),
        Valid::NonEmptyList => Ok(()),
        Valid::ThrottledReplicas => check_throttled(def, text),
        Valid::OffsetReset => check_offset_reset(def, text),
        Valid::DlqTopic if text.starts_with("__") => Err(ValueError(format!(
            "{}: DLQ topic name must not start with '__'",
            def.name
        ))),
        Valid::DlqTopic => Ok(()),
        Valid::HostLimits if host_limits(text).is_none() => {
            refuse("a list of HOST:NUMBER is expected")
        }
        Valid::HostLimits => Ok(()),
    }
}

fn check_ratio(def: &ConfigDef, text: &str, min: f64, max: f64) -> Result<(), ValueError> {
    let number = double(text).unwrap_or(f64::NAN);
    // NaN passes both comparisons, in Kafka too.
    if number < min {
        return Err(ValueError::new(
            def.name,
            text,
            &format!("Value must be at least {min}"),
        ));
    }
    if number > max {
        return Err(ValueError::new(
            def.name,
            text,
            &format!("Value must be no more than {max}"),
        ));
    }
    Ok(())
}

fn empty_element(def: &ConfigDef) -> ValueError {
    ValueError(format!(
        "Configuration '{}' values must not be empty.",
        def.name
    ))
}

fn check_each(def: &ConfigDef, text: &str, allowed: &[&str]) -> Result<(), ValueError> {
    for element in list(text) {
        if element.is_empty() {
            return Err(empty_element(def));
        }
        if !allowed.contains(&element.as_str()) {
            let problem = format!("String must be one of: {}", allowed.join(", "));
            return Err(ValueError::new(def.name, &element, &problem));
        }
    }
    Ok(())
}

fn check_throttled(def: &ConfigDef, text: &str) -> Result<(), ValueError> {
    let replicas = list(text);
    let pair = |replica: &String| {
        replica.split_once(':').is_some_and(|(partition, broker)| {
            [partition, broker]
                .iter()
                .all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    if replicas == ["*"] || replicas.iter().all(pair) {
        return Ok(());
    }
    let name = def.name;
    let problem = format!(
        "{name} must be the literal '*' or a list of replicas in the following format: \
         [partitionId]:[brokerId],[partitionId]:[brokerId],..."
    );
    Err(ValueError::new(
        name,
        &format!("[{}]", replicas.join(", ")),
        &problem,
    ))
}

fn check_offset_reset(def: &ConfigDef, text: &str) -> Result<(), ValueError> {
    let by_duration = |text: &str| {
        text.strip_prefix("by_duration:")
            .and_then(iso_duration_ms)
            .is_some_and(|ms| ms >= 0)
    };
    if matches!(text, "earliest" | "latest") || by_duration(text) {
        return Ok(());
    }
    let name = def.name;
    let problem = format!(
        "Invalid value `{text}` for configuration {name}. The value must be either 'earliest', \
         'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    );
    Err(ValueError::new(name, text, &problem))
}

/// The milliseconds of an ISO-8601 duration of days, hours, minutes and seconds, as
/// `java.time.Duration` reads it: any case, a sign before the whole and before each number, at most
/// nine digits after the point. Saturates at the ends of `i64`.
pub(super) fn iso_duration_ms(text: &str) -> Option<i64> {
    let upper = text.to_ascii_uppercase();
    let (negative, rest) = match upper.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, upper.strip_prefix('+').unwrap_or(&upper)),
    };
    let rest = rest.strip_prefix('P')?;
    let (days, time) = match rest.split_once('T') {
        Some((_, "")) => return None,
        Some((days, time)) => (days, time),
        None => (rest, ""),
    };
    if days.is_empty() && time.is_empty() {
        return None;
    }
    let mut total = sum_units(days, &[('D', 86_400_000)])?;
    total += sum_units(time, &[('H', 3_600_000), ('M', 60_000), ('S', 1_000)])?;
    let total = if negative { -total } else { total };
    Some(total.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
}

/// The sum of `<number><unit>` groups, whose units come in this order, each at most once.
fn sum_units(mut text: &str, units: &[(char, i128)]) -> Option<i128> {
    let mut total = 0;
    for (unit, ms) in units {
        let Some((number, rest)) = text.split_once(*unit) else {
            continue;
        };
        text = rest;
        let (whole, fraction) = match number.split_once(['.', ',']) {
            Some(parts) if *unit == 'S' => parts,
            Some(_) => return None,
            None => (number, ""),
        };
        if fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let negative = whole.starts_with('-');
        total += i128::from(whole.parse::<i64>().ok()?) * ms;
        let millis: i128 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
        total += if negative { -millis } else { millis };
    }
    text.is_empty().then_some(total)
}
