//! Sentences by name, in the reader's language.
//!
//! Every sentence that a user reads stands in `languages/*.ftl`, one file for each language; the code has
//! their names. Figures, file names and commands are the same in all languages.

use std::sync::LazyLock;

use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue};
use fluent_syntax::ast::Pattern;
use unic_langid::LanguageIdentifier;

use crate::amount::Amount;

/// A language that explanations are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    English,
    /// Simplified Chinese.
    Chinese,
}

impl Language {
    /// The language of a locale such as `zh_CN.UTF-8`; English for all that have no catalogue.
    pub fn of_locale(locale: &str) -> Self {
        let name = locale
            .split(['_', '-', '.', '@'])
            .next()
            .unwrap_or_default();
        match name.eq_ignore_ascii_case("zh") {
            true => Self::Chinese,
            false => Self::English,
        }
    }

    /// The language of the environment, where `variable` looks up `LC_ALL` and its like. The first that is
    /// set decides, as everywhere on Unix.
    pub fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let names = ["LC_ALL", "LC_MESSAGES", "LANG"];
        let set = names.iter().filter_map(|name| variable(name));
        let first = set.into_iter().find(|locale| !locale.is_empty());
        first.map_or(Self::English, |locale| Self::of_locale(&locale))
    }

    fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh",
        }
    }

    /// The text of the catalogue.
    pub fn source(self) -> &'static str {
        match self {
            Self::English => include_str!("../languages/en.ftl"),
            Self::Chinese => include_str!("../languages/zh.ftl"),
        }
    }

    pub fn catalogue(self) -> &'static Catalogue {
        static ENGLISH: LazyLock<Catalogue> =
            LazyLock::new(|| Catalogue::of(Language::English, Language::English.source()));
        static CHINESE: LazyLock<Catalogue> =
            LazyLock::new(|| Catalogue::of(Language::Chinese, Language::Chinese.source()));
        match self {
            Self::English => &ENGLISH,
            Self::Chinese => &CHINESE,
        }
    }
}

/// The sentences of one language.
pub struct Catalogue {
    bundle: FluentBundle<FluentResource>,
}

impl std::fmt::Debug for Catalogue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Catalogue({:?})", self.bundle.locales)
    }
}

impl Catalogue {
    /// A catalogue in Fluent's format. Entries that cannot be read are left out; tests find them.
    pub fn of(language: Language, source: &str) -> Self {
        let locale: LanguageIdentifier = language.tag().parse().unwrap_or_default();
        let mut bundle = FluentBundle::new_concurrent(vec![locale]);
        // Marks around variables are for text that mixes directions; in a terminal they are noise.
        bundle.set_use_isolating(false);
        let resource = match FluentResource::try_new(source.to_owned()) {
            Ok(resource) => resource,
            Err((resource, _)) => resource,
        };
        bundle.add_resource_overriding(resource);
        Self { bundle }
    }

    /// A sentence; its name where there is none.
    pub fn say(&self, id: &str, variables: &[(&str, FluentValue<'static>)]) -> String {
        let message = self.bundle.get_message(id);
        let pattern = message.and_then(|message| message.value());
        match pattern {
            Some(pattern) => self.format(pattern, variables),
            None => id.to_owned(),
        }
    }

    /// What belongs to a sentence under another name: `why`, `remark`.
    pub fn attribute(
        &self,
        id: &str,
        name: &str,
        variables: &[(&str, FluentValue<'static>)],
    ) -> Option<String> {
        let attribute = self.bundle.get_message(id)?.get_attribute(name)?;
        Some(self.format(attribute.value(), variables))
    }

    fn format(
        &self,
        pattern: &Pattern<&str>,
        variables: &[(&str, FluentValue<'static>)],
    ) -> String {
        let mut arguments = FluentArgs::new();
        for (name, value) in variables {
            arguments.set((*name).to_owned(), value.clone());
        }
        let mut errors = Vec::new();
        let text = self
            .bundle
            .format_pattern(pattern, Some(&arguments), &mut errors);
        text.into_owned()
    }
}

/// What may stand in a sentence.
pub trait Variable {
    fn value(&self) -> FluentValue<'static>;
}

macro_rules! shown {
    ($($kind:ty),*) => {
        $(impl Variable for $kind {
            fn value(&self) -> FluentValue<'static> {
                FluentValue::from(self.to_string())
            }
        })*
    };
}
shown!(str, String, Amount);

macro_rules! counted {
    ($($kind:ty),*) => {
        $(impl Variable for $kind {
            fn value(&self) -> FluentValue<'static> {
                FluentValue::from(*self)
            }
        })*
    };
}
counted!(u32, u64, usize);

impl<T: Variable + ?Sized> Variable for &T {
    fn value(&self) -> FluentValue<'static> {
        (**self).value()
    }
}

/// `say!(catalogue, "name", requested = amount)`: a sentence with its variables.
#[macro_export]
macro_rules! say {
    ($catalogue:expr, $id:expr $(, $name:ident = $value:expr)* $(,)?) => {
        $catalogue.say($id, &[$((stringify!($name), $crate::Variable::value(&$value))),*])
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_decides_on_the_language() {
        let of = |set: &[(&str, &str)]| {
            Language::of_environment(|name| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[]), Language::English);
        assert_eq!(of(&[("LANG", "zh_CN.UTF-8")]), Language::Chinese);
        assert_eq!(
            of(&[("LANG", "zh_CN.UTF-8"), ("LC_ALL", "C")]),
            Language::English
        );
        assert_eq!(
            of(&[("LANG", "en_US"), ("LC_MESSAGES", "zh_TW")]),
            Language::Chinese
        );
        assert_eq!(of(&[("LC_ALL", ""), ("LANG", "zh")]), Language::Chinese);
        assert_eq!(of(&[("LANG", "zha_CN")]), Language::English);
    }

    #[test]
    fn a_sentence_has_its_variables_and_plurals() {
        let english = Language::English.catalogue();
        assert_eq!(
            say!(english, "card-still-free", free = Amount::exact(1 << 30)),
            "the card still had 1.00 GiB free"
        );
        assert_eq!(
            say!(english, "count-useless", count = 1u64),
            "1 that does not help"
        );
        assert_eq!(
            say!(english, "count-useless", count = 3u64),
            "3 that do not help"
        );
        assert_eq!(say!(english, "no such sentence"), "no such sentence");
    }
}
