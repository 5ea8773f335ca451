//! Where everything is: functions, classes, loops, conditions, calls and assignments of one file, each
//! with its enclosing syntax. Purely syntactic.

use rustc_hash::FxHashMap;

use crate::python::{
    Expr, ExprCall, Operator, Stmt, StmtClassDef, StmtFor, StmtFunctionDef, StmtTry, StmtWith, ast,
    span,
};

/// Names a function body, or the body of the file (number 0).
pub type UnitId = usize;
/// Names a piece of enclosing syntax.
pub type BlockId = usize;
/// Names a class.
pub type ClassId = usize;

/// A body of statements with its own local names: the file, a function or a method.
#[derive(Debug)]
pub struct Unit<'a> {
    /// Empty for the file itself.
    pub name: &'a str,
    pub node: Option<&'a StmtFunctionDef>,
    /// The class it is a method of.
    pub class: Option<ClassId>,
    /// The enclosing unit.
    pub parent: Option<UnitId>,
    pub block: BlockId,
    pub body: &'a [Stmt],
}

#[derive(Debug)]
pub struct Class<'a> {
    pub node: &'a StmtClassDef,
    /// The methods by name, in source order.
    pub methods: Vec<(&'a str, UnitId)>,
    /// The classes of this file that it derives from, the nearest first.
    pub ancestors: Vec<ClassId>,
    /// The methods it has from them.
    pub inherited: Vec<(&'a str, UnitId)>,
}

impl Class<'_> {
    pub fn method(&self, name: &str) -> Option<UnitId> {
        self.methods
            .iter()
            .rev()
            .chain(&self.inherited)
            .find(|(other, _)| *other == name)
            .map(|(_, unit)| *unit)
    }
}

/// A piece of syntax that encloses statements.
#[derive(Debug)]
pub struct Block<'a> {
    pub parent: Option<BlockId>,
    pub unit: UnitId,
    pub kind: BlockKind<'a>,
}

#[derive(Debug, Clone, Copy)]
pub enum BlockKind<'a> {
    /// The body of a unit.
    Unit,
    Class(&'a StmtClassDef),
    For(&'a StmtFor),
    While(&'a ast::StmtWhile),
    /// A branch of an `if`: taken when `test` is `holds`. An `else` has its last test with
    /// `holds` false.
    If {
        node: &'a ast::StmtIf,
        test: &'a Expr,
        holds: bool,
    },
    With(&'a StmtWith),
    Try(&'a StmtTry),
    Handler(&'a ast::ExceptHandlerExceptHandler),
    Finally(&'a StmtTry),
    /// The `else` of a loop or of a `try`.
    Else,
    /// A comprehension or a generator expression; its element runs once per item.
    Comprehension(&'a Expr),
    /// A lambda: runs when it is called, not where it is written.
    Lambda(&'a ast::ExprLambda),
    MatchCase,
}

impl BlockKind<'_> {
    pub fn is_loop(&self) -> bool {
        self.loop_span().is_some()
    }

    /// The bytes of a loop, including its header.
    pub fn loop_span(&self) -> Option<std::ops::Range<usize>> {
        match self {
            Self::For(node) => Some(span(*node)),
            Self::While(node) => Some(span(*node)),
            _ => None,
        }
    }

    /// Whether the block may not run at all, or more than once.
    pub fn is_conditional(&self) -> bool {
        !matches!(self, Self::Unit | Self::With(_) | Self::Class(_))
    }
}

/// The place of a statement or call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub block: BlockId,
    /// The index among all statements and calls, in source order.
    pub order: usize,
}

#[derive(Debug)]
pub struct Call<'a> {
    pub node: &'a ExprCall,
    pub place: Place,
    /// The innermost statement it is part of.
    pub statement: &'a Stmt,
}

/// An assignment: `target = value`, `target += value`, annotated or with `:=`; not the targets of `with`
/// and `for`.
#[derive(Debug)]
pub struct Assign<'a> {
    pub target: &'a Expr,
    pub value: &'a Expr,
    /// The operator of an augmented assignment.
    pub operator: Option<Operator>,
    pub statement: &'a Stmt,
    pub place: Place,
}

/// The structure of a file, in source order.
#[derive(Debug, Default)]
pub struct Structure<'a> {
    pub units: Vec<Unit<'a>>,
    pub classes: Vec<Class<'a>>,
    pub blocks: Vec<Block<'a>>,
    pub calls: Vec<Call<'a>>,
    pub assigns: Vec<Assign<'a>>,
    /// Every statement with its place.
    pub statements: Vec<(&'a Stmt, Place)>,
    /// The units and classes by the byte their definitions begin at.
    pub(super) units_by_start: FxHashMap<usize, UnitId>,
    pub(super) classes_by_start: FxHashMap<usize, ClassId>,
}

impl<'a> Structure<'a> {
    /// The enclosing blocks, from the innermost outwards, up to the unit's own.
    pub fn enclosing(&self, block: BlockId) -> impl Iterator<Item = (BlockId, BlockKind<'a>)> {
        let unit = self.blocks[block].unit;
        let mut next = Some(block);
        std::iter::from_fn(move || {
            let current = next?;
            let found = &self.blocks[current];
            if found.unit != unit {
                return None;
            }
            next = found.parent;
            Some((current, found.kind))
        })
    }

    /// The innermost `for` or `while` around a block, within its unit.
    pub fn loop_around(&self, block: BlockId) -> Option<BlockId> {
        self.enclosing(block)
            .find(|(_, kind)| kind.is_loop())
            .map(|(id, _)| id)
    }

    /// Whether `inner` is `outer` or inside it.
    pub fn is_inside(&self, inner: BlockId, outer: BlockId) -> bool {
        let mut next = Some(inner);
        while let Some(block) = next {
            if block == outer {
                return true;
            }
            next = self.blocks[block].parent;
        }
        false
    }

    /// The conditions under which a block runs, from the innermost outwards, up to (not
    /// including) `until`.
    pub fn conditions(&self, block: BlockId, until: BlockId) -> Vec<(&'a Expr, bool)> {
        self.enclosing(block)
            .take_while(|(id, _)| *id != until)
            .filter_map(|(_, kind)| match kind {
                BlockKind::If { test, holds, .. } => Some((test, holds)),
                _ => None,
            })
            .collect()
    }

    /// Whether two classes are one, or one derives from the other: they share their attributes.
    pub fn are_related(&self, one: ClassId, other: ClassId) -> bool {
        one == other
            || self.classes[one].ancestors.contains(&other)
            || self.classes[other].ancestors.contains(&one)
    }

    /// Finds the ancestors of every class, and what it inherits from them.
    pub(super) fn link_classes(&mut self) {
        for id in 0..self.classes.len() {
            let mut ancestors: Vec<ClassId> = Vec::new();
            let mut open = vec![id];
            while let Some(next) = open.pop() {
                for base in self.classes[next].node.bases() {
                    let found = match base {
                        Expr::Name(name) => self
                            .classes
                            .iter()
                            .position(|each| each.node.name.as_str() == name.id.as_str()),
                        _ => None,
                    };
                    if let Some(found) = found.filter(|it| *it != id && !ancestors.contains(it)) {
                        ancestors.push(found);
                        open.push(found);
                    }
                }
            }
            let inherited = ancestors
                .iter()
                .flat_map(|each| self.classes[*each].methods.iter().rev().copied())
                .collect();
            self.classes[id].ancestors = ancestors;
            self.classes[id].inherited = inherited;
        }
    }

    /// The unit of a function definition.
    pub fn unit_of_definition(&self, node: &StmtFunctionDef) -> Option<UnitId> {
        self.units_by_start.get(&span(node).start).copied()
    }

    /// The id of a class definition.
    pub fn class_of_definition(&self, node: &StmtClassDef) -> Option<ClassId> {
        self.classes_by_start.get(&span(node).start).copied()
    }

    /// Whether the first parameter of a unit is the object (or the class) it is a method of.
    pub fn takes_object(&self, unit: UnitId) -> bool {
        let unit = &self.units[unit];
        unit.class.is_some()
            && !unit
                .node
                .is_some_and(|node| is_decorated(node, &["staticmethod"]))
    }

    pub fn unit_of(&self, block: BlockId) -> UnitId {
        self.blocks[block].unit
    }
}

/// Whether a function has a decorator of one of these plain names.
pub fn is_decorated(node: &StmtFunctionDef, names: &[&str]) -> bool {
    node.decorator_list.iter().any(|decorator| {
        matches!(&decorator.expression, Expr::Name(name) if names.contains(&name.id.as_str()))
    })
}
