//! What imported names mean: `F.cross_entropy` is `torch.nn.functional.cross_entropy`.

use rustc_hash::FxHashMap;

use super::structure::Structure;
use super::usage::names_bound_anywhere;
use crate::python::{Expr, Stmt};

/// All imports of a file.
#[derive(Debug, Default)]
pub struct Imports<'a> {
    names: FxHashMap<&'a str, String>,
    /// Star imports (`from torch.nn import *`).
    stars: Vec<&'a str>,
}

impl<'a> Imports<'a> {
    pub fn of(structure: &Structure<'a>) -> Self {
        let mut imports = Self::default();
        for (statement, _) in &structure.statements {
            match statement {
                Stmt::Import(node) => {
                    for alias in &node.names {
                        let module = alias.name.as_str();
                        match &alias.asname {
                            Some(name) => imports.names.insert(name.as_str(), module.to_owned()),
                            // `import torch.nn` binds `torch`.
                            None => {
                                let root = module.split('.').next().unwrap_or(module);
                                imports.names.insert(root, root.to_owned())
                            }
                        };
                    }
                }
                Stmt::ImportFrom(node) => {
                    let module = node.module.as_ref().map_or("", |module| module.as_str());
                    let dots = ".".repeat(node.level as usize);
                    for alias in &node.names {
                        let name = alias.name.as_str();
                        if name == "*" {
                            imports.stars.push(module);
                            continue;
                        }
                        let bound = alias.asname.as_ref().map_or(name, |other| other.as_str());
                        let joined = if module.is_empty() {
                            format!("{dots}{name}")
                        } else {
                            format!("{dots}{module}.{name}")
                        };
                        imports.names.insert(bound, joined);
                    }
                }
                _ => {}
            }
        }
        imports.add_what_stars_bring();
        imports.add_usual_names(structure);
        imports.forget_rebound(structure);
        imports
    }

    /// Names that are used without being imported come from a star import: `torch` is PyTorch,
    /// wherever it comes from, and fastai exports the usual short names of its parts.
    fn add_what_stars_bring(&mut self) {
        const OF_FASTAI: &[(&str, &str)] = &[("nn", "torch.nn"), ("F", "torch.nn.functional")];
        let is_fastai = |module: &&str| module.split('.').next() == Some("fastai");
        if !self.stars.is_empty() {
            self.names
                .entry("torch")
                .or_insert_with(|| "torch".to_owned());
        }
        if self.stars.iter().any(is_fastai) {
            for (name, module) in OF_FASTAI {
                self.names
                    .entry(name)
                    .or_insert_with(|| (*module).to_owned());
            }
        }
    }

    /// A snippet or a cell of a notebook uses modules that it does not import, under their usual names.
    fn add_usual_names(&mut self, structure: &Structure<'a>) {
        const USUAL: &[(&str, &str)] = &[
            ("F", "torch.nn.functional"),
            ("nn", "torch.nn"),
            ("np", "numpy"),
            ("pd", "pandas"),
            ("plt", "matplotlib.pyplot"),
            ("torch", "torch"),
        ];
        let calls_torch = || {
            let mut calls = structure.calls.iter();
            calls.any(|call| super::paths::root(&call.node.func) == Some("torch"))
        };
        if self.is_for_another_framework()
            || !(self.names.is_empty() || self.uses("torch") || calls_torch())
        {
            return;
        }
        let bound = names_bound_anywhere(structure);
        for (name, module) in USUAL {
            if !bound.contains(name) {
                self.names
                    .entry(name)
                    .or_insert_with(|| (*module).to_owned());
            }
        }
    }

    /// `import model` and later `model = model.Net()`: from then on the name means something else.
    /// (`x = None` where an import failed leaves it what it is.)
    fn forget_rebound(&mut self, structure: &Structure<'a>) {
        for assign in &structure.assigns {
            if let Expr::Name(name) = assign.target
                && structure.unit_of(assign.place.block) == 0
                && let Expr::Call(call) = assign.value
                && super::paths::root(&call.func) == Some(name.id.as_str())
            {
                self.names.remove(name.id.as_str());
            }
        }
    }

    /// Whether an expression names something that is imported, or attributes of it.
    pub fn knows(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Name(name) => {
                self.names.contains_key(name.id.as_str()) || self.star_with(&name.id).is_some()
            }
            Expr::Attribute(attribute) => self.knows(&attribute.value),
            _ => false,
        }
    }

    /// Resolves classes of `torch.nn` and `torch.optim` through star imports.
    fn star_with(&self, class: &str) -> Option<&'a str> {
        let mut stars = self.stars.iter();
        stars
            .find(|module| super::torch_names::has_class(module, class))
            .copied()
    }

    /// The full name of an imported name or of its attributes.
    pub fn qualified(&self, expression: &Expr) -> Option<String> {
        match expression {
            Expr::Name(name) => self.names.get(name.id.as_str()).cloned().or_else(|| {
                let module = self.star_with(&name.id)?;
                Some(format!("{module}.{}", name.id))
            }),
            Expr::Attribute(attribute) => {
                let mut base = self.qualified(&attribute.value)?;
                base.push('.');
                base.push_str(attribute.attr.as_str());
                Some(base)
            }
            _ => None,
        }
    }

    /// Whether the file uses another framework with similar models and tensors.
    pub fn is_for_another_framework(&self) -> bool {
        const OTHERS: &[&str] = &[
            "chainer",
            "flax",
            "jax",
            "jittor",
            "megengine",
            "mindspore",
            "mlx",
            "mxnet",
            "oneflow",
            "paddle",
            "tensorflow",
            "tinygrad",
        ];
        !self.uses("torch") && OTHERS.iter().any(|package| self.uses(package))
    }

    /// Whether the file imports this package under its own name (`import torch`).
    pub fn has_plain(&self, package: &str) -> bool {
        self.names.get(package).is_some_and(|name| name == package)
    }

    /// The full names of everything imported by name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.values().map(String::as_str)
    }

    /// Whether the file imports this package or anything from it.
    pub fn uses(&self, package: &str) -> bool {
        let of = |name: &str| super::paths::is_part_of(name, package);
        self.names.values().any(|name| of(name)) || self.stars.iter().any(|name| of(name))
    }
}
