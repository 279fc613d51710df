r"""GBNF: grammar text whose entry rule is `root`.

    root   ::= object | "[" item ("," item)* "]"    # a comment runs to the end of its line
    item   ::= [a-z_] [^"\\]{0,20} | . | Token(17, 18) | ExcludeToken(3)

A rule body runs to the next `name ::=` or to the end of the text; line breaks mean nothing. Within a body, in falling
order of binding: an element with at most one of `*`, `+`, `?`, `{m}`, `{m,}`, `{m,n}`; a sequence; alternatives, each
of which may be empty. Names have ASCII letters, digits, `-`, `_`, and `.` between two of these.

    "text" [set] [^set] .     characters; `.` is any one character, a line break too
    \n \r \t \a \b \f \v \e \0, \xNN \uNNNN \UNNNNNNNN (code points, never bytes), \ before ASCII punctuation
    Token(id, ...)            one of these tokens, whole
    ExcludeToken(id, ...)     one text token that is not among these, whole
    (= ...)                   at the end of a rule only: what follows the rule, a hint that must be well-formed and has
                              no effect on the language

The syntax is that of llama.cpp (grammars/README.md) and of XGrammar's EBNF. What only one of them accepts is accepted:
empty alternatives, `.`, names with `_` or `.` or a digit in front. An error is what they read differently or what is
most likely a mistake: two names joined by a dot where that is no rule, a repetition of a repetition without
parentheses, a raw line break in a literal, a rule without any body. One difference is settled: `\x` takes two digits,
as in llama.cpp.
XGrammar's rule attributes (captures, budgets, temperature, lazy rules) and its constructors TagDispatch,
TokenTagDispatch, Regex and Substring are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from infernix.errors import ConstraintTooLarge, InvalidGrammar
from infernix.grammar import ir
from infernix.grammar.gbnf_lexer import (
    ANNOTATION,
    CLASS,
    DEFINE,
    END,
    LITERAL,
    NAME,
    Word,
    grammar_error,
    read_class,
    read_literal,
    words,
)
from infernix.grammar.unicode import character_class, first_surrogate

MAX_SOURCE_BYTES = 2 * 2**20
MAX_GROUP_DEPTH = 256
MAX_REPETITION = 1_000_000_000
MAX_TOKEN_ID = 2**31 - 1

# Every so many levels a group becomes a rule of its own, so that expression trees stay shallow enough to be walked
# by recursion whatever the nesting of the text.
_GROUP_LEVELS_PER_RULE = 32

_TOKEN_CONSTRUCTORS = ("Token", "ExcludeToken")
_REFUSED_CONSTRUCTORS = ("TagDispatch", "TokenTagDispatch", "Regex", "Substring")
_REPETITION_MARKS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}

ANY_CHARACTER = character_class((), negated=True)

TokenError = Callable[[int], str | None]


def parse_gbnf(text: str, *, token_error: TokenError | None = None) -> ir.Grammar:
    """The grammar that `text` states.

    `token_error(id)` says why an id cannot be named in `Token(...)` and `ExcludeToken(...)` ("token 2 is EOS"), or None
    where it can; without it any id up to MAX_TOKEN_ID is taken.

    Raises InvalidGrammar, with the place in `text`, and ConstraintTooLarge for a text above MAX_SOURCE_BYTES.
    Whether the language is empty is not judged here.
    """
    surrogate = first_surrogate(text)
    if surrogate is not None:
        raise grammar_error(text, f"U+{ord(text[surrogate]):04X} is no character (a surrogate)", surrogate)
    num_bytes = len(text.encode("utf-8"))
    if num_bytes > MAX_SOURCE_BYTES:
        raise ConstraintTooLarge(f"the grammar text has {num_bytes} bytes, above MAX_SOURCE_BYTES = {MAX_SOURCE_BYTES}")
    return _Parser(text, token_error).parse()


@dataclass(slots=True)
class _Group:
    """Alternatives being read: the finished ones, and the items of the current one."""

    start: int
    is_annotation: bool = False
    options: list[ir.Expression] = field(default_factory=list)
    items: list[ir.Expression] = field(default_factory=list)

    @property
    def is_blank(self) -> bool:
        return not self.options and not self.items

    def end_option(self) -> None:
        self.options.append(ir.sequence(*self.items) if self.items else ir.EMPTY)
        self.items = []

    def expression(self) -> ir.Expression:
        self.end_option()
        return ir.choice(*self.options)


class _Parser:
    """Reads rules with one word of look-ahead and a stack of open groups: no recursion, time linear in the text."""

    def __init__(self, text: str, token_error: TokenError | None) -> None:
        self._text = text
        self._token_error = token_error
        self._words = words(text)
        self._word = next(self._words)
        self._following = next(self._words)
        self._builder = ir.GrammarBuilder()
        self._rules: dict[str, ir.RuleReference] = {}
        self._mentions: dict[str, int] = {}
        self._definitions: dict[str, int] = {}

    def parse(self) -> ir.Grammar:
        while self._word.kind != END:
            self._read_rule()
        for name, offset in self._mentions.items():
            if name not in self._definitions:
                raise self._undefined(name, offset)
        if "root" not in self._definitions:
            raise self._error('there is no rule "root"', next(iter(self._definitions.values()), 0))
        return self._builder.build(self._rules["root"])

    def _error(self, message: str, offset: int) -> InvalidGrammar:
        return grammar_error(self._text, message, offset)

    def _advance(self) -> Word:
        word = self._word
        self._word = self._following
        self._following = next(self._words, self._following)
        return word

    def _at_rule_end(self) -> bool:
        return self._word.kind == END or (self._word.kind == NAME and self._following.kind == DEFINE)

    def _rule(self, name: str) -> ir.RuleReference:
        if name not in self._rules:
            self._rules[name] = self._builder.declare(name)
        return self._rules[name]

    def _undefined(self, name: str, offset: int) -> InvalidGrammar:
        hint = ""
        if name in _TOKEN_CONSTRUCTORS:
            hint = f" (a token terminal names ids: {name}(id, ...))"
        elif "." in name:
            hint = ' (a "." for any character stands apart from names)'
        return self._error(f'rule "{_cut(name)}" is not defined{hint}', offset)

    def _read_rule(self) -> None:
        name = self._advance()
        if name.kind != NAME:
            raise self._error(f'expected a rule, "name ::= body", not {_shown(name)}', name.start)
        if self._word.kind in (CLASS, "("):
            raise self._attributes_refused(self._word.start)
        if self._word.kind != DEFINE:
            raise self._error(f'expected "::=" after the rule name, not {_shown(self._word)}', self._word.start)
        if name.text in self._definitions:
            raise self._error(f'rule "{_cut(name.text)}" is defined twice', name.start)
        self._definitions[name.text] = name.start
        define = self._advance()
        reference = self._rule(name.text)
        self._builder.define(reference, self._read_body(name.text, define))

    def _read_body(self, rule_name: str, define: Word) -> ir.Expression:
        body = _Group(define.start)
        groups = [body]
        while not self._at_rule_end():
            word = self._advance()
            if word.kind == "|":
                groups[-1].end_option()
            elif word.kind in ("(", ANNOTATION):
                self._open_group(groups, word)
            elif word.kind == ")":
                self._close_group(groups, word, rule_name)
            elif word.kind == CLASS and self._word.kind == DEFINE:
                raise self._attributes_refused(word.start)
            else:
                groups[-1].items.append(self._repeated(self._read_element(word)))
        if len(groups) > 1:
            raise self._error("this group is not closed", groups[-1].start)
        if body.is_blank:
            raise self._error(f'rule "{_cut(rule_name)}" has no body (the empty string is written "")', define.start)
        return body.expression()

    def _open_group(self, groups: list[_Group], word: Word) -> None:
        is_annotation = word.kind == ANNOTATION
        if is_annotation and len(groups) > 1:
            raise self._annotation_misplaced(word.start)
        if len(groups) > MAX_GROUP_DEPTH:
            raise self._error(f"groups are nested deeper than MAX_GROUP_DEPTH = {MAX_GROUP_DEPTH}", word.start)
        groups.append(_Group(word.start, is_annotation))

    def _close_group(self, groups: list[_Group], word: Word, rule_name: str) -> None:
        if len(groups) == 1:
            raise self._error('this ")" closes no group', word.start)
        group = groups.pop()
        if self._word.kind == DEFINE:
            raise self._attributes_refused(group.start)
        if group.is_annotation:
            if group.is_blank:
                raise self._error("this (= ...) annotation is empty", group.start)
            if not self._at_rule_end():
                raise self._annotation_misplaced(group.start)
            return
        expression = group.expression()
        if len(groups) % _GROUP_LEVELS_PER_RULE == 0:
            expression = self._builder.add(rule_name, expression)
        groups[-1].items.append(self._repeated(expression))

    def _annotation_misplaced(self, offset: int) -> InvalidGrammar:
        return self._error("a (= ...) annotation stands only at the end of a rule", offset)

    def _attributes_refused(self, offset: int) -> InvalidGrammar:
        message = 'expected "::="; rule attributes (captures, budgets, temperature, lazy rules) are not supported'
        return self._error(message, offset)

    def _read_element(self, word: Word) -> ir.Expression:
        if word.kind == LITERAL:
            return read_literal(self._text, word)
        if word.kind == CLASS:
            return read_class(self._text, word)
        if word.kind == ".":
            return ANY_CHARACTER
        if word.kind == NAME:
            if self._word.kind == "(" and word.text in _REFUSED_CONSTRUCTORS:
                raise self._error(f"the constructor {word.text} is not supported", word.start)
            if self._word.kind == "(" and word.text in _TOKEN_CONSTRUCTORS:
                return self._read_token_set(word)
            self._mentions.setdefault(word.text, word.start)
            return self._rule(word.text)
        if word.kind in _REPETITION_MARKS or word.kind == "{":
            raise self._error(f'there is nothing that this "{word.text}" could repeat', word.start)
        raise self._error(f"unexpected {_shown(word)}", word.start)

    def _read_token_set(self, constructor: Word) -> ir.TokenSet:
        opening = self._advance()
        ids = set()
        while True:
            ids.add(self._read_token_id(constructor, opening))
            if self._at_rule_end():
                raise self._unclosed_tokens(constructor, opening)
            separator = self._advance()
            if separator.kind == ")":
                return ir.TokenSet(tuple(sorted(ids)), excluded=constructor.text == "ExcludeToken")
            if separator.kind != ",":
                raise self._error(f'expected "," or ")" after a token id, not {_shown(separator)}', separator.start)

    def _read_token_id(self, constructor: Word, opening: Word) -> int:
        if self._at_rule_end():
            raise self._unclosed_tokens(constructor, opening)
        word = self._advance()
        if word.kind != NAME or not word.text.isdecimal():
            raise self._error(f"expected a token id, a number from 0 on, not {_shown(word)}", word.start)
        token_id = _bounded_integer(word.text, MAX_TOKEN_ID)
        if token_id is None:
            raise self._error(f"this token id is above MAX_TOKEN_ID = {MAX_TOKEN_ID}", word.start)
        if self._token_error is not None and (reason := self._token_error(token_id)) is not None:
            raise self._error(f"{constructor.text} cannot name this token: {reason}", word.start)
        return token_id

    def _unclosed_tokens(self, constructor: Word, opening: Word) -> InvalidGrammar:
        return self._error(f"this list of {constructor.text} is not closed", opening.start)

    def _repeated(self, element: ir.Expression) -> ir.Expression:
        if self._word.kind in _REPETITION_MARKS:
            minimum, maximum = _REPETITION_MARKS[self._advance().kind]
        elif self._word.kind == "{":
            minimum, maximum = self._read_counts()
        else:
            return element
        if self._word.kind in _REPETITION_MARKS or self._word.kind == "{":
            raise self._error("a repetition of a repetition needs parentheses around the inner one", self._word.start)
        return ir.Repeat(element, minimum, maximum)

    def _read_counts(self) -> tuple[int, int | None]:
        opening = self._advance()
        if self._word.kind == ",":
            raise self._error('a repetition needs its lower bound; "{,n}" is written "{0,n}"', self._word.start)
        minimum = self._read_count(opening)
        maximum: int | None = minimum
        if self._word.kind == ",":
            self._advance()
            maximum = None if self._word.kind == "}" else self._read_count(opening)
        if self._word.kind != "}":
            raise self._unclosed_counts(opening, 'expected "}"')
        self._advance()
        if maximum is not None and maximum < minimum:
            raise self._error(f"this repetition runs backwards: {minimum} is above {maximum}", opening.start)
        return minimum, maximum

    def _read_count(self, opening: Word) -> int:
        if self._word.kind != NAME or not self._word.text.isdecimal():
            raise self._unclosed_counts(opening, "expected a count")
        word = self._advance()
        count = _bounded_integer(word.text, MAX_REPETITION)
        if count is None:
            raise self._error(f"this count is above MAX_REPETITION = {MAX_REPETITION}", word.start)
        return count

    def _unclosed_counts(self, opening: Word, expected: str) -> InvalidGrammar:
        if self._at_rule_end():
            return self._error("this repetition is not closed", opening.start)
        return self._error(f"{expected} in a repetition, not {_shown(self._word)}", self._word.start)


def _shown(word: Word) -> str:
    if word.kind == END:
        return "the end of the text"
    shown = _cut(word.text)
    return shown if word.kind == LITERAL else f'"{shown}"'


def _cut(text: str) -> str:
    """A word for a message; the place is shown below it anyway."""
    return text if len(text) <= 40 else text[:40] + "..."


def _bounded_integer(digits: str, maximum: int) -> int | None:
    """The number, or None above `maximum`; the length is looked at first, since reading digits takes squared time."""
    significant = digits.lstrip("0")
    if len(significant) > len(str(maximum)):
        return None
    value = int(significant or "0")
    return value if value <= maximum else None
