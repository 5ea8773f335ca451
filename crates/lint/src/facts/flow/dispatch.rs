//! Which methods a call runs: those of a class, of the classes that derive from it, and on an object of
//! unknown class those of the file's classes that fit.

use rustc_hash::FxHashMap;

use super::Reader;
use crate::facts::paths::path;
use crate::facts::roles::share_a_word;
use crate::facts::structure::{ClassId, Structure, UnitId};
use crate::facts::value::{Kind, Value};
use crate::python::{Expr, ExprCall, Ranged, Stmt};

/// More methods of one name say nothing about a call.
const FEW: usize = 6;

/// The methods of all classes by their names, without those that only reserve one (`pass`).
pub(super) fn methods<'a>(structure: &Structure<'a>) -> FxHashMap<&'a str, Vec<UnitId>> {
    let mut all: FxHashMap<&'a str, Vec<UnitId>> = FxHashMap::default();
    for class in &structure.classes {
        for (name, unit) in &class.methods {
            if !name.starts_with("__") && !is_empty(structure.units[*unit].body) {
                all.entry(name).or_default().push(*unit);
            }
        }
    }
    all
}

impl<'a> Reader<'_, 'a> {
    /// A method of a class: its own, an inherited one, or the only one of the classes that derive from it.
    pub(super) fn method_of(&self, class: ClassId, name: &str) -> Option<UnitId> {
        let own = self.structure.classes[class].method(name);
        if own.is_some_and(|unit| !is_empty(self.structure.units[unit].body)) {
            return own;
        }
        let mut derived = self
            .structure
            .classes
            .iter()
            .filter(|each| each.ancestors.contains(&class))
            .filter_map(|each| each.method(name))
            .filter(|unit| !is_empty(self.structure.units[*unit].body));
        match (derived.next(), derived.next()) {
            (Some(only), None) => Some(only),
            _ => own,
        }
    }

    /// What a call on an object of unknown class returns, if it may run methods of the file.
    pub(super) fn dispatch(
        &mut self,
        call: &'a ExprCall,
        given: &[(Option<&'a str>, Value)],
    ) -> Option<Value> {
        let units = self.candidates(call, given);
        if let [only] = *units {
            let function = Value::plain(Kind::Function(only));
            self.flow.values.insert(call.func.range(), function);
        }
        let mut result = None;
        for unit in &units {
            let value = self.apply(*unit, given, true);
            result = Some(match result {
                Some(before) => self.join(before, value),
                None => value,
            });
        }
        if !units.is_empty() {
            self.flow.candidates.insert(call.range(), units);
        }
        result
    }

    /// The class of the file whose objects a container holds, if it is made with one.
    fn class_of_entries(&self, container: &str) -> Option<ClassId> {
        let mut classes = (self.structure.assigns.iter())
            .filter(|assign| path(self.text, assign.target) == Some(container))
            .filter_map(|assign| {
                let maker = match assign.value {
                    Expr::DictComp(made) => called(&made.value)?,
                    Expr::ListComp(made) => called(&made.elt)?,
                    Expr::Dict(made) => called(&made.items.first()?.value)?,
                    Expr::List(made) => called(made.elts.first()?)?,
                    // `defaultdict(Meter)`
                    Expr::Call(made) => {
                        let name = self.imports.qualified(&made.func)?;
                        let first = made.arguments.args.first()?;
                        match first {
                            _ if name != "collections.defaultdict" => return None,
                            Expr::Lambda(lambda) => called(&lambda.body)?,
                            class => class,
                        }
                    }
                    _ => return None,
                };
                let Expr::Name(name) = maker else {
                    return None;
                };
                (self.structure.classes)
                    .iter()
                    .position(|class| class.node.name.as_str() == name.id.as_str())
            });
        let first = classes.next()?;
        classes.all(|class| class == first).then_some(first)
    }

    /// The methods of the file that a call on an object of unknown class may run: those of this name, if
    /// that is not one that objects of other libraries have too, or if the object is named like the class.
    fn candidates(&self, call: &'a ExprCall, given: &[(Option<&'a str>, Value)]) -> Vec<UnitId> {
        let Expr::Attribute(function) = &*call.func else {
            return Vec::new();
        };
        // `meters[name].update(...)`: an entry is named like its container.
        let named = match &*function.value {
            Expr::Subscript(entry) => &entry.value,
            other => other,
        };
        let Some(object) = path(self.text, named) else {
            return Vec::new();
        };
        let is_open = self.flow.value(&*function.value).kind == Kind::Unknown;
        let Some(all) = self.methods.get(function.attr.as_str()).filter(|_| is_open) else {
            return Vec::new();
        };
        let fits = |unit: &&UnitId| {
            self.structure.units[**unit].node.is_some_and(|node| {
                let parameters = &node.parameters;
                parameters.vararg.is_some()
                    || parameters.kwarg.is_some()
                    || given.len()
                        < parameters.len() + usize::from(!self.structure.takes_object(**unit))
            })
        };
        // `meters = {name: Meter() for name in names}` holds objects of one class.
        if !std::ptr::eq(named, &*function.value)
            && let Some(class) = self.class_of_entries(object)
        {
            return self
                .method_of(class, function.attr.as_str())
                .into_iter()
                .collect();
        }
        let named: Vec<UnitId> = all
            .iter()
            .filter(fits)
            .filter(|unit| {
                self.structure.units[**unit].class.is_some_and(|class| {
                    share_a_word(object, self.structure.classes[class].node.name.as_str())
                })
            })
            .copied()
            .collect();
        if named.len() == 1 {
            return named;
        }
        let fitting: Vec<UnitId> = all.iter().filter(fits).copied().collect();
        if is_common(function.attr.as_str()) || fitting.len() > FEW {
            return Vec::new();
        }
        fitting
    }
}

/// What a call calls.
fn called(expression: &Expr) -> Option<&Expr> {
    match expression {
        Expr::Call(call) => Some(&call.func),
        _ => None,
    }
}

/// Whether a body does nothing: `pass`, `...`, a docstring, `raise NotImplementedError`.
fn is_empty(body: &[Stmt]) -> bool {
    body.iter().all(|statement| match statement {
        Stmt::Pass(_) | Stmt::Raise(_) => true,
        Stmt::Expr(node) => {
            matches!(
                &*node.value,
                Expr::StringLiteral(_) | Expr::EllipsisLiteral(_)
            )
        }
        Stmt::Return(node) => node
            .value
            .as_deref()
            .is_none_or(|value| matches!(value, Expr::NoneLiteral(_))),
        _ => false,
    })
}

/// Methods that objects of Python's and PyTorch's own classes have, and those of many libraries.
fn is_common(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "add",
        "append",
        "apply",
        "backward",
        "call",
        "clear",
        "close",
        "compute",
        "copy",
        "count",
        "cpu",
        "cuda",
        "decode",
        "detach",
        "encode",
        "error",
        "eval",
        "extend",
        "fit",
        "format",
        "forward",
        "generate",
        "get",
        "index",
        "info",
        "insert",
        "item",
        "items",
        "join",
        "keys",
        "load",
        "load_state_dict",
        "log",
        "max",
        "mean",
        "min",
        "next",
        "open",
        "parameters",
        "plot",
        "pop",
        "predict",
        "put",
        "read",
        "remove",
        "render",
        "reset",
        "run",
        "sample",
        "save",
        "score",
        "send",
        "set",
        "setup",
        "show",
        "size",
        "sort",
        "split",
        "start",
        "state_dict",
        "step",
        "stop",
        "sum",
        "to",
        "tokenize",
        "train",
        "transform",
        "update",
        "values",
        "view",
        "write",
        "zero_grad",
    ];
    NAMES.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_methods_are_found_in_the_sorted_list() {
        assert!(is_common("add") && is_common("update") && is_common("zero_grad"));
        assert!(!is_common("remember"));
    }
}
