//! Columns of text for people.

use std::fmt;

/// Rows under a header, each column as wide as its widest cell.
#[derive(Clone, Debug)]
pub struct Table {
    leans_right: Vec<bool>,
    /// The header first.
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table. A column whose name begins with `>` leans to the right, as numbers do.
    pub fn new<S: AsRef<str>>(columns: &[S]) -> Table {
        let names = columns.iter().map(AsRef::as_ref);
        Table {
            leans_right: names.clone().map(|name| name.starts_with('>')).collect(),
            rows: vec![
                names
                    .map(|name| name.trim_start_matches('>').into())
                    .collect(),
            ],
        }
    }

    /// Adds a row; cells beyond the columns are not shown.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.leans_right.iter().enumerate();
        let columns: Vec<_> = columns.map(|(at, right)| (self.width(at), right)).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, (width, leans_right)) in row.iter().zip(&columns) {
                line += &match leans_right {
                    false => format!("  {cell:<width$}"),
                    true => format!("  {cell:>width$}"),
                };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_numbers_lean_right() {
        let mut table = Table::new(&["task", ">bound"]);
        table.row(vec!["höhe".into(), "2ms".into()]);
        table.row(vec!["elevator".into(), "12.437ms".into()]);
        let expected = "  task         bound\n  höhe           2ms\n  elevator  12.437ms\n";
        assert_eq!(table.to_string(), expected);
    }
}
