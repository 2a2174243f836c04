# SPDX-License-Identifier: Apache-2.0
"""Build the graph of a function from its syntax tree: statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from .conditions import Condition, Guard, Value, constant, outcome
from .expressions import STOPS
from .flow import Around, Enclosing, Flow, Step, StepKind, Undecided
from .jumps import Jumps, Target
from .lanes import Lanes
from .parsing import Function, Node, descend
from .steps import Ends, Reading

#: How deep statements may nest; generated text nests deeper than a person's.
_DEEPEST = 120
_ALWAYS = ("return_statement", "goto_statement", "labeled_statement", "throw_statement", "ERROR")
#: By statement: what in it leads out of it, or into it.
_JUMPS_OUT = {
    "if_statement": frozenset([*_ALWAYS, "break_statement", "continue_statement", "case_statement"]),
    "switch_statement": frozenset([*_ALWAYS, "continue_statement"]),
    **dict.fromkeys(["for_statement", "for_range_loop", "while_statement", "do_statement"], frozenset(_ALWAYS)),
}
_NOTHING = frozenset(
    [
        "using_declaration",
        "alias_declaration",
        "type_definition",
        "static_assert_declaration",
        "comment",
        "empty_statement",
        "template_declaration",
        "struct_specifier",
        "class_specifier",
        "enum_specifier",
        "namespace_alias_definition",
        ";",
    ]
)


def build(function: Function, reading: Reading) -> Flow:
    """Return the function's graph.

    Raises:
        Undecided: it holds a statement that is not understood, or a jump to nowhere.
    """
    return _Builder(reading).run(function)


class _Builder(Jumps):
    """The state of one build."""

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self.depth = 0
        #: The loops around that are unrolled.
        self.unrolled: list[Node] = []
        self.handlers: Mapping[str, Callable[[Node], None]] = {
            "compound_statement": self._block,
            "expression_statement": self._expression_statement,
            "declaration": self._expression,
            "if_statement": self._if,
            "for_statement": self._for,
            "for_range_loop": self._range_for,
            "while_statement": self._while,
            "do_statement": self._do,
            "switch_statement": self._switch,
            "break_statement": self._break,
            "continue_statement": self._continue,
            "return_statement": self._return,
            "goto_statement": self._goto,
            "throw_statement": self._throw,
            "labeled_statement": self._labeled,
            "function_definition": self._headed,
            "attributed_statement": self._attributed,
            "else_clause": self._attributed,
        }

    def run(self, function: Function) -> Flow:
        self.flow.steps.append(Step(StepKind.JOIN))
        self.ends = [(0, None)]
        self.around = Around(copies=self._copies_around(function))
        self.visit(function.body)
        self._leave(function.end - 1, "end")
        for name, ends, scopes, at in self.gotos:
            self._link(name, ends, scopes, at)
        missing = [point for site in self.reading.sites for point in site.points if point not in self.flow.around]
        if missing:
            raise Undecided("an annotation of it was not found among its statements")
        return self.flow

    def _copies_around(self, function: Function) -> int:
        """Return how often unrolled loops repeat a lambda that stands in them."""
        node, copies = function.body.parent, 1
        while node is not None and node.type not in ("function_definition", "translation_unit"):
            copies *= self.reading.copies(node)
            node = node.parent
        return copies if function.body.parent.type == "lambda_expression" else 1

    # --- Plain statements -----------------------------------------------------------------------------------

    def visit(self, node: Node) -> None:
        """Add a statement."""
        handler = self.handlers.get(node.type)
        self.depth += 1
        if self.depth > _DEEPEST:
            raise Undecided("its statements nest too deep")
        if node.type in _JUMPS_OUT and self._is_apart(node):
            self._does(node, certain=False)
        elif handler is not None:
            handler(node)
        elif node.type not in _NOTHING:
            if node.type.endswith("_statement") or node.is_error or node.is_missing:
                raise Undecided(f"a {node.type.replace('_', ' ')} is not understood")
            self._expression(node)
        self.depth -= 1

    def _is_apart(self, node: Node) -> bool:
        """Say whether a statement holds nothing that ranges depend on: no site and no way out of it."""
        if self.reading.holds_site(node):
            return False
        if node.type in ("for_statement", "while_statement", "do_statement") and self._is_endless(node):
            return False
        jumps = _JUMPS_OUT[node.type]
        return not any(one.type in jumps or self._is_decisive(one) for one in descend(node))

    def _is_endless(self, node: Node) -> bool:
        """Say whether a loop asks nothing, so that only a jump ends it."""
        condition = node.child_by_field_name("condition")
        return condition is None or outcome(self.read_condition(condition)[0], {}) is not None

    def _is_decisive(self, node: Node) -> bool:
        if node.type == "call_expression":
            name = self.called(node)
            return name in STOPS or name in self.reading.effects
        if node.type == "identifier" and self.reading.macros:
            return self.text_of(node) in self.reading.macros
        return node.type == "number_literal" and self.ends_thread(node)

    def _expression_statement(self, node: Node) -> None:
        for child in node.named_children:
            if child.type == "identifier":
                # A name alone does nothing, so it is a macro's.
                self._add(Step(StepKind.WORK, child.start_byte))
                self._asks(self.text_of(child), child)
            self._expression(child)

    def _attributed(self, node: Node) -> None:
        for child in node.named_children:
            if not child.type.startswith("attribute"):
                self.visit(child)

    def _block(self, node: Node) -> None:
        self._scoped(lambda: self._all(node))

    def _all(self, node: Node) -> None:
        for child in node.named_children:
            self.visit(child)

    def _headed(self, node: Node) -> None:
        """Add a block with a macro for its head: a loop where something in it says so."""
        if any(one.type in ("break_statement", "continue_statement") for one in descend(node)):
            self._loop(node, None, None, first=True, counted=True)
        else:
            self._body(node.child_by_field_name("body"))

    def _body(self, node: Node | None, conditions: tuple[Enclosing, ...] = ()) -> None:
        """Add the body of a statement: a scope of its own, under conditions."""
        before = self.around
        copies = before.copies
        for one in conditions:
            for loop in self.unrolled:
                copies = int(copies * self.reading.share(loop, one.key, one.truth))
        self.around = Around((*before.conditions, *conditions), copies)
        if node is not None:
            self._scoped(lambda: self.visit(node))
        self.around = before

    def _throw(self, node: Node) -> None:
        """End the path: only code of the host throws, and there events are nothing."""
        for child in node.named_children:
            self._expression(child)
        self.ends = []

    # --- Branches -------------------------------------------------------------------------------------------

    def _if(self, node: Node) -> None:
        before = len(self.scopes)
        clause = node.child_by_field_name("condition")
        alternative = node.child_by_field_name("alternative")
        condition = self._clause(clause)
        enclosing = self._enclosing(condition)
        taken, left = self.condition(condition)
        if alternative is None and enclosing.lanes is Lanes.ELECTED:
            # Events are the warp's: its elected lane takes the branch, whatever the others do.
            taken, left = (taken, []) if enclosing.truth else ([], left)
        self.ends = taken
        self._body(node.child_by_field_name("consequence"), (enclosing,))
        behind = self.ends
        self.ends = left
        if alternative is not None:
            self._body(alternative, (replace(enclosing, truth=not enclosing.truth),))
        self.ends = behind + self.ends
        del self.scopes[before:]

    def _clause(self, clause: Node | None) -> Node:
        """Return the condition of a clause, having added what initialises it."""
        if clause is None:
            raise Undecided("a condition is missing")
        if clause.type != "condition_clause":
            return clause
        initializer, value = clause.child_by_field_name("initializer"), clause.child_by_field_name("value")
        if initializer is not None:
            self._expression(initializer)
        if value is None:
            raise Undecided("a condition is missing")
        return value

    def _switch(self, node: Node) -> None:
        body = node.child_by_field_name("body")
        value = self._clause(node.child_by_field_name("condition"))
        self._expression(value)
        if body is None or body.type != "compound_statement":
            raise Undecided("a switch has no block")
        asked, _ = self.read_condition(value)
        start, before = self.ends, len(self.scopes)
        children = body.named_children
        cases = [child for child in children if child.type == "case_statement"]
        values = tuple(number for number in map(self._label_value, cases) if number is not None)
        self.breaks.append(Target(before))
        self.ends = []
        for child in children:
            if child.type == "case_statement":
                self.ends = self.ends + self._case_ends(start, asked.left, self._label_value(child), values)
                self._case(child, asked.key)
            elif child.type not in _NOTHING:
                # What stands behind no label is a macro that brings one.
                self.ends = self.ends or start
                self.visit(child)
        if len(cases) == len(values) and len(cases) < 2:
            self.ends = self.ends + start
        # A switch of several cases without a default is taken to name every value.
        self._close(before)
        del self.scopes[before:]
        self.ends = self.ends + self.breaks.pop().ends

    def _label_value(self, case: Node) -> Value | None:
        value = case.child_by_field_name("value")
        if value is None:
            return None
        number = constant(self.text_of(value), self.reading.enumerators)
        return self.text_of(value) if number is None else number

    def _case_ends(self, start: Ends, left: str, number: Value | None, values: tuple[Value, ...]) -> Ends:
        """Return the ends that enter a case, or the default, which has no number."""
        if number is None:
            guard = Guard(Condition(left, left), True, values)
        else:
            condition = Condition(f"{left}=={number}", left, "==", number)
            self.flow.conditions.append(condition)
            guard = Guard(condition, True)
        return self._guarded(start, guard)

    def _case(self, case: Node, key: str) -> None:
        value = case.child_by_field_name("value")
        text = self.text_of(value) if value is not None else "default"
        enclosing = Enclosing(f"{key}=={text}", True, self.flow.variables.judge(key), case.start_byte)
        before = self.around
        self.around = Around((*before.conditions, enclosing), before.copies)
        for child in case.named_children:
            # The nodes of the bindings are made anew at each access.
            if value is None or child.id != value.id:
                self.visit(child)
        self.around = before

    # --- Loops ----------------------------------------------------------------------------------------------

    def _for(self, node: Node) -> None:
        initializer, condition = node.child_by_field_name("initializer"), node.child_by_field_name("condition")
        if initializer is not None:
            self._expression(initializer)
        self._loop(node, condition, node.child_by_field_name("update"), first=True)

    def _range_for(self, node: Node) -> None:
        right = node.child_by_field_name("right")
        if right is not None:
            self._expression(right)
        self._loop(node, None, None, first=True, counted=True)

    def _while(self, node: Node) -> None:
        clause = node.child_by_field_name("condition")
        self._loop(node, clause, None, first=True)

    def _do(self, node: Node) -> None:
        self._loop(node, node.child_by_field_name("condition"), None, first=False)

    def _loop(
        self, node: Node, condition: Node | None, update: Node | None, *, first: bool, counted: bool = False
    ) -> None:
        number, self.loops = self.loops, self.loops + 1
        self._add(Step(StepKind.ENTER, node.start_byte, loop=number))
        head = self._add(Step(StepKind.JOIN, node.start_byte))
        before = self.around
        copies = self.reading.copies(node)
        self.around = Around(before.conditions, before.copies * copies)
        if copies > 1:
            self.unrolled.append(node)
        left: Ends = []
        enclosing: tuple[Enclosing, ...] = ()
        if counted:
            left = list(self.ends)
        elif first and condition is not None:
            inner = self._clause(condition)
            enclosing = (replace(self._enclosing(inner), loop=True),)
            self.ends, left = self.condition(inner)
        self.breaks.append(Target(len(self.scopes)))
        self.continues.append(Target(len(self.scopes)))
        self._body(node.child_by_field_name("body"), enclosing)
        self.ends = self.ends + self.continues.pop().ends
        if update is not None:
            self._expression(update)
        if not first and condition is not None:
            self.ends, left = self.condition(self._clause(condition))
        self._add(Step(StepKind.AGAIN, node.start_byte, loop=number))
        self._connect(head)
        self.around = before
        if copies > 1:
            self.unrolled.pop()
        self.ends = left + self.breaks.pop().ends
        self._add(Step(StepKind.EXIT, node.start_byte, loop=number))
