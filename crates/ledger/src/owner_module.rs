//! Which module an allocation belongs to.
//!
//! Parameters, with their gradients and state, belong to their module wherever they were made. Everything else belongs
//! to the module that was running.

use std::collections::{HashMap, HashSet};

use ghostgpu_recording::{Allocation, Category, ModuleId, Names};

/// At most this many parts of a name are examined, from its end.
const MOST_PARTS: usize = 64;

/// Modules by name and number.
#[derive(Clone, Debug)]
pub struct OwnerModules<'a> {
    names: &'a Names,
    by_path: HashMap<&'a str, ModuleId>,
    /// For each name of a parameter, the path of its module.
    by_name: Vec<&'a str>,
    /// The path of the model itself, if there is only one.
    only_model: &'a str,
    patterns: Vec<String>,
}

impl<'a> OwnerModules<'a> {
    pub fn of(names: &'a Names) -> Self {
        let mut by_path = HashMap::new();
        for (at, module) in names.modules.iter().enumerate().skip(1) {
            by_path
                .entry(module.path.as_str())
                .or_insert(ModuleId(at as u32));
        }
        let known = KnownNames {
            paths: &by_path,
            texts: names.texts.iter().map(String::as_str).collect(),
        };
        let texts = names.texts.iter();
        let by_name = texts.map(|name| known.module_in(name)).collect();
        let mut models = names.modules.iter().filter(|one| is_model(&one.path));
        let only_model = match (models.next(), models.next()) {
            (Some(only), None) => only.path.as_str(),
            _ => "",
        };
        Self {
            names,
            by_path,
            by_name,
            only_model,
            patterns: patterns(names),
        }
    }

    /// The path of the module that an allocation belongs to; empty for none.
    pub fn path_of(&self, allocation: &Allocation) -> &'a str {
        let belongs_to_parameter = matches!(
            allocation.category,
            Category::Parameter | Category::Buffer | Category::Gradient | Category::OptimizerState
        );
        if belongs_to_parameter && allocation.name.0 != 0 {
            let in_name = self.by_name.get(allocation.name.0 as usize);
            match in_name.copied().unwrap_or_default() {
                "" => {}
                path => return path,
            }
            return match self.only_model {
                "" => self.path(allocation.module),
                model => model,
            };
        }
        self.path(allocation.module)
    }

    /// The path of a module; empty for none.
    pub fn path(&self, module: ModuleId) -> &'a str {
        let found = self.names.modules.get(module.0 as usize);
        found.map_or("", |module| &module.path)
    }

    /// The class of the module at a path; empty if it is not known.
    pub fn class(&self, path: &str) -> &'a str {
        let id = self.by_path.get(path);
        let module = id.and_then(|id| self.names.modules.get(id.0 as usize));
        module.map_or("", |module| &module.class)
    }

    /// A module's path, with `*` for numbers if several modules differ only in them.
    pub fn pattern(&self, module: ModuleId) -> &str {
        self.patterns
            .get(module.0 as usize)
            .map_or("", String::as_str)
    }
}

/// The path of the model itself is the name of its class in brackets.
fn is_model(path: &str) -> bool {
    path.starts_with('[') && path.ends_with(']')
}

/// The modules and models that may be a prefix of a name.
struct KnownNames<'a, 'p> {
    paths: &'p HashMap<&'a str, ModuleId>,
    texts: HashSet<&'a str>,
}

impl<'a> KnownNames<'a, '_> {
    /// The longest prefix of a name that is the path of a module or model. Without one, the part before the parameter's
    /// own name, which comes last or, in the name of a state, second to last.
    fn module_in(&self, name: &'a str) -> &'a str {
        let dots = name.rmatch_indices('.').take(MOST_PARTS);
        let mut beginnings = dots.map(|(at, _)| &name[..at]);
        let known = beginnings.find_map(|path| self.path_of(path));
        known.unwrap_or_else(|| {
            let parent = |name: &'a str| name.rsplit_once('.').map_or("", |(path, _)| path);
            match parent(name) {
                parameter if self.texts.contains(parameter) => parent(parameter),
                module => module,
            }
        })
    }

    fn path_of(&self, path: &str) -> Option<&'a str> {
        let model = || self.paths.get_key_value(format!("[{path}]").as_str());
        let found = self.paths.get_key_value(path).or_else(model);
        found.map(|(path, _)| *path)
    }
}

/// For each module its path, with `*` for numbers if that stands for several modules.
fn patterns(names: &Names) -> Vec<String> {
    let all: Vec<String> = names.modules.iter().map(|one| starred(&one.path)).collect();
    let mut counts: HashMap<&str, u32> = HashMap::new();
    for pattern in &all {
        *counts.entry(pattern).or_default() += 1;
    }
    let is_shared: Vec<bool> = all.iter().map(|one| counts[one.as_str()] > 1).collect();
    let mut all = all;
    for ((pattern, is_shared), module) in all.iter_mut().zip(is_shared).zip(&names.modules) {
        if !is_shared {
            pattern.clone_from(&module.path);
        }
    }
    all
}

fn starred(path: &str) -> String {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|one| one.is_ascii_digit());
    // A model that is a plain list of layers keeps their numbers, because nothing else distinguishes them.
    let parts = path.split('.').enumerate().map(|(at, part)| match at {
        1.. if is_number(part) => "*",
        _ => part,
    });
    parts.collect::<Vec<&str>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_recording::Module;

    fn modules(paths: &[&str]) -> Names {
        let mut names = Names::default();
        names.modules.extend(paths.iter().map(|path| Module {
            path: (*path).to_owned(),
            class: String::new(),
            output_bytes: 0,
        }));
        names
    }

    #[test]
    fn a_parameters_module_is_the_longest_known_prefix_of_its_name() {
        let mut names = modules(&["[Net]", "layer", "layer.0", "[Linear]"]);
        let expected = [
            ("", ""),
            ("layer.0.weight", "layer.0"),
            ("layer.0.weight.exp_avg", "layer.0"),
            ("layer.1.weight", "layer"),
            ("head.weight", "head"),
            ("head.weight.exp_avg", "head"),
            ("Linear.weight.exp_avg", "[Linear]"),
            ("scale", ""),
        ];
        names.texts = expected.map(|(name, _)| name.to_owned()).to_vec();
        let found = OwnerModules::of(&names).by_name;
        assert_eq!(found, expected.map(|(_, path)| path));
    }

    #[test]
    fn numbers_become_stars_if_several_modules_differ_only_in_them() {
        let names = modules(&["layer.0.fc", "layer.1.fc", "block.7", "head", "0", "1"]);
        let owners = OwnerModules::of(&names);
        let found: Vec<&str> = (0..7).map(|at| owners.pattern(ModuleId(at))).collect();
        assert_eq!(
            found,
            ["", "layer.*.fc", "layer.*.fc", "block.7", "head", "0", "1"]
        );
    }
}
