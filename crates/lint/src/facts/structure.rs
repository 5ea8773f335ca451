//! Where everything stands: functions, classes, loops, conditions, calls and assignments of one
//! file, each with the syntax that encloses it. Purely syntactic.

use rustc_hash::FxHashMap;

use crate::python::ast::visitor::{self, Visitor};
use crate::python::{
    ExceptHandler, Expr, ExprCall, Operator, Stmt, StmtClassDef, StmtFor, StmtFunctionDef, StmtTry,
    StmtWith, ast, deep, span,
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
    /// The unit it is written in.
    pub parent: Option<UnitId>,
    pub block: BlockId,
    pub body: &'a [Stmt],
}

#[derive(Debug)]
pub struct Class<'a> {
    pub node: &'a StmtClassDef,
    /// The methods by name, in the order they are written.
    pub methods: Vec<(&'a str, UnitId)>,
}

impl Class<'_> {
    pub fn method(&self, name: &str) -> Option<UnitId> {
        self.methods
            .iter()
            .rev()
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
    /// A lambda: runs when it is called, not where it stands.
    Lambda(&'a ast::ExprLambda),
    MatchCase,
}

impl BlockKind<'_> {
    pub fn is_loop(&self) -> bool {
        self.loop_span().is_some()
    }

    /// The bytes of a loop, with its head.
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

/// Where a statement or a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub block: BlockId,
    /// Counts statements and calls through the file in the order they are written.
    pub order: usize,
}

#[derive(Debug)]
pub struct Call<'a> {
    pub node: &'a ExprCall,
    pub place: Place,
    /// The innermost statement it is part of.
    pub statement: &'a Stmt,
}

/// `target = value`, `target += value`, `with value as target`, `for target in value` are not
/// all alike: only the first two (and annotated and `:=` ones) are here.
#[derive(Debug)]
pub struct Assign<'a> {
    pub target: &'a Expr,
    pub value: &'a Expr,
    /// The operator of an augmented assignment.
    pub operator: Option<Operator>,
    pub statement: &'a Stmt,
    pub place: Place,
}

/// Everything of a file, in the order it is written.
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
    units_by_start: FxHashMap<usize, UnitId>,
    classes_by_start: FxHashMap<usize, ClassId>,
}

impl<'a> Structure<'a> {
    pub fn of(body: &'a [Stmt]) -> Self {
        let mut structure = Self::default();
        structure.blocks.push(Block {
            parent: None,
            unit: 0,
            kind: BlockKind::Unit,
        });
        structure.units.push(Unit {
            name: "",
            node: None,
            class: None,
            parent: None,
            block: 0,
            body,
        });
        let mut walk = Walk {
            structure,
            unit: 0,
            class: None,
            block: 0,
            statement: None,
            order: 0,
        };
        for statement in body {
            walk.visit_stmt(statement);
        }
        walk.structure
    }

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

    /// Whether `inner` is `outer` or stands inside it.
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
                BlockKind::If { test, holds } => Some((test, holds)),
                _ => None,
            })
            .collect()
    }

    /// The unit of a function definition.
    pub fn unit_of_definition(&self, node: &StmtFunctionDef) -> Option<UnitId> {
        self.units_by_start.get(&span(node).start).copied()
    }

    /// The number of a class definition.
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

struct Walk<'a> {
    structure: Structure<'a>,
    unit: UnitId,
    /// Set while the statements directly in a class body are walked.
    class: Option<ClassId>,
    block: BlockId,
    statement: Option<&'a Stmt>,
    order: usize,
}

impl<'a> Walk<'a> {
    fn place(&mut self) -> Place {
        self.order += 1;
        Place {
            block: self.block,
            order: self.order,
        }
    }

    fn inside(&mut self, kind: BlockKind<'a>, walk: impl FnOnce(&mut Self)) {
        let outer = self.block;
        self.structure.blocks.push(Block {
            parent: Some(outer),
            unit: self.unit,
            kind,
        });
        self.block = self.structure.blocks.len() - 1;
        walk(self);
        self.block = outer;
    }

    fn body(&mut self, body: &'a [Stmt]) {
        for statement in body {
            self.visit_stmt(statement);
        }
    }

    fn function(&mut self, node: &'a StmtFunctionDef) {
        for decorator in &node.decorator_list {
            self.visit_expr(&decorator.expression);
        }
        for default in node
            .parameters
            .iter()
            .filter_map(|parameter| parameter.default())
        {
            self.visit_expr(default);
        }
        let id = self.structure.units.len();
        let class = self.class.take();
        if let Some(class) = class {
            self.structure.classes[class]
                .methods
                .push((node.name.as_str(), id));
        }
        let (outer_unit, outer_block) = (self.unit, self.block);
        self.structure.blocks.push(Block {
            parent: Some(outer_block),
            unit: id,
            kind: BlockKind::Unit,
        });
        self.block = self.structure.blocks.len() - 1;
        self.structure.units.push(Unit {
            name: node.name.as_str(),
            node: Some(node),
            class,
            parent: Some(outer_unit),
            block: self.block,
            body: &node.body,
        });
        self.structure.units_by_start.insert(span(node).start, id);
        self.unit = id;
        self.body(&node.body);
        (self.unit, self.block, self.class) = (outer_unit, outer_block, class);
    }

    fn class_(&mut self, node: &'a StmtClassDef) {
        for decorator in &node.decorator_list {
            self.visit_expr(&decorator.expression);
        }
        if let Some(arguments) = &node.arguments {
            self.visit_arguments(arguments);
        }
        let outer = self.class.take();
        self.structure.classes.push(Class {
            node,
            methods: Vec::new(),
        });
        let id = self.structure.classes.len() - 1;
        self.structure.classes_by_start.insert(span(node).start, id);
        self.inside(BlockKind::Class(node), |walk| {
            for statement in &node.body {
                walk.class = Some(id);
                walk.visit_stmt(statement);
            }
        });
        self.class = outer;
    }

    fn try_(&mut self, node: &'a StmtTry) {
        self.inside(BlockKind::Try(node), |walk| walk.body(&node.body));
        for handler in &node.handlers {
            let ExceptHandler::ExceptHandler(handler) = handler;
            if let Some(kind) = &handler.type_ {
                self.visit_expr(kind);
            }
            self.inside(BlockKind::Handler(handler), |walk| walk.body(&handler.body));
        }
        self.inside(BlockKind::Else, |walk| walk.body(&node.orelse));
        self.inside(BlockKind::Finally(node), |walk| walk.body(&node.finalbody));
    }

    fn if_(&mut self, node: &'a ast::StmtIf) {
        self.visit_expr(&node.test);
        self.inside(
            BlockKind::If {
                test: &node.test,
                holds: true,
            },
            |walk| walk.body(&node.body),
        );
        let mut last = &*node.test;
        for clause in &node.elif_else_clauses {
            match &clause.test {
                Some(test) => {
                    self.visit_expr(test);
                    self.inside(BlockKind::If { test, holds: true }, |walk| {
                        walk.body(&clause.body)
                    });
                    last = test;
                }
                None => self.inside(
                    BlockKind::If {
                        test: last,
                        holds: false,
                    },
                    |walk| {
                        walk.body(&clause.body);
                    },
                ),
            }
        }
    }

    fn assign(&mut self, target: &'a Expr, value: &'a Expr, operator: Option<Operator>) {
        let place = self.place();
        let statement = self
            .statement
            .expect("assignments are statements or inside one");
        self.structure.assigns.push(Assign {
            target,
            value,
            operator,
            statement,
            place,
        });
    }
}

impl<'a> Visitor<'a> for Walk<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        deep(|| {
            let outer = self.statement.replace(statement);
            let place = self.place();
            self.structure.statements.push((statement, place));
            match statement {
                Stmt::FunctionDef(node) => self.function(node),
                Stmt::ClassDef(node) => self.class_(node),
                Stmt::For(node) => {
                    self.visit_expr(&node.iter);
                    self.inside(BlockKind::For(node), |walk| {
                        walk.visit_expr(&node.target);
                        walk.body(&node.body);
                    });
                    self.inside(BlockKind::Else, |walk| walk.body(&node.orelse));
                }
                Stmt::While(node) => {
                    self.inside(BlockKind::While(node), |walk| {
                        walk.visit_expr(&node.test);
                        walk.body(&node.body);
                    });
                    self.inside(BlockKind::Else, |walk| walk.body(&node.orelse));
                }
                Stmt::If(node) => self.if_(node),
                Stmt::With(node) => {
                    for item in &node.items {
                        self.visit_with_item(item);
                    }
                    self.inside(BlockKind::With(node), |walk| walk.body(&node.body));
                }
                Stmt::Try(node) => self.try_(node),
                Stmt::Match(node) => {
                    self.visit_expr(&node.subject);
                    for case in &node.cases {
                        self.inside(BlockKind::MatchCase, |walk| walk.body(&case.body));
                    }
                }
                Stmt::Assign(node) => {
                    self.visit_expr(&node.value);
                    for target in &node.targets {
                        self.visit_expr(target);
                        self.assign(target, &node.value, None);
                    }
                }
                Stmt::AugAssign(node) => {
                    self.visit_expr(&node.value);
                    self.visit_expr(&node.target);
                    self.assign(&node.target, &node.value, Some(node.op));
                }
                Stmt::AnnAssign(node) => {
                    if let Some(value) = &node.value {
                        self.visit_expr(value);
                        self.assign(&node.target, value, None);
                    }
                }
                _ => visitor::walk_stmt(self, statement),
            }
            self.statement = outer;
        });
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        deep(|| match expression {
            Expr::Call(node) => {
                visitor::walk_expr(self, expression);
                let place = self.place();
                let statement = self.statement.expect("expressions stand in statements");
                self.structure.calls.push(Call {
                    node,
                    place,
                    statement,
                });
            }
            Expr::Named(node) => {
                visitor::walk_expr(self, expression);
                self.assign(&node.target, &node.value, None);
            }
            Expr::Lambda(node) => {
                self.inside(BlockKind::Lambda(node), |walk| {
                    visitor::walk_expr(walk, expression)
                });
            }
            Expr::ListComp(_) | Expr::SetComp(_) | Expr::DictComp(_) | Expr::Generator(_) => {
                self.inside(BlockKind::Comprehension(expression), |walk| {
                    visitor::walk_expr(walk, expression);
                });
            }
            _ => visitor::walk_expr(self, expression),
        });
    }
}
