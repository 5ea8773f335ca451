//! Tricks that are applied together.

use ghostgpu_rehearse::Change;
use ghostgpu_tricks::{Catalogue, Numerics, Request, Requests};

/// Tricks with their amounts, in the order of the catalogue. No two of them conflict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Combination(Vec<Request>);

impl Combination {
    /// The job as it is.
    pub fn none() -> Self {
        Self::default()
    }

    pub fn of(request: Request) -> Option<Self> {
        Self::none().with(request)
    }

    /// Adds a trick, or changes the amount of one that is present; `None` if the catalogue has a conflict.
    pub fn with(&self, request: Request) -> Option<Self> {
        let mut requests = self.0.clone();
        requests.retain(|present| present.name != request.name);
        requests.push(request);
        Some(Self(Requests::checked(requests).ok()?.into_vec()))
    }

    /// Adds all tricks of another combination; `None` if the catalogue has a conflict.
    pub fn and(&self, other: &Self) -> Option<Self> {
        let requests = other.0.iter().cloned();
        requests
            .into_iter()
            .try_fold(self.clone(), |all, request| all.with(request))
    }

    pub fn without(&self, name: &str) -> Self {
        let requests = self.0.iter().filter(|request| request.name != name);
        Self(requests.cloned().collect())
    }

    pub fn requests(&self) -> &[Request] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&Request> {
        self.0.iter().find(|request| request.name == name)
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Whether the other combination has every trick of this one, in any amount.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.iter().all(|request| other.has(&request.name))
    }

    /// What it does to the numbers, which is what its worst trick does.
    pub fn numerics(&self) -> Numerics {
        let tricks = self.0.iter();
        let classes = tricks.filter_map(|request| Catalogue::builtin().find(&request.name));
        let worst = classes.map(|trick| trick.numerics).max();
        worst.unwrap_or(Numerics::Identical)
    }

    /// Whether losses and gradients are those of the plain training, up to rounding.
    pub fn keeps_numbers(&self) -> bool {
        self.numerics() <= Numerics::Rounding
    }

    pub fn changes(&self) -> Vec<Change> {
        self.0.iter().cloned().map(Change::Trick).collect()
    }

    /// As the progress display shows it: `--checkpoint 6 --inplace`.
    pub fn in_words(&self) -> String {
        let words = self.0.iter().map(|request| match request.flag_words() {
            Some(words) => words.join(" "),
            None => {
                let options = request.options.iter();
                let options = options.map(|(name, value)| format!("{name}={value}"));
                let options: Vec<String> = options.collect();
                format!("{} ({})", request.name, options.join(", "))
            }
        });
        words.collect::<Vec<String>>().join(" ")
    }
}

/// A trick with some options set.
pub fn request(name: &str, options: &[(&str, String)]) -> Request {
    let mut request = Request::named(name);
    for (option, value) in options {
        request.options.insert((*option).to_owned(), value.clone());
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combination(names: &[&str]) -> Option<Combination> {
        let requests = names.iter().map(|name| Request::named(name));
        requests
            .into_iter()
            .try_fold(Combination::none(), |all, request| all.with(request))
    }

    #[test]
    fn conflicting_tricks_make_no_combination() {
        assert!(combination(&["chunking", "optimizer-in-backward"]).is_none());
        assert!(combination(&["autocast", "bfloat16-weights"]).is_none());
        assert!(combination(&["autocast", "checkpointing"]).is_some());
    }

    #[test]
    fn another_amount_replaces_the_previous_one() {
        let two = combination(&["chunking"]).expect("one");
        let four = two.with(request("chunking", &[("chunks", "4".to_owned())]));
        let four = four.expect("one");
        assert_eq!(four.requests().len(), 1);
        assert_eq!(
            four.get("chunking").and_then(|it| it.value("chunks")),
            Some("4")
        );
        assert!(two.is_within(&four));
    }

    #[test]
    fn the_worst_trick_decides_what_happens_to_the_numbers() {
        for (names, class) in [
            (&[][..], Numerics::Identical),
            (&["checkpointing"], Numerics::Identical),
            (&["checkpointing", "chunking"], Numerics::Rounding),
            (&["checkpointing", "autocast"], Numerics::Precision),
            (&["autocast", "lora"], Numerics::Training),
        ] {
            let all = combination(names).expect("no conflict");
            assert_eq!(all.numerics(), class, "{names:?}");
            assert_eq!(all.keeps_numbers(), class <= Numerics::Rounding);
        }
    }
}
