# SPDX-License-Identifier: Apache-2.0
"""Build the graph of a function from its syntax tree: expressions and conditions, and what they do in order."""

from __future__ import annotations

import re
from dataclasses import replace

from ..rewriting.annotation import SiteKind
from .asynchronous import of_assembly
from .conditions import DOWN, SPELLINGS, UP, Condition, Guard, Value, constant, outcome, read
from .flow import Around, Enclosing, Step, StepKind, Undecided
from .lanes import Lanes
from .macros import exits_of
from .parsing import Node, descend
from .sites import Site
from .steps import Ends, Steps

_NAME = re.compile(r"[A-Za-z_]\w*\Z")
#: A variable, or a member of one.
_PATH = re.compile(r"(?:this\s*->\s*)?[A-Za-z_]\w*(?:\s*(?:\.|->)\s*[A-Za-z_]\w*)?(?!\s*\()")
_BRACKET = re.compile(r"\s*\(")
_SPACE = re.compile(r"\s+|\bthis\s*->")
_LAST_WORD = re.compile(r"([A-Za-z_]\w*)\s*(?:<[\s\S]*>)?\s*\Z")
#: Functions that end the thread, or say that nothing gets there.
STOPS = frozenset(["__trap", "__builtin_trap", "__builtin_unreachable", "__nv_unreachable", "abort", "__exit", "exit"])
_EXIT_ASM = re.compile(r"\b(?:exit|trap)\s*;")
_DEEPEST = 40
#: How much of what a call calls is read.
_LONGEST_NAME = 256
#: What does nothing beside what stands in it.
_TRANSPARENT = ("parenthesized_expression", "cast_expression", "argument_list", "fold_expression")


class Expressions(Steps):
    """The part of a build that knows expressions."""

    # --- Expressions ----------------------------------------------------------------------------------------

    def _expression(self, node: Node) -> None:
        """Add what an expression or a declaration does."""
        node = _inner(node)
        self.nesting += 1
        if self.nesting > _DEEPEST:
            raise Undecided("an expression with annotations nests too deep")
        if node.type == "comma_expression":
            for part in _operands(node):
                self._expression(part)
        elif (site := self.reading.site_at(node.start_byte)) is not None and node.type == "number_literal":
            self._site(site)
        elif self.reading.holds_site(node):
            self._around_sites(node)
        else:
            self._does(node)
        self.nesting -= 1

    def _around_sites(self, node: Node) -> None:
        """Add an expression in which sites stand."""
        if node.type == "conditional_expression":
            condition = _inner(node.child_by_field_name("condition"))
            enclosing = self._enclosing(condition)
            taken, left = self.condition(condition)
            behind: Ends = []
            for ends, field_name, truth in ((taken, "consequence", True), (left, "alternative", False)):
                self.ends = ends
                arm = node.child_by_field_name(field_name)
                before = self.around
                under = replace(enclosing, truth=enclosing.truth is truth)
                self.around = Around((*before.conditions, under), before.copies)
                if arm is not None:
                    self._expression(arm)
                self.around = before
                behind += self.ends
            self.ends = behind
        elif node.type == "binary_expression" and _operator(node) in ("&&", "||"):
            taken, left = self.condition(node)
            self.ends = taken + left
        elif node.type == "lambda_expression":
            self._add(Step(StepKind.WORK, node.start_byte))
        elif node.named_children:
            for child in node.named_children:
                if child.type not in ("type_identifier", "primitive_type"):
                    self._expression(child)
            if node.type not in _TRANSPARENT:
                self._add(Step(StepKind.WORK, node.start_byte))
                self._learn(node)

    def _site(self, site: Site) -> None:
        for point in site.points:
            self.flow.around.setdefault(point, self.around)
            if not site.plain:
                raise Undecided(f"the macro of {point.label if point.name else 'a pop'} branches around it")
            if point.worked:
                self._works(site)
            self._add(Step(StepKind.POINT, point.start, point))
            if point.kind is not SiteKind.SCOPE:
                continue
            self.opened(point)
            if point.holds:
                self._works(site)
            if point.closed:
                self.closed(point)

    def _works(self, site: Site) -> None:
        """Add what the use of a macro does between its annotations: its own work, and that which it is given."""
        self._add(Step(StepKind.WORK, site.start))
        told = [self.reading.helpers.of_text(text) for text in (site.given, site.code)]
        if any(waits for _, waits in told):
            self._add(Step(StepKind.WAIT, site.start))
        elif any(issues for issues, _ in told):
            self._add(Step(StepKind.ISSUE, site.start))
        self.left(exits_of(site.given, self.reading.macros), site.start)

    def _does(self, node: Node, *, certain: bool = True) -> None:
        """Add the steps of an expression without sites, or of a statement whose parts may not all be executed."""
        if not node.named_children and node.type in ("number_literal", "identifier", "true", "false", "comment"):
            if node.start_byte in self.reading.assembly:
                self._assembly(node)
            elif node.type == "identifier":
                self._macro(node)
            return
        self._add(Step(StepKind.WORK, node.start_byte))
        for one in descend(node):
            if one.type == "number_literal" and one.start_byte in self.reading.assembly:
                self._assembly(one)
            elif one.type == "call_expression":
                self._call(one)
            elif one.type == "identifier":
                self._macro(one)
            else:
                self._learn(one, certain=certain)
                if one.type == "declaration" and self.reading.effects:
                    self._constructs(one)

    def ends_thread(self, node: Node) -> bool:
        """Say whether a number stands for inline assembly that ends the thread."""
        end = self.reading.assembly.get(node.start_byte)
        return end is not None and _EXIT_ASM.search(self.reading.original, node.start_byte, end) is not None

    def called(self, node: Node) -> str:
        """Return the last name of what a call calls, or ""."""
        function = node.child_by_field_name("function")
        text = self.text_of(function)[-_LONGEST_NAME:] if function is not None else ""
        found = _LAST_WORD.search(text)
        return found.group(1) if found is not None else ""

    def _assembly(self, node: Node) -> None:
        text = self.reading.original[node.start_byte : self.reading.assembly[node.start_byte]]
        issues, waits = of_assembly(text)
        self._add(Step(StepKind.WORK, node.start_byte))
        if waits:
            self._add(Step(StepKind.WAIT, node.start_byte))
        elif issues:
            self._add(Step(StepKind.ISSUE, node.start_byte))
        if self.ends_thread(node):
            self.ends = []

    def _constructs(self, node: Node) -> None:
        """Add the call of a constructor that leaves ranges open."""
        kind = node.child_by_field_name("type")
        found = _LAST_WORD.search(self.text_of(kind)) if kind is not None else None
        if found is not None and found.group(1) in self.reading.effects:
            self._add(Step(StepKind.CALL, node.start_byte, name=found.group(1)))

    def _macro(self, node: Node) -> None:
        exits = self.reading.macros.get(self.text_of(node)) if self.reading.macros else None
        if exits is not None and (not exits.called or _BRACKET.match(self.reading.text, node.end_byte)):
            self.left(exits, node.start_byte)

    def _call(self, node: Node) -> None:
        name = self.called(node)
        if name in STOPS:
            self.ends = []
            return
        self._asks(name, node)
        if name in self.reading.effects and self._is_of(node.child_by_field_name("function"), name):
            self._add(Step(StepKind.CALL, node.start_byte, name=name))

    def _asks(self, name: str, node: Node) -> None:
        """Add what a call, or the use of a macro, issues or waits for."""
        issues, waits = self.reading.helpers.of_call(name)
        if not waits and not issues and (function := node.child_by_field_name("function")) is not None:
            issues = function.type == "qualified_identifier" and of_assembly(self.text_of(function))[0]
        if waits:
            self._add(Step(StepKind.WAIT, node.start_byte))
        elif issues:
            self._add(Step(StepKind.ISSUE, node.start_byte))

    def _is_of(self, function: Node, name: str) -> bool:
        """Say whether a call is that of the file's function of this name, not of another class's method."""
        classes = self.reading.effects[name]
        if function.type == "qualified_identifier":
            scope = self.text_of(function).rpartition("::")[0].strip().rpartition("::")[2].partition("<")[0]
            return scope in classes or ("" in classes and scope != "std")
        if function.type != "field_expression" or "" in classes:
            return True
        receiver = self.text_of(function.child_by_field_name("argument"))
        return not _NAME.match(receiver) or self.reading.kinds.may_be(receiver, classes)

    def _learn(self, node: Node, *, certain: bool = True) -> None:
        """Note which variable an assignment, a declaration or an increment changes, and to what."""
        if node.type == "assignment_expression":
            target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
            plain = _operator(node) == "="
        elif node.type == "init_declarator":
            target, value, plain = node.child_by_field_name("declarator"), node.child_by_field_name("value"), True
        elif node.type == "update_expression":
            target, value, plain = node.child_by_field_name("argument"), None, False
        else:
            return
        if target is None:
            return
        whole = self.text_of(target)
        found = _PATH.match(whole.lstrip("*&( "))
        if found is None:
            return
        name = _SPACE.sub("", found.group())
        exact = found.group() == whole.strip()
        text = self.text_of(value).strip("{}") if value is not None else ""
        number: Value | None = None
        if plain and text and certain and exact:
            number = constant(text, self.reading.enumerators)
        if value is not None and exact and _NAME.match(name):
            # What a branch assigns, and what is added, leaves the value before in it.
            anew = plain and (node.type == "init_declarator" or (certain and not self.around.conditions))
            self.flow.variables.learn(name, text, anew=anew)
        if number is not None:
            self.flow.constants.add(name)
        elif certain and not plain and exact:
            number = _counted(node, _operator(node))
        by_one = node.type == "update_expression" or text == "1"
        self._add(Step(StepKind.ASSIGN, node.start_byte, name=name, value=number, by_one=by_one))

    # --- Conditions -----------------------------------------------------------------------------------------

    def read_condition(self, node: Node) -> tuple[Condition, bool]:
        """Return the condition that a node spells, and whether it means it or its opposite."""
        return read(self.text_of(node), self.reading.enumerators)

    def _enclosing(self, node: Node) -> Enclosing:
        condition, truth = self.read_condition(node)
        return Enclosing(condition.key, truth, self._lanes(node), node.start_byte)

    def _lanes(self, node: Node) -> Lanes:
        """Return what a condition has to do with lanes; one part that is elected elects the whole."""
        node = _inner(node)
        if node.type == "binary_expression" and _operator(node) == "&&":
            parts = [self._lanes(part) for part in node.named_children]
            if Lanes.ELECTED in parts and all(part in (Lanes.ELECTED, Lanes.UNIFORM) for part in parts):
                return Lanes.ELECTED if Lanes.UNIFORM not in parts else Lanes.VARYING
        condition, _ = self.read_condition(node)
        return self.flow.variables.judge(condition.key)

    def condition(self, node: Node) -> tuple[Ends, Ends]:
        """Add a condition; return the ends where it holds and those where it does not."""
        node = _inner(node)
        self.nesting += 1
        if self.nesting > _DEEPEST:
            raise Undecided("a condition nests too deep")
        result = self._parts(node)
        self.nesting -= 1
        return result

    def _parts(self, node: Node) -> tuple[Ends, Ends]:
        operator = _operator(node)
        if node.type == "unary_expression" and operator == "!":
            taken, left = self.condition(node.child_by_field_name("argument"))
            return left, taken
        if node.type == "binary_expression" and operator in ("&&", "||"):
            first, second = node.child_by_field_name("left"), node.child_by_field_name("right")
            taken, left = self.condition(first)
            self.ends = taken if operator == "&&" else left
            more_taken, more_left = self.condition(second)
            return (more_taken, left + more_left) if operator == "&&" else (taken + more_taken, more_left)
        self._expression(node)
        asked, truth = self.read_condition(node)
        known = outcome(asked, {})
        if known is not None:
            ends = self.ends
            return (ends, []) if known is truth else ([], ends)
        self.flow.conditions.append(asked)
        start = self.ends
        return self._guarded(start, Guard(asked, truth)), self._guarded(start, Guard(asked, not truth))


def _counted(node: Node, operator: str) -> str | None:
    """Return which way an increment or a compound assignment counts, where that is certain."""
    value = node.child_by_field_name("right")
    if value is not None and value.type != "number_literal":
        return None
    return {"++": UP, "+=": UP, "--": DOWN, "-=": DOWN}.get(operator)


def _operator(node: Node) -> str:
    operator = node.child_by_field_name("operator")
    return SPELLINGS.get(operator.type, operator.type) if operator is not None else ""


def _inner(node: Node) -> Node:
    """Return what stands between parentheses, however many."""
    while node.type in ("parenthesized_expression", "condition_clause") and node.named_child_count == 1:
        node = node.named_children[0]
    return node


def _operands(node: Node) -> list[Node]:
    """Return the operands of a chain of commas, in order."""
    result: list[Node] = []
    while node.type == "comma_expression":
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        result.append(right)
        node = left
    return [node, *reversed(result)]
