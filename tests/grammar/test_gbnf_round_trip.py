"""Random grammars written as GBNF, in every spelling the notation has, are read back as they were."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from infernix.grammar import ir
from infernix.grammar.gbnf import parse_gbnf
from infernix.grammar.unicode import character_class, complement_ranges

RULE_NAMES = ("root", "x", "a-b", "Rule_2", "3.d")
CHARACTERS = st.one_of(st.sampled_from('ab"\\]^-[/.\n\t #|é😀\x00'), st.characters(exclude_categories=["Cs"]))


def character_classes() -> st.SearchStrategy[ir.CharacterClass]:
    bounds = st.tuples(CHARACTERS, CHARACTERS).map(lambda pair: (ord(min(pair)), ord(max(pair))))
    return st.lists(bounds, min_size=1, max_size=4).map(character_class)


def repeated(bodies: st.SearchStrategy[ir.Expression]) -> st.SearchStrategy[ir.Expression]:
    counts = st.tuples(st.integers(0, 12), st.one_of(st.none(), st.integers(0, 12)))
    return st.builds(
        lambda body, counts: ir.Repeat(body, counts[0], None if counts[1] is None else counts[0] + counts[1]),
        bodies,
        counts,
    )


def compound(parts: st.SearchStrategy[ir.Expression]) -> st.SearchStrategy[ir.Expression]:
    several = st.lists(parts, min_size=2, max_size=4).map(tuple)
    return st.one_of(several.map(ir.Sequence), several.map(ir.Choice), repeated(parts))


TERMINALS: st.SearchStrategy[ir.Expression] = st.one_of(
    st.text(CHARACTERS, max_size=4).map(ir.text),
    character_classes(),
    st.just(character_class((), negated=True)),
    st.builds(ir.TokenSet, st.sets(st.integers(0, 300), min_size=1).map(lambda ids: tuple(sorted(ids))), st.booleans()),
    st.integers(0, len(RULE_NAMES) - 1).map(ir.RuleReference),
)
EXPRESSIONS = st.recursive(TERMINALS, compound, max_leaves=12)


class Writer:
    """Writes expressions of one grammar; whatever may be written in several ways is written in one at random."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def grammar(self, bodies: list[ir.Expression]) -> str:
        rules = [
            f"{name}{self._gap()}::={self._gap()}{self.choice(body)}"
            for name, body in zip(RULE_NAMES, bodies, strict=True)
        ]
        return self._space().join(rules)

    def choice(self, expression: ir.Expression) -> str:
        """Text that may stand where alternatives may."""
        if not isinstance(expression, ir.Choice):
            return self.sequence(expression)
        options = []
        for option in expression.options:
            blank = option == ir.EMPTY and self._rng.random() < 0.5
            options.append("" if blank else self.sequence(option))
        return f"{self._gap()}|{self._gap()}".join(options)

    def sequence(self, expression: ir.Expression) -> str:
        """Text that may stand where one alternative may."""
        if not isinstance(expression, ir.Sequence):
            return self.repetition(expression)
        return self._space().join(self.repetition(item) for item in expression.items)

    def repetition(self, expression: ir.Expression) -> str:
        """Text that may stand where one item of a sequence may."""
        if not isinstance(expression, ir.Repeat):
            return self.element(expression)
        low, high = expression.minimum, expression.maximum
        spellings = [f"{{{low},{self._gap()}{'' if high is None else high}}}"]
        spellings += [f"{{ {low:03} }}"] if low == high else []
        spellings += [
            mark for mark, counts in {"*": (0, None), "+": (1, None), "?": (0, 1)}.items() if counts == (low, high)
        ]
        return self.element(expression.body) + self._gap() + self._rng.choice(spellings)

    def element(self, expression: ir.Expression) -> str:
        """Text that may be repeated."""
        match expression:
            case ir.Literal(data):
                text = "".join(self._character(ord(character), '"\\') for character in data.decode())
                return f'"{text}"'
            case ir.CharacterClass(((0, 0xD7FF), (0xE000, ir.MAX_CODE_POINT))) if self._rng.random() < 0.5:
                return "."
            case ir.CharacterClass(ranges):
                return self._class(ranges)
            case ir.TokenSet(ids, excluded):
                shuffled = self._rng.sample(ids, len(ids))
                listed = f"{self._gap()},{self._gap()}".join(map(str, shuffled))
                return f"{'ExcludeToken' if excluded else 'Token'}{self._gap()}({listed})"
            case ir.RuleReference(index):
                return RULE_NAMES[index]
            case _:
                return f"({self._space()}{self.choice(expression)}{self._gap()})"

    def _class(self, ranges: tuple[tuple[int, int], ...]) -> str:
        negated = self._rng.random() < 0.3
        if negated:
            surrogates = (0xD800, 0xDFFF)
            ranges = character_class(complement_ranges((*ranges, surrogates))).ranges
        listed = []
        for low, high in self._rng.sample(ranges, len(ranges)):
            first, last = (self._character(code_point, "]\\^-") for code_point in (low, high))
            listed.append(first if low == high else f"{first}-{last}")
        return f"[{'^' if negated else ''}{''.join(listed)}]"

    def _character(self, code_point: int, reserved: str) -> str:
        character = chr(code_point)
        spellings = [f"\\U{code_point:08x}"]
        if code_point <= 0xFFFF:
            spellings.append(f"\\u{code_point:04X}")
        if code_point <= 0xFF:
            spellings.append(f"\\x{code_point:02x}")
        if character in '"\\]^-[/.':
            spellings.append("\\" + character)
        if character in "\n\t":
            spellings.append({"\n": "\\n", "\t": "\\t"}[character])
        if character not in reserved + "\r\n":
            spellings += [character] * 4
        return self._rng.choice(spellings)

    def _gap(self) -> str:
        return self._rng.choice(("", "", self._space()))

    def _space(self) -> str:
        return self._rng.choice((" ", "\n", "\r\n\t", ' # x ::= "(" [\n'))


@given(EXPRESSIONS, st.randoms(use_true_random=False))
def test_written_grammar_is_read_back(root_body: ir.Expression, rng: Random) -> None:
    bodies = [root_body, *map(ir.text, RULE_NAMES[1:])]
    grammar = parse_gbnf(Writer(rng).grammar(bodies))
    assert grammar.rules[grammar.root].name == "root"
    numbers = {rule.name: RULE_NAMES.index(rule.name) for rule in grammar.rules}
    renumbered = {
        rule.name: renumber(rule.body, [numbers[rule.name] for rule in grammar.rules]) for rule in grammar.rules
    }
    assert renumbered == dict(zip(RULE_NAMES, bodies, strict=True))


def renumber(expression: ir.Expression, numbers: list[int]) -> ir.Expression:
    """References by the writer's numbers in place of the reader's."""
    match expression:
        case ir.RuleReference(index):
            return ir.RuleReference(numbers[index])
        case ir.Sequence(items):
            return ir.Sequence(tuple(renumber(item, numbers) for item in items))
        case ir.Choice(options):
            return ir.Choice(tuple(renumber(option, numbers) for option in options))
        case ir.Repeat(body, minimum, maximum):
            return ir.Repeat(renumber(body, numbers), minimum, maximum)
        case _:
            return expression
