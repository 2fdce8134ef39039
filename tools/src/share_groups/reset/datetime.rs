//! `YYYY-MM-DDThh:mm:ss.sss`, in UTC unless `Z`, `+hh`, `+hhmm` or `+hh:mm` follows.

/// Milliseconds since the epoch; the error is a sentence.
pub(in crate::share_groups) fn parse(text: &str) -> Result<i64, String> {
    let wrong = || format!("'{text}' is not of the form YYYY-MM-DDThh:mm:ss.sss");
    let (date, rest) = text.split_once('T').ok_or_else(wrong)?;
    let mut parts = date.splitn(3, '-');
    let mut number = |digits: usize| parts.next().and_then(|part| digits_of(part, digits));
    let (Some(year), Some(month), Some(day)) = (number(4), number(2), number(2)) else {
        return Err(wrong());
    };
    let at = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(at);
    let time = time_of_day(time).ok_or_else(wrong)?;
    let zone = offset(zone).ok_or_else(wrong)?;
    if !(1..=12).contains(&month) || day < 1 || day > days_of(year, month) {
        return Err(format!("'{text}': there is no such day"));
    }
    let ms = days_since_epoch(year, month, day) * 86_400_000 + time - zone;
    if ms < 0 {
        return Err(format!("'{text}' is before 1970"));
    }
    Ok(ms)
}

fn digits_of(part: &str, digits: usize) -> Option<i64> {
    let right = part.len() == digits && part.bytes().all(|b| b.is_ascii_digit());
    right.then(|| part.parse().ok()).flatten()
}

/// `hh:mm:ss.sss` in milliseconds; the fraction may be left out, or have one to three digits.
fn time_of_day(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "000"));
    let mut parts = clock.split(':');
    let (hours, minutes) = (parts.next()?, parts.next()?);
    let (hours, minutes) = (digits_of(hours, 2)?, digits_of(minutes, 2)?);
    let seconds = digits_of(parts.next()?, 2)?;
    if parts.next().is_some() || hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    if !(1..=3).contains(&fraction.len()) {
        return None;
    }
    let ms = digits_of(fraction, fraction.len())? * [100, 10, 1][fraction.len() - 1];
    Some(((hours * 60 + minutes) * 60 + seconds) * 1000 + ms)
}

/// What a zone is ahead of UTC, in milliseconds.
fn offset(zone: &str) -> Option<i64> {
    let (sign, digits) = match zone {
        "" | "Z" => return Some(0),
        _ => match zone.split_at_checked(1)? {
            ("+", digits) => (1, digits.replacen(':', "", 1)),
            ("-", digits) => (-1, digits.replacen(':', "", 1)),
            _ => return None,
        },
    };
    let (hours, minutes) = match digits.len() {
        2 => (digits_of(&digits, 2)?, 0),
        4 => (digits_of(&digits[..2], 2)?, digits_of(&digits[2..], 2)?),
        _ => return None,
    };
    (hours <= 18 && minutes <= 59).then_some(sign * (hours * 60 + minutes) * 60_000)
}

fn leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    // Days of the years before, counted from year 0 in the Gregorian calendar.
    let before = |year: i64| {
        let last = year - 1;
        365 * year + last.div_euclid(4) - last.div_euclid(100) + last.div_euclid(400)
    };
    let months: i64 = (1..month).map(|month| days_of(year, month)).sum();
    before(year) - before(1970) + months + day - 1
}

/// Milliseconds since the epoch as `YYYY-MM-DDThh:mm:ss.sssZ`.
pub(in crate::share_groups) fn show(ms: i64) -> String {
    let (mut days, time) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let mut year = 1970 + days / 366;
    while days_since_epoch(year + 1, 1, 1) <= days {
        year += 1;
    }
    while days_since_epoch(year, 1, 1) > days {
        year -= 1;
    }
    days -= days_since_epoch(year, 1, 1);
    let mut month = 1;
    while days >= days_of(year, month) {
        days -= days_of(year, month);
        month += 1;
    }
    let (seconds, ms) = (time / 1000, time % 1000);
    format!(
        "{year:04}-{month:02}-{:02}T{:02}:{:02}:{:02}.{ms:03}Z",
        days + 1,
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_in_utc_or_in_its_zone() {
        for (text, ms) in [
            ("1970-01-01T00:00:00.000", 0),
            ("1970-01-01T00:00:00", 0),
            ("2026-01-01T00:00:00.000Z", 1_767_225_600_000),
            ("2026-01-01T02:00:00.5+02:00", 1_767_225_600_500),
            ("2025-12-31T22:30:00.000-0130", 1_767_225_600_000),
            ("2026-01-01T01:00:00.000+01", 1_767_225_600_000),
            ("2024-02-29T12:00:00.000", 1_709_208_000_000),
        ] {
            assert_eq!(parse(text), Ok(ms), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "nonsense",
            "2026-01-01",
            "2026-1-1T00:00:00.000",
            "2026-02-29T00:00:00.000",
            "2026-13-01T00:00:00.000",
            "2026-01-01T24:00:00.000",
            "2026-01-01T00:00",
            "2026-01-01T00:00:00.0000",
            "2026-01-01T00:00:00.000+99:00",
            "2026-01-01T00:00:00.000ä",
            "1969-12-31T23:59:59.999",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_is_shown_as_it_is_read() {
        for ms in [
            0,
            951_782_400_000,
            1_709_208_000_000,
            1_767_225_600_001,
            4_102_444_799_999,
        ] {
            assert_eq!(parse(&show(ms)), Ok(ms), "{}", show(ms));
        }
    }
}
