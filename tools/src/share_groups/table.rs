//! Kafka's tables: columns of a least width, one space between them, nothing behind the last.

/// One column: its title and the least width of it.
pub(super) type Column = (&'static str, usize);

/// The least width of columns with names in them.
pub(super) const NAME: usize = 15;

/// Title line and rows; a column is as wide as its widest cell. The last one is not padded.
pub(super) fn table(columns: &[Column], rows: &[Vec<String>]) -> String {
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let widest = cells.map(|cell| cell.chars().count()).max();
        let (title, least) = columns[at];
        least.max(title.len()).max(widest.unwrap_or(0))
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let title: Vec<String> = columns.iter().map(|(title, _)| (*title).into()).collect();
    let mut out = String::new();
    for row in std::iter::once(&title).chain(rows) {
        for (at, cell) in row.iter().enumerate() {
            out.push_str(cell);
            if at + 1 < row.len() {
                let padding = widths[at] + 1 - cell.chars().count();
                out.extend(std::iter::repeat_n(' ', padding));
            }
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_must_be() {
        let rows = [
            vec!["a".to_owned(), "1".to_owned(), "x".to_owned()],
            vec!["ünlike".to_owned(), "22".to_owned(), String::new()],
        ];
        let expected = "N      PARTITION  L\na      1          x\nünlike 22         \n";
        assert_eq!(
            table(&[("N", 1), ("PARTITION", 10), ("L", 1)], &rows),
            expected
        );
    }
}
