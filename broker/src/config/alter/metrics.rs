//! Client-metrics subscriptions (KIP-714).

use super::Refusal;
use crate::config::configs::Own;
use crate::config::value;

const SELECTORS: &[&str] = &[
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];

/// Rules over a subscription that would have the configs `own`.
pub(super) fn check_whole(own: &Own) -> Result<(), Refusal> {
    if let Some(interval) = own.get("interval.ms")
        && !interval
            .parse()
            .is_ok_and(|ms: i32| (100..=3_600_000).contains(&ms))
    {
        return Err(Refusal::request(format!(
            "Invalid value {interval} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
        )));
    }
    for pattern in own
        .get("match")
        .map(|text| value::list(text))
        .unwrap_or_default()
    {
        let legal = pattern
            .split_once('=')
            .is_some_and(|(selector, expression)| {
                SELECTORS.contains(&selector.trim()) && is_expression(expression.trim())
            });
        if !legal {
            return Err(Refusal::config(format!(
                "Illegal client matching pattern: {pattern}"
            )));
        }
    }
    Ok(())
}

/// Whether a text can be a regular expression: brackets close, nothing dangles at an end.
fn is_expression(text: &str) -> bool {
    let (mut depth, mut class, mut escaped) = (0_u32, false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => class = true,
            ']' => class = false,
            '(' if !class => depth += 1,
            ')' if !class => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return false,
            },
            _ => {}
        }
    }
    !text.is_empty() && depth == 0 && !class && !escaped && !text.starts_with(['*', '+', '?'])
}

#[cfg(test)]
mod tests {
    use super::is_expression;

    #[test]
    fn what_java_cannot_compile_is_no_expression() {
        for good in ["x", "a.*", "[a-z]+", "(a|b)\\(", "\\[", "[(]"] {
            assert!(is_expression(good), "{good}");
        }
        for bad in ["", "[", "(a", "a)", "*", "a\\"] {
            assert!(!is_expression(bad), "{bad}");
        }
    }
}
