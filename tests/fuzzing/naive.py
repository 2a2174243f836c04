# SPDX-License-Identifier: Apache-2.0
"""A naive reader of CUDA C++: where a name is called in code, found one character at a time.

It shares nothing with the product's scanner, not even an idea: no regular expressions, no list of stops.  It is slow
and plain, so that one can see that it is right.  It reads logical text, that is, without line splices.
"""

from __future__ import annotations

_BLANKS = " \t\f\v\r"
_CLOSER = {"(": ")", "[": "]", "{": "}"}


class Refused(Exception):
    """The text has a call that can not be read."""


def calls(text: str, name: str) -> list[int]:
    """Return where `name` is called in code; a name in the arguments of a call counts as well.

    Raises:
        Refused: a call is not closed, or holds a directive, a lone quote or brackets that do not match.
    """
    return _Reader(text, name).code(0, len(text), macro=False)


class _Reader:
    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        #: Where literals end: a number does not go on before one.
        self.ends: set[int] = set()

    def code(self, at: int, end: int, *, macro: bool) -> list[int]:
        """Read code up to `end`; in the body of a macro `#` is an operator, and a call ends with the body."""
        found: list[int] = []
        fresh = not macro  # only blanks and comments so far on this line
        while at < end:
            letter = self.text[at]
            comment = self.comment_end(at)
            if comment:
                at = comment
                continue
            if letter == "#" and fresh:
                at = self.directive(at, found)
                continue
            fresh = letter == "\n" or (fresh and letter in _BLANKS)
            if macro and letter == "\n":
                fresh = False
            if letter in "\"'":
                at = self.quote_end(at) or self.line_end(at)
            elif self.is_name(at):
                if self.opens_call(at, end):
                    self.check_call(at, end, macro=macro)
                    found.append(at)
                at += len(self.name)
            else:
                at += 1
        return found

    # --- Parts ------------------------------------------------------------------------------------------------

    def line_end(self, at: int) -> int:
        while at < len(self.text) and self.text[at] != "\n":
            at += 1
        return at

    def comment_end(self, at: int) -> int:
        """Return the end of the comment that starts here, or 0."""
        if self.text[at : at + 2] == "//":
            return self.line_end(at)
        if self.text[at : at + 2] == "/*":
            closed = self.text.find("*/", at + 2)
            return closed + 2 if closed >= 0 else len(self.text)
        return 0

    def is_word(self, at: int) -> bool:
        return 0 <= at < len(self.text) and (self.text[at].isalnum() or self.text[at] in "_$")

    def is_name(self, at: int) -> bool:
        whole = self.text.startswith(self.name, at) and not self.is_word(at - 1)
        return whole and not self.is_word(at + len(self.name))

    def separates_digits(self, at: int) -> bool:
        """Say whether the quote stands between the digits of a number."""
        if not (at and self.text[at - 1].isalnum() and self.text[at + 1 : at + 2].isalnum()):
            return False
        start = at
        while start and start not in self.ends and (self.is_word(start - 1) or self.text[start - 1] in ".'"):
            start -= 1
        number = False
        while start < at:
            number = self.text[start + (self.text[start] == ".")].isdigit()
            word = self.is_word(start)
            start += 1
            while start < at and ((self.is_word(start) and (number or word)) or (number and self.text[start] in ".'")):
                start += 1
        return number

    def quote_end(self, at: int) -> int | None:
        """Return the end of the literal whose quote stands here; None where it has no partner on its line."""
        quote = self.text[at]
        if quote == "'" and self.separates_digits(at):
            return at + 1
        if quote == '"' and self.is_raw(at):
            opened = self.text.index("(", at)
            closing = ")" + self.text[at + 1 : opened] + '"'
            closed = self.text.find(closing, opened)
            return self.ended(closed + len(closing) if closed >= 0 else len(self.text))
        at += 1
        while at < len(self.text) and self.text[at] != "\n":
            if self.text[at] == quote:
                return self.ended(at + 1)
            at += 2 if self.text[at] == "\\" and self.text[at + 1 : at + 2] != "\n" else 1
        return None

    def ended(self, at: int) -> int:
        self.ends.add(at)
        return at

    def is_raw(self, at: int) -> bool:
        start = at
        while start and self.is_word(start - 1):
            start -= 1
        if self.text[start:at] not in ("R", "u8R", "uR", "UR", "LR") or self.text[start - 1 : start] in ("'", '"'):
            return False
        delimiter = self.text[at + 1 :].partition("(")
        fits = delimiter[1] and len(delimiter[0]) <= 16
        return bool(fits) and not any(char in " )\\\t\n\v\f\r" for char in delimiter[0])

    # --- Directives -------------------------------------------------------------------------------------------

    def directive_end(self, at: int) -> int:
        """Return the newline that ends the directive: not one in a comment or a raw string."""
        while at < len(self.text) and self.text[at] != "\n":
            if self.comment_end(at):
                at = self.comment_end(at)
            elif self.text[at] in "\"'":
                at = self.quote_end(at) or self.line_end(at)
            else:
                at += 1
        return at

    def word(self, at: int) -> tuple[str, int]:
        """Return the word behind blanks and comments, and where it ends."""
        while at < len(self.text) and (self.text[at] in _BLANKS or self.text[at : at + 2] == "/*"):
            at = self.comment_end(at) or at + 1
        end = at
        while self.is_word(end):
            end += 1
        return self.text[at:end], end

    def directive(self, at: int, found: list[int]) -> int:
        """Read a directive; add the calls in the body of a macro; return where to go on."""
        end = self.directive_end(at)
        word, behind = self.word(at + 1)
        if word == "define":
            macro, body = self.word(behind)
            if macro and macro != self.name:
                if self.text[body : body + 1] == "(":
                    body = self.text.index(")", body) + 1 if ")" in self.text[body:end] else body
                found += self.code(body, end, macro=True)
        elif word == "if" and self.word(behind)[0] == "0":
            return self.dead_end(end)
        return end

    def dead_end(self, at: int) -> int:
        """Return the directive that ends the branch which is not compiled."""
        depth, fresh = 0, False
        while at < len(self.text):
            letter = self.text[at]
            if self.comment_end(at):
                at = self.comment_end(at)
                continue
            if letter == "#" and fresh:
                word = self.word(at + 1)[0]
                if word in ("else", "elif", "endif") and not depth:
                    return at
                depth += (word in ("if", "ifdef", "ifndef")) - (word == "endif")
                at = self.directive_end(at)
                continue
            fresh = letter == "\n" or (fresh and letter in _BLANKS)
            at = (self.quote_end(at) or self.line_end(at)) if letter in "\"'" else at + 1
        return at

    # --- Calls ------------------------------------------------------------------------------------------------

    def behind_blank(self, at: int, end: int) -> int:
        while at < end and (self.text[at].isspace() or self.comment_end(at)):
            at = self.comment_end(at) or at + 1
        return at

    def opens_call(self, at: int, end: int) -> bool:
        opened = self.behind_blank(at + len(self.name), end)
        return opened < end and self.text[opened] == "("

    def check_call(self, at: int, end: int, *, macro: bool) -> None:
        """Find the end of a call.

        Raises:
            Refused: it can not be read.
        """
        at = self.behind_blank(at + len(self.name), end)
        stack, fresh = [], False
        while at < end:
            letter = self.text[at]
            comment = self.comment_end(at)
            if comment:
                text = self.text[at:comment]
                if text.startswith("/*") and (not text.endswith("*/") or len(text) < 4 or comment > end):
                    raise Refused("comment")
                if macro and "\n" in text:
                    raise Refused("comment in a macro")
                at = comment
                continue
            if letter == "#" and fresh and not macro:
                raise Refused("directive")
            fresh = letter == "\n" or (fresh and letter in _BLANKS)
            if letter in "\"'":
                closed = self.quote_end(at)
                if closed is None:
                    raise Refused("quote")
                at = closed
                continue
            if letter in "([{":
                stack.append(letter)
            elif letter in ")]}":
                if _CLOSER[stack.pop()] != letter:
                    raise Refused("brackets")
                if not stack:
                    return
            at += 1
        raise Refused("not closed")
