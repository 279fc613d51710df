"""A recognizer for `infernix.grammar.ir` that is slow and plainly right: the oracle of the matching core.

It is Earley's algorithm with nothing clever in it (J. Earley, An efficient context-free parsing algorithm, CACM 13,
1970). Every expression object is a nonterminal of its own; an item is a position inside an expression together with
the set it began in. Counts of a `Repeat` are part of the position, so a bound of a thousand costs nothing until it is
counted up to. Empty derivations are found by running the closure of a set until nothing new appears.

Parts that derive no byte string at all are left out first. Each item of a set that is not empty can then be carried to
its end, so "the set is not empty" means "the text can be completed".

Token terminals take part through `step_token_terminal`, `accept` and `legal_tokens` only: no bytes match them. For the
question whether something can be completed, a token terminal counts as completable if it names any id or excludes ids.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import lru_cache

from infernix.grammar import ir
from infernix.matching.vocabulary import TokenClass, Vocabulary


class _Node:
    """An expression, or a rule, seen as a nonterminal; two nodes are equal only if they are the same object."""

    def __init__(self, expression: ir.Expression | None) -> None:
        self.expression = expression  # None: a rule, whose body is the only child
        self.children: list[_Node] = []
        self.productive = False
        self.live_states: frozenset[int] = frozenset()
        self._positions: dict[Hashable, _Position] = {}

    def position(self, key: Hashable) -> _Position:
        """The one position object for this key."""
        found = self._positions.get(key)
        if found is None:
            found = self._positions[key] = _Position(self, key)
        return found

    @property
    def start(self) -> _Position:
        return self.position(b"" if isinstance(self.expression, ir.CharacterClass) else 0)


class _Position:
    """How far a node has been matched.

    The key is: the number of matched items (sequence), of matched bytes (literal), of matched bodies (repeat); 0 or 1
    (rule, choice, byte range, token set); the bytes so far (character class); the state (automaton).
    """

    def __init__(self, node: _Node, key: Hashable) -> None:
        self.node = node
        self.key = key
        self.is_final = _is_final(node, key)
        self.is_terminal = isinstance(
            node.expression, ir.Literal | ir.CharacterClass | ir.ByteRange | ir.TokenSet | ir.Automaton
        )
        self._calls: tuple[tuple[_Node, _Position], ...] | None = None
        self._steps: dict[int, _Position | None] = {}

    @property
    def calls(self) -> tuple[tuple[_Node, _Position], ...]:
        """The nodes that may come next, each with the position after it."""
        if self._calls is None:
            self._calls = tuple(
                (child, self.node.position(key)) for child, key in _calls(self.node, self.key) if child.productive
            )
        return self._calls

    def step(self, byte: int) -> _Position | None:
        """The position after this byte, for a terminal."""
        if byte not in self._steps:
            key = _key_after_byte(self.node, self.key, byte)
            self._steps[byte] = None if key is None else self.node.position(key)
        return self._steps[byte]


def _is_final(node: _Node, key: Hashable) -> bool:
    match node.expression:
        case ir.Sequence(items):
            return key == len(items)
        case ir.Literal(data):
            return key == len(data)
        case ir.Repeat(_, minimum, _):
            assert isinstance(key, int)
            return key >= minimum
        case ir.CharacterClass():
            assert isinstance(key, bytes)
            return key != b"" and len(key) == _encoded_length(key[0])
        case ir.Automaton(_, _, accepting):
            return key in accepting
        case _:
            return key == 1


def _calls(node: _Node, key: Hashable) -> list[tuple[_Node, Hashable]]:
    match node.expression:
        case ir.Sequence(items):
            assert isinstance(key, int)
            return [(node.children[key], key + 1)] if key < len(items) else []
        case ir.Repeat(_, minimum, maximum):
            assert isinstance(key, int)
            if maximum is None:
                return [(node.children[0], min(key + 1, minimum))]
            return [(node.children[0], key + 1)] if key < maximum else []
        case ir.Choice() | None:
            return [(child, 1) for child in node.children] if key == 0 else []
        case _:
            return []


def _key_after_byte(node: _Node, key: Hashable, byte: int) -> Hashable | None:
    match node.expression:
        case ir.Literal(data):
            assert isinstance(key, int)
            return key + 1 if key < len(data) and data[key] == byte else None
        case ir.ByteRange(low, high):
            return 1 if key == 0 and low <= byte <= high else None
        case ir.CharacterClass(ranges):
            assert isinstance(key, bytes)
            longer = key + bytes([byte])
            return longer if _can_become_one_of(ranges, longer) else None
        case ir.Automaton(_, edges, _):
            for source, low, high, target in edges:
                if source == key and low <= byte <= high and target in node.live_states:
                    return target
            return None
        case _:
            return None


def _encoded_length(lead_byte: int) -> int:
    """Bytes of the UTF-8 character with this lead byte; 0 if no character has it."""
    if lead_byte < 0x80:
        return 1
    for num_bytes, (low, high) in {2: (0xC0, 0xDF), 3: (0xE0, 0xEF), 4: (0xF0, 0xF7)}.items():
        if low <= lead_byte <= high:
            return num_bytes
    return 0


def possible_code_points(prefix: bytes) -> list[tuple[int, int]]:
    """The scalar values whose UTF-8 encoding begins with `prefix` (not empty), as inclusive ranges.

    The bits given so far fix the upper part of the number; what is missing may be anything. Then the numbers that need
    another length, surrogates and numbers above the last code point are taken out (RFC 3629).
    """
    num_bytes = _encoded_length(prefix[0])
    if num_bytes < len(prefix):
        return []
    if any(byte & 0xC0 != 0x80 for byte in prefix[1:]):
        return []
    value = prefix[0] if num_bytes == 1 else prefix[0] & (0x7F >> num_bytes)
    for byte in prefix[1:]:
        value = value << 6 | byte & 0x3F
    num_free_bits = 6 * (num_bytes - len(prefix))
    low, high = value << num_free_bits, (value + 1 << num_free_bits) - 1
    smallest = {1: 0, 2: 0x80, 3: 0x800, 4: 0x10000}[num_bytes]
    scalars = [(smallest, 0xD7FF), (max(smallest, 0xE000), ir.MAX_CODE_POINT)]
    cut = [(max(low, first), min(high, last)) for first, last in scalars]
    return [(first, last) for first, last in cut if first <= last]


@lru_cache(maxsize=100_000)
def _can_become_one_of(ranges: tuple[tuple[int, int], ...], prefix: bytes) -> bool:
    if _encoded_length(prefix[0]) < len(prefix):
        return False
    return any(low <= last and first <= high for first, last in possible_code_points(prefix) for low, high in ranges)


_Item = tuple[_Position, "State"]


class State:
    """An Earley set: everything the text so far may have led to. The items are worked out when they are asked for."""

    def __init__(self, kernel: Iterable[_Item], root: _Node | None = None) -> None:
        self.kernel: tuple[_Item, ...] = tuple(kernel)
        self.is_terminated = False
        self._root = root
        self._items: set[_Item] | None = None
        self._waiting: dict[_Node, list[_Item]] = {}
        self._terminals: list[_Item] = []

    def items(self) -> set[_Item]:
        """All items, closed under prediction and completion."""
        if self._items is None:
            self._close()
        assert self._items is not None
        return self._items

    def terminals(self) -> list[_Item]:
        """The items that a byte or a token could move."""
        self.items()
        return self._terminals

    def waiting_for(self, node: _Node) -> list[_Item]:
        """For each item that `node` may follow: the item after it."""
        self.items()
        return self._waiting.get(node, [])

    def _close(self) -> None:
        items: set[_Item] = set()
        todo: list[_Item] = []
        empty_here: set[_Node] = set()

        def add(item: _Item) -> None:
            if item not in items:
                items.add(item)
                todo.append(item)

        for item in self.kernel:
            add(item)
        if self._root is not None:
            add((self._root.start, self))
        while todo:
            position, origin = todo.pop()
            if position.is_terminal:
                self._terminals.append((position, origin))
            if position.is_final:
                if origin is self:
                    empty_here.add(position.node)
                    followers = self._waiting.get(position.node, [])
                else:
                    followers = origin.waiting_for(position.node)
                for follower in followers:
                    add(follower)
            for child, position_after in position.calls:
                after = (position_after, origin)
                self._waiting.setdefault(child, []).append(after)
                add((child.start, self))
                if child in empty_here:
                    add(after)
        self._items = items


class Recognizer:
    """Answers questions about the language of one grammar, byte by byte or token by token."""

    def __init__(self, grammar: ir.Grammar) -> None:
        self._nodes: list[_Node] = []
        self._root = self._build(grammar)
        self._trim()
        self._start = State([], self._root) if self._root.productive else State([])

    @property
    def is_empty(self) -> bool:
        """Whether no byte string belongs to the language (token terminals counted as matchable)."""
        return not self._root.productive

    def matches(self, data: bytes) -> bool:
        """Whether `data` belongs to the language."""
        state = self.walk(data)
        return state is not None and self.may_end(state)

    def is_prefix(self, data: bytes) -> bool:
        """Whether `data` can be extended to a member of the language, or is one."""
        return not self.is_empty and self.walk(data) is not None

    def walk(self, data: bytes) -> State | None:
        """The state after `data`, or None where it leaves the language."""
        state: State | None = self.start()
        for byte in data:
            assert state is not None
            state = self.step_byte(state, byte)
            if state is None:
                return None
        return state

    def start(self) -> State:
        """The state before any byte; of an empty language it has no way on."""
        return self._start

    def may_end(self, state: State) -> bool:
        """Whether the text up to `state` belongs to the language."""
        return any(
            position.is_final and position.node is self._root and origin is self._start
            for position, origin in state.items()
        )

    def step_byte(self, state: State, byte: int) -> State | None:
        """The state after one more byte, or None where no member of the language goes on with it."""
        kernel = []
        for position, origin in state.terminals():
            after = position.step(byte)
            if after is not None:
                kernel.append((after, origin))
        return State(kernel) if kernel else None

    def step_token_terminal(self, state: State, token: int, is_text: bool) -> State | None:
        """The state after the token terminals that match `token`; the caller has excluded EOS and NEVER tokens."""
        kernel = []
        for position, origin in state.terminals():
            expression = position.node.expression
            if not isinstance(expression, ir.TokenSet) or position.is_final:
                continue
            if (is_text and token not in expression.ids) if expression.excluded else token in expression.ids:
                kernel.append((position.node.position(1), origin))
        return State(kernel) if kernel else None

    def allowed_bytes(self, state: State) -> list[int]:
        """The bytes that `step_byte` accepts, ascending."""
        return [byte for byte in range(256) if self.step_byte(state, byte) is not None]

    def accept(self, state: State, token: int, vocabulary: Vocabulary) -> State | None:
        """The state after one more token, or None where it is illegal. An EOS token leads to a terminated state."""
        return self._accept(state, token, vocabulary, {b"": state})

    def legal_tokens(self, state: State, vocabulary: Vocabulary) -> set[int]:
        """Every token that `accept` accepts."""
        walked: dict[bytes, State | None] = {b"": state}
        return {
            token
            for token in range(vocabulary.num_tokens)
            if self._accept(state, token, vocabulary, walked) is not None
        }

    def _accept(
        self, state: State, token: int, vocabulary: Vocabulary, walked: dict[bytes, State | None]
    ) -> State | None:
        if state.is_terminated or not 0 <= token < vocabulary.num_tokens:
            return None
        token_class = TokenClass(int(vocabulary.classes[token]))
        if token_class is TokenClass.NEVER:
            return None
        if token_class is TokenClass.EOS:
            if not self.may_end(state):
                return None
            terminated = State([])
            terminated.is_terminated = True
            return terminated
        is_text = token_class is TokenClass.TEXT
        data = vocabulary.token_bytes[token]
        by_bytes = self._walk_memoised(data, walked) if is_text and data else None
        by_terminal = self.step_token_terminal(state, token, is_text)
        if by_bytes is None or by_terminal is None:
            return by_bytes or by_terminal
        return State((*by_bytes.kernel, *by_terminal.kernel))

    def _walk_memoised(self, data: bytes, walked: dict[bytes, State | None]) -> State | None:
        for end in range(1, len(data) + 1):
            prefix = data[:end]
            if prefix not in walked:
                before = walked[data[: end - 1]]
                assert before is not None
                walked[prefix] = self.step_byte(before, data[end - 1])
            if walked[prefix] is None:
                return None
        return walked[data]

    def _build(self, grammar: ir.Grammar) -> _Node:
        rules = [_Node(None) for _ in grammar.rules]
        self._nodes.extend(rules)
        nodes_by_identity: dict[int, _Node] = {}
        todo: list[_Node] = []

        def node_of(expression: ir.Expression) -> _Node:
            if isinstance(expression, ir.RuleReference):
                return rules[expression.index]
            node = nodes_by_identity.get(id(expression))
            if node is None:
                node = nodes_by_identity[id(expression)] = _Node(expression)
                self._nodes.append(node)
                todo.append(node)
            return node

        for node, rule in zip(rules, grammar.rules, strict=True):
            node.children = [node_of(rule.body)]
        while todo:
            node = todo.pop()
            match node.expression:
                case ir.Sequence(items):
                    node.children = [node_of(item) for item in items]
                case ir.Choice(options):
                    node.children = [node_of(option) for option in options]
                case ir.Repeat(body, _, _):
                    node.children = [node_of(body)]
        return rules[grammar.root]

    def _trim(self) -> None:
        """Marks the nodes that derive something; the others are never predicted."""
        for node in self._nodes:
            if isinstance(node.expression, ir.Automaton):
                node.live_states = _live_states(node.expression)
        changed = True
        while changed:
            changed = False
            for node in reversed(self._nodes):
                if not node.productive and _derives_something(node):
                    node.productive = changed = True


def _derives_something(node: _Node) -> bool:
    match node.expression:
        case ir.Literal():
            return True
        case ir.CharacterClass(ranges):
            return len(ranges) > 0
        case ir.ByteRange(low, high):
            return low <= high
        case ir.Sequence():
            return all(child.productive for child in node.children)
        case ir.Repeat(_, minimum, maximum):
            if maximum is not None and maximum < minimum:
                return False
            return minimum == 0 or node.children[0].productive
        case ir.TokenSet(ids, excluded):
            return excluded or len(ids) > 0
        case ir.Automaton():
            return 0 in node.live_states
        case _:
            return any(child.productive for child in node.children)


def _live_states(automaton: ir.Automaton) -> frozenset[int]:
    """The states from which an accepting state can be reached."""
    live = set(automaton.accepting)
    while True:
        more = {source for source, low, high, target in automaton.edges if target in live and low <= high} - live
        if not more:
            return frozenset(live)
        live |= more
