//! Walks the syntax of a file and records where everything is.

use super::structure::{
    Assign, Block, BlockId, BlockKind, Call, Class, ClassId, Place, Structure, Unit, UnitId,
};
use crate::python::ast::visitor::{self, Visitor};
use crate::python::{
    ExceptHandler, Expr, Operator, Stmt, StmtClassDef, StmtFunctionDef, StmtTry, ast, deep, span,
};

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
        walk.structure.link_classes();
        walk.structure
    }
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
            ancestors: Vec::new(),
            inherited: Vec::new(),
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
                node,
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
                    self.inside(
                        BlockKind::If {
                            node,
                            test,
                            holds: true,
                        },
                        |walk| walk.body(&clause.body),
                    );
                    last = test;
                }
                None => self.inside(
                    BlockKind::If {
                        node,
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

    /// `a, b = x, y` assigns `x` to `a` and `y` to `b`.
    fn assign_parts(&mut self, target: &'a Expr, value: &'a Expr) {
        match (target, value) {
            (Expr::Tuple(targets), Expr::Tuple(values))
                if targets.elts.len() == values.elts.len()
                    && !targets
                        .elts
                        .iter()
                        .chain(&values.elts)
                        .any(Expr::is_starred_expr) =>
            {
                for (target, value) in targets.elts.iter().zip(&values.elts) {
                    self.assign_parts(target, value);
                }
            }
            _ => self.assign(target, value, None),
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
                        self.assign_parts(target, &node.value);
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
