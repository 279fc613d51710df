"""Random small grammars that try to be difficult, and a few difficult ones written by hand."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from infernix.grammar import ir
from infernix.grammar.unicode import character_class

# One byte, two bytes that share the first (é, è), three bytes, four bytes.
ALPHABET = ("a", "b", "c", "é", "è", "在", "😀")
# Weights: long texts should stay likely to collide.
_WEIGHTS = (8, 5, 3, 2, 2, 1, 1)


class RandomGrammar:
    """The parts that the families of grammars are put together from."""

    def __init__(self, rng: Random, token_ids: tuple[int, ...], reserved_ids: tuple[int, ...]) -> None:
        self.rng = rng
        self.builder = ir.GrammarBuilder()
        self.rules: list[ir.RuleReference] = []
        self.token_ids = token_ids
        self.reserved_ids = reserved_ids

    def letter(self) -> str:
        return self.rng.choices(ALPHABET, _WEIGHTS)[0]

    def terminal(self) -> ir.Expression:
        """Something that never derives the empty string."""
        rng = self.rng
        kind = rng.random()
        if self.token_ids and kind < 0.25:
            return self.token_set()
        if kind < 0.7:
            return ir.text("".join(self.letter() for _ in range(rng.choice((1, 1, 1, 2, 3)))))
        if kind < 0.8:
            return character_class([(ord(letter), ord(letter)) for letter in (self.letter(), self.letter())])
        if kind < 0.86:
            low = rng.choice((0x61, 0x62, 0xE0, 0xE9, 0x700, 0x4000, 0x1F000))
            return character_class([(low, low + rng.choice((1, 20, 3000, 60000)))], negated=rng.random() < 0.2)
        if kind < 0.9:
            return ir.ByteRange(*rng.choice(((0x61, 0x62), (0x61, 0x7A), (0x80, 0xBF), (0xC3, 0xE5), (0, 255))))
        if kind < 0.97:
            return self.automaton()
        return ir.Literal(self.letter().encode("utf-8")[:1])

    def token_set(self) -> ir.TokenSet:
        """One to three ids named, or up to two ids excluded; a reserved id may stand beside them."""
        rng = self.rng
        excluded = rng.random() < 0.3
        ids = rng.sample(self.token_ids, rng.randint(0, 2) if excluded else rng.randint(1, 3))
        if self.reserved_ids and rng.random() < 0.2:
            ids.append(rng.choice(self.reserved_ids))
        return ir.TokenSet(tuple(sorted(ids)), excluded)

    def automaton(self) -> ir.Automaton:
        """Up to four states over the bytes of the alphabet; some cannot be reached or cannot reach the end."""
        rng = self.rng
        units = sorted({byte for letter in ALPHABET for byte in letter.encode("utf-8")})
        num_states = rng.randint(2, 4)
        edges = []
        for source in range(num_states):
            cuts = sorted(rng.sample(units, rng.choice((0, 2, 2, 4))))
            for low, high in zip(cuts[::2], cuts[1::2], strict=True):
                edges.append((source, low, high, rng.randrange(num_states)))
        accepting = frozenset(state for state in range(1, num_states) if rng.random() < 0.6)
        return ir.Automaton(num_states, tuple(edges), accepting)

    def reference(self) -> ir.RuleReference:
        return self.rng.choice(self.rules)

    def nullable(self) -> ir.Expression:
        """Something that derives the empty string, and often more."""
        return self.rng.choice(
            (
                lambda: ir.EMPTY,
                lambda: ir.optional(self.terminal()),
                lambda: ir.Repeat(self.terminal(), 0, None),
                lambda: ir.Repeat(ir.optional(self.terminal()), self.rng.randint(0, 3), self.rng.randint(3, 5)),
                lambda: ir.Sequence((ir.optional(self.terminal()), ir.optional(self.terminal()))),
                lambda: ir.choice(ir.EMPTY, self.reference()),
            )
        )()

    def counted(self, body: ir.Expression) -> ir.Repeat:
        """A repetition with bounds of many kinds."""
        rng = self.rng
        minimum = rng.choice((0, 0, 1, 2, 3))
        return ir.Repeat(body, minimum, rng.choice((None, minimum, minimum + 1, minimum + rng.randint(1, 6), 40)))

    def expression(self, depth: int = 2) -> ir.Expression:
        """Anything."""
        rng = self.rng
        kind = rng.random()
        if depth == 0 or kind < 0.2:
            return self.reference() if rng.random() < 0.3 else self.terminal()
        if kind < 0.5:
            return ir.Sequence(tuple(self.expression(depth - 1) for _ in range(rng.randint(0, 3))))
        if kind < 0.75:
            return ir.Choice(tuple(self.expression(depth - 1) for _ in range(rng.randint(1, 3))))
        if kind < 0.9:
            return self.counted(self.expression(depth - 1))
        return ir.NOTHING if kind > 0.985 else self.nullable()


def _left(grammar: RandomGrammar) -> ir.Expression:
    return ir.choice(ir.sequence(grammar.rules[0], grammar.expression(1)), grammar.terminal())


def _right(grammar: RandomGrammar) -> ir.Expression:
    return ir.choice(ir.sequence(grammar.terminal(), grammar.rules[0]), grammar.expression(1), grammar.nullable())


def _hidden_left(grammar: RandomGrammar) -> ir.Expression:
    return ir.choice(ir.sequence(grammar.nullable(), grammar.rules[0], grammar.expression(1)), grammar.terminal())


def _mutual(grammar: RandomGrammar) -> ir.Expression:
    for rule in grammar.rules[1:]:
        grammar.builder.define(
            rule, ir.choice(ir.sequence(grammar.reference(), grammar.expression(1)), grammar.expression(1))
        )
    return ir.choice(ir.sequence(grammar.rules[-1], grammar.expression(1)), grammar.terminal(), grammar.rules[-1])


def _cyclic(grammar: RandomGrammar) -> ir.Expression:
    for rule in grammar.rules[1:]:
        step = ir.sequence(grammar.reference(), grammar.terminal())
        grammar.builder.define(rule, ir.choice(grammar.reference(), grammar.nullable(), step))
    return ir.choice(grammar.rules[0], *grammar.rules[1:], grammar.terminal())


def _doubling(grammar: RandomGrammar) -> ir.Expression:
    root = grammar.rules[0]
    options: list[ir.Expression] = [ir.sequence(root, root), grammar.terminal()]
    if grammar.rng.random() < 0.5:
        options.append(ir.sequence(root, root, root))
    if grammar.rng.random() < 0.5:
        options.append(ir.EMPTY)
    grammar.rng.shuffle(options)
    return ir.choice(*options)


def _nested(grammar: RandomGrammar) -> ir.Expression:
    root = grammar.rules[0]
    return ir.choice(
        ir.sequence(grammar.terminal(), root, grammar.terminal()), ir.sequence(root, ir.text("b"), root), ir.text("a")
    )


def _counted(grammar: RandomGrammar) -> ir.Expression:
    rng = grammar.rng
    body = rng.choice(
        (
            lambda: ir.choice(ir.text("a"), ir.text("aa")),
            lambda: ir.optional(grammar.terminal()),
            lambda: ir.sequence(ir.optional(ir.text("a")), ir.optional(grammar.terminal())),
            lambda: grammar.counted(grammar.terminal()),
            lambda: grammar.counted(grammar.counted(grammar.terminal())),
            lambda: ir.choice(grammar.terminal(), grammar.terminal(), ir.sequence(grammar.terminal(), ir.text("a"))),
            lambda: ir.sequence(grammar.reference(), grammar.terminal()),
        )
    )()
    tail = rng.choice((ir.EMPTY, ir.text("a"), ir.text("b"), ir.optional(ir.text("a"))))
    return ir.sequence(grammar.nullable() if rng.random() < 0.3 else ir.EMPTY, grammar.counted(body), tail)


def _any(grammar: RandomGrammar) -> ir.Expression:
    return grammar.expression(3)


FAMILIES: dict[str, Callable[[RandomGrammar], ir.Expression]] = {
    "left": _left,
    "right": _right,
    "hidden_left": _hidden_left,
    "mutual": _mutual,
    "cyclic": _cyclic,
    "doubling": _doubling,
    "nested": _nested,
    "counted": _counted,
    "any": _any,
}


def random_grammar(
    rng: Random, family: str, token_ids: tuple[int, ...] = (), reserved_ids: tuple[int, ...] = ()
) -> ir.Grammar:
    """A grammar whose root belongs to `family`; with `token_ids` some terminals are token sets of these ids.

    `reserved_ids` are ids that a set may list without effect (end tokens and padding); no set consists of them alone.
    The language may be empty, and rules may be unproductive or unreachable.
    """
    grammar = RandomGrammar(rng, token_ids, reserved_ids)
    num_rules = rng.randint(1, 4)
    grammar.rules = [grammar.builder.declare(f"rule-{index}") for index in range(num_rules)]
    grammar.builder.define(grammar.rules[0], FAMILIES[family](grammar))
    if family not in ("mutual", "cyclic"):
        for rule in grammar.rules[1:]:
            grammar.builder.define(rule, grammar.expression(2))
    return grammar.builder.build(grammar.rules[0])


def fixed_grammars() -> dict[str, ir.Grammar]:
    """Small grammars known to be hard for parsers of this kind; all are over the letters of `ALPHABET`, + * ( )."""
    a, b, c = ir.text("a"), ir.text("b"), ir.text("c")

    def recursive(make: Callable[[ir.RuleReference], ir.Expression]) -> ir.Grammar:
        builder = ir.GrammarBuilder()
        rule = builder.declare("root")
        builder.define(rule, make(rule))
        return builder.build(rule)

    def hidden_mutual() -> ir.Grammar:
        builder = ir.GrammarBuilder()
        first, second = builder.declare("first"), builder.declare("second")
        builder.define(first, ir.choice(ir.sequence(ir.optional(c), second, a), b))
        builder.define(second, ir.choice(ir.sequence(first, ir.optional(b)), ir.EMPTY))
        return builder.build(first)

    def unit_cycle() -> ir.Grammar:
        builder = ir.GrammarBuilder()
        first, second = builder.declare("first"), builder.declare("second")
        builder.define(first, ir.choice(first, second, a))
        builder.define(second, ir.choice(first, ir.sequence(second, b), ir.EMPTY))
        return builder.build(first)

    def dead_branches() -> ir.Grammar:
        builder = ir.GrammarBuilder()
        root, endless = builder.declare("root"), builder.declare("endless")
        builder.define(endless, ir.sequence(b, endless))
        builder.define(root, ir.choice(ir.sequence(a, endless), ir.sequence(a, c, ir.optional(endless)), endless))
        return builder.build(root)

    return {
        "s_s": recursive(lambda s: ir.choice(ir.sequence(s, s), a)),
        "s_s_s_empty": recursive(lambda s: ir.choice(ir.sequence(s, s, s), ir.sequence(s, s), a, ir.EMPTY)),
        "a_s_s_empty": recursive(lambda s: ir.choice(ir.sequence(a, s, s), ir.EMPTY)),
        "sums": recursive(
            lambda e: ir.choice(
                ir.sequence(e, ir.text("+"), e),
                ir.sequence(e, ir.text("*"), e),
                ir.sequence(ir.text("("), e, ir.text(")")),
                a,
            )
        ),
        "palindromes": recursive(lambda s: ir.choice(ir.sequence(a, s, a), ir.sequence(b, s, b), ir.EMPTY)),
        "balanced": recursive(lambda s: ir.choice(ir.sequence(s, a, s, b), ir.EMPTY)),
        "hidden_left": recursive(lambda s: ir.choice(ir.sequence(ir.Repeat(a, 0, 2), s, b), c)),
        "hidden_left_and_right": recursive(
            lambda s: ir.choice(ir.sequence(ir.optional(a), s, ir.optional(b)), c, ir.EMPTY)
        ),
        "hidden_mutual": hidden_mutual(),
        "unit_cycle": unit_cycle(),
        "dead_branches": dead_branches(),
        "ambiguous_count": ir.Grammar.of(ir.sequence(ir.Repeat(ir.choice(a, ir.text("aa")), 2, 7), b)),
        "nullable_count": ir.Grammar.of(ir.sequence(ir.Repeat(ir.optional(a), 0, 9), ir.optional(b))),
        "nullable_minimum": ir.Grammar.of(ir.Repeat(ir.choice(ir.EMPTY, a, ir.text("ab")), 4, None)),
        "ambiguous_minimum": ir.Grammar.of(ir.sequence(ir.Repeat(ir.choice(a, ir.text("aa")), 5, None), b)),
        "nested_counts": ir.Grammar.of(
            ir.Repeat(ir.sequence(ir.Repeat(ir.sequence(a, ir.optional(b)), 1, 3), ir.optional(c)), 2, 4)
        ),
        "count_of_counts": ir.Grammar.of(ir.Repeat(ir.Repeat(a, 2, 3), 2, 3)),
        "recursive_count": recursive(
            lambda s: ir.choice(ir.sequence(a, ir.Repeat(ir.sequence(b, s), 1, 2), c), ir.text("ac"))
        ),
        "counted_left_recursion": recursive(lambda s: ir.choice(ir.Repeat(ir.sequence(ir.optional(s), a), 1, 3), b)),
        "long_count": ir.Grammar.of(ir.sequence(a, ir.Repeat(ir.choice(a, b), 0, 1000), c)),
        "exact_count": ir.Grammar.of(ir.Repeat(a, 12, 12)),
        "overlapping_counts": ir.Grammar.of(
            ir.choice(ir.sequence(ir.Repeat(a, 3, 5), b), ir.sequence(ir.Repeat(ir.text("aa"), 1, 4), c))
        ),
        "characters": ir.Grammar.of(
            ir.Repeat(
                ir.choice(character_class([(0xE8, 0xE9)]), character_class([(0x4E00, 0x9FFF), (0x1F600, 0x1F64F)])),
                1,
                3,
            )
        ),
        "only_empty": ir.Grammar.of(ir.EMPTY),
    }
