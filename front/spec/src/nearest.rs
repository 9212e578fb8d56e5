//! The name that was probably meant: nearest by edit distance.

/// Longest word that is compared; a longer one is no slip of a key.
const LONGEST: usize = 64;

/// Most candidates that are compared, so that a file full of dangling names stays linear.
const MOST_CANDIDATES: usize = 4_096;

/// The candidate with the fewest edits from `word`, if it is near enough to be a slip: at most a
/// third of its letters, and at least one edit. O(candidates · length²), both bounded.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let letters: Vec<char> = word
        .chars()
        .flat_map(char::to_lowercase)
        .take(LONGEST + 1)
        .collect();
    if letters.is_empty() || letters.len() > LONGEST {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates.into_iter().take(MOST_CANDIDATES) {
        let limit = (letters.len().max(candidate.len()) / 3).max(1);
        if letters.len().abs_diff(candidate.chars().count()) > limit {
            continue;
        }
        let distance = distance(&letters, candidate);
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Insertions, deletions, substitutions and swaps of neighbours between the two (the restricted
/// Damerau-Levenshtein distance), without regard to case.
fn distance(from: &[char], to: &str) -> usize {
    let to: Vec<char> = to.chars().flat_map(char::to_lowercase).collect();
    let mut before = vec![0; to.len() + 1];
    let mut above: Vec<usize> = (0..=to.len()).collect();
    let mut row = above.clone();
    for i in 1..=from.len() {
        row[0] = i;
        for j in 1..=to.len() {
            let changed = usize::from(from[i - 1] != to[j - 1]);
            row[j] = (above[j - 1] + changed)
                .min(above[j] + 1)
                .min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        std::mem::swap(&mut before, &mut above);
        std::mem::swap(&mut above, &mut row);
    }
    above[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 5] = ["period", "priority", "deadline", "wcet", "on"];

    #[test]
    fn slips_find_their_key() {
        for (slip, key) in [
            ("perod", "period"),
            ("preiod", "period"),
            ("Period", "period"),
            ("prioritty", "priority"),
            ("wect", "wcet"),
            ("deadlines", "deadline"),
            ("no", "on"),
        ] {
            assert_eq!(nearest(slip, KEYS), Some(key), "{slip}");
        }
    }

    #[test]
    fn another_word_is_no_slip() {
        for word in ["", "colour", "scheduler", "x", &"period".repeat(20)] {
            assert_eq!(nearest(word, KEYS), None, "{word}");
        }
    }

    #[test]
    fn a_swap_of_neighbours_is_one_edit() {
        let letters: Vec<char> = "ab".chars().collect();
        assert_eq!(distance(&letters, "ba"), 1);
        assert_eq!(distance(&letters, ""), 2);
        assert_eq!(distance(&[], "abc"), 3);
    }
}
