//! Tables for spreadsheets, as RFC 4180 has them.

/// A heading and rows.
pub fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut text = headings.join(",") + "\n";
    for row in rows {
        let fields: Vec<String> = row.iter().map(|field| quoted(field)).collect();
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}

fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_quotes_or_line_breaks_are_quoted() {
        let row = ["plain", "a,b", "say \"hi\"", "two\nlines", ""].map(str::to_owned);
        assert_eq!(
            table(&["a", "b", "c", "d", "e"], [row.to_vec()]),
            "a,b,c,d,e\nplain,\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",\n"
        );
    }
}
