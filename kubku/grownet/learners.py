"""GrowNet asked questions: three learners. Answering is an extension of ours.

The reference grows slots but has nothing that reads them out. These readouts add as little as
possible, and doubt is always the same thing in them: the event of a question falls where no slot
is. `grownet_lookup` holds facts, `grownet_vote` counts labels in the slots of an ensemble that
sees statements through fixed random projections, and `grownet_two_layer` recalls the facts of a
sample and puts them before an ensemble that was grown on other samples and holds their rules.

The ensembles are n-tuple classifiers (Bledsoe and Browning, 1959; WISARD: Aleksander et al., 1984)
whose memories grow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from evidence.answers import Answer
from evidence.runtime.devices import for_each
from kubku.base_states import withheld
from kubku.grownet import growth, memory
from kubku.grownet.growth import Layer, LayerRule
from kubku.grownet.memory import Memory
from kubku.grownet.region import windows
from kubku.grownet.slots import SlotRule
from kubku.halo import (
    ATTRIBUTES,
    BASE,
    DERIVED,
    ENTITIES,
    ENTITY_CODE,
    FEATURES,
    TEMPLATES,
    VALUES,
    Learner,
    Sample,
    Samples,
    Statement,
)

_DOUBT = np.eye(3, dtype=np.float32)[Answer.UNKNOWN]


def opinion(votes: Array, familiar: Array, weight: Array) -> Array:
    """The linear opinion pool (Stone, 1961) of an ensemble.

    A neuron that knows the event says what share of its slot's votes each answer got; one that
    doesn't says UNKNOWN, and so does a pool without a member.

    Args:
      votes: f32[N, 3], votes in the slot that each neuron sorts the event into.
      familiar: bool[N], whether that slot is the event's own.
      weight: f32[N], not negative.

    Returns:
      f32[3], scores that sum to 1.
    """
    cast = votes.sum(-1, keepdims=True)
    counted = familiar[:, None] & (cast > 0)
    said = jnp.where(counted, votes / jnp.maximum(cast, 1e-9), _DOUBT)
    total = weight.sum()
    return jnp.where(total > 0, weight @ said / jnp.maximum(total, 1e-9), _DOUBT)


def _passes(steps: Array, once, state):
    """`once` applied to the state `steps` times."""
    return lax.fori_loop(0, steps, lambda _, state: once(state), state)


def _in_order(samples: Samples, key: Array | None) -> Samples:
    """Samples in an order that the key decides: for what is grown, the seed is what came first."""
    if key is None:
        return samples
    order = jax.random.permutation(key, samples.label.shape[0])
    return jax.tree.map(lambda leaf: leaf[order], samples)


# --- lookup


class LookupState(NamedTuple):
    """`grownet_lookup`'s state.

    Attributes:
      memory: the facts stated.
      steps: i32[], passes over a sample.
    """

    memory: Memory
    steps: Array


def _remember_all(memory_: Memory, sample: Sample) -> Memory:
    """Take in a sample's facts. Contrasts add nothing to what single-valued attributes imply."""
    stated = sample.shown & (sample.label == Answer.YES)

    def tick(held: Memory, item: tuple[Statement, Array]):
        return memory.remember(held, *item), None

    return lax.scan(tick, memory_, (sample.exposure, stated))[0]


def _look_up(memory_: Memory, query: Statement) -> tuple[Array, Array]:
    """Scores f32[3], and the recalled frame f32[ATTRIBUTES, VALUES] that they come from."""
    frame = memory.recall(memory_, query.entity)
    strengths = frame[query.attribute]
    total = strengths.sum()
    yes = strengths[query.value] / jnp.maximum(total, 1e-9)
    return jnp.where(total > 0, jnp.stack([1 - yes, 0.0, yes]), _DOUBT), frame


def grownet_lookup(entities: int = ENTITIES) -> Learner:
    """A memory of facts alone: the value held is YES, another value of that attribute NO.

    Where values of different samples contradict each other, the scores are their strengths' shares.

    Args:
      entities: how many entities there is room for.
    """

    def init(key: Array) -> LookupState:
        return LookupState(memory.empty(entities), jnp.int32(1))

    def learn(state: LookupState, sample: Sample) -> LookupState:
        held = _passes(state.steps, lambda held: _remember_all(held, sample), state.memory)
        return state._replace(memory=held)

    def answer(state: LookupState, query: Statement) -> Array:
        return _look_up(state.memory, query)[0]

    return Learner(init, learn, answer, {"empty": None}, chunk=8)


# --- vote


class VoteState(NamedTuple):
    """`grownet_vote`'s state.

    Attributes:
      projection: f32[N, FEATURES], what each neuron sums of a statement; an attribute whose weight
        is 0 doesn't reach the neuron at all.
      layer: N neurons of S slots.
      votes: f32[N, S, 3], labels heard in each slot.
      gain: f32[], votes that an exposure casts; what a base state was grown on cast 1 each.
      steps: i32[], passes over a sample.
    """

    projection: Array
    layer: Layer
    votes: Array
    gain: Array
    steps: Array


# Which weights of a projection belong to what in `halo.features`. A template's are zero: questions
# are worded in templates that no statement uses.
_OF_TEMPLATE = slice(0, TEMPLATES)
_OF_ENTITY = slice(TEMPLATES, TEMPLATES + ENTITY_CODE.shape[1])
_OF_ATTRIBUTE = slice(_OF_ENTITY.stop, _OF_ENTITY.stop + ATTRIBUTES)
_OF_VALUE = slice(_OF_ATTRIBUTE.stop, FEATURES)


def grownet_vote(
    neurons: int = 64,
    initial: int = 48,
    slots: int = 16,
    bin_width: float = 3.0,
    density: float = 0.25,
) -> Learner:
    """Label counts in the slots of an ensemble that sees statements through random projections.

    Neuron n is driven by 1 + p_n . f: percent bins need an anchor away from zero, and the sum over
    features is ours, since the reference has no summation. It can affirm and deny what it was
    shown; a value that it was never shown is novel to it, even of an attribute that it knows.

    Args:
      neurons: room for neurons (N).
      initial: neurons at the start; the others grow.
      slots: room for slots in each (S).
      bin_width: percent of a neuron's first drive that a bin spans.
      density: share of the attributes that reach a neuron.
    """
    rule = LayerRule(SlotRule(slots, (bin_width,)), capacity=neurons, initial=initial)
    rows = jnp.arange(neurons)

    def init(key: Array) -> VoteState:
        weights, reach = jax.random.split(key)
        projection = 0.1 * jax.random.normal(weights, (neurons, FEATURES))
        projection = projection.at[:, _OF_TEMPLATE].set(0.0)
        reaches = jax.random.bernoulli(reach, density, (neurons, ATTRIBUTES))
        projection = projection.at[:, _OF_ATTRIBUTE].multiply(reaches)
        votes = jnp.zeros((neurons, slots, 3))
        return VoteState(projection, growth.empty(rule), votes, jnp.float32(1), jnp.int32(1))

    def drive(state: VoteState, statement: Statement) -> tuple[Array, Array]:
        """What reaches each neuron, f32[..., N], and whether anything does."""
        # 1 + p . features(statement); one-hot features make the product a sum of three rows.
        weights = state.projection.T
        entity = (jnp.asarray(ENTITY_CODE) @ weights[_OF_ENTITY])[statement.entity]
        attribute = weights[_OF_ATTRIBUTE][statement.attribute]
        value = weights[_OF_VALUE][statement.attribute * VALUES + statement.value]
        return 1 + entity + attribute + value, attribute != 0

    def cast(state: VoteState, statements: Statement, labels: Array, votes: Array) -> VoteState:
        """Present statements one after the other (leaves [T]); `votes` f32[T], 0 to skip one."""

        def tick(carry: tuple[Layer, Array], event: tuple[Array, ...]):
            layer, counts = carry
            drives, reached, label, vote = event
            driven = reached & (vote > 0)
            layer, response = growth.present(layer, drives, drives[:, None], rule, driven=driven)
            counts = counts.at[rows, response.slot, label].add(vote * response.landed)
            return (growth.end_tick(layer), counts), None

        events = (*drive(state, statements), labels, votes)
        (layer, counts), _ = lax.scan(tick, (state.layer, state.votes), events)
        return state._replace(layer=layer, votes=counts)

    def learn(state: VoteState, sample: Sample) -> VoteState:
        votes = state.gain * sample.shown

        def once(changed: VoteState) -> VoteState:
            return cast(changed, sample.exposure, sample.label, votes)

        return _passes(state.steps, once, state)

    def answer(state: VoteState, query: Statement) -> Array:
        drives, reached = drive(state, query)
        response = growth.probe(state.layer, drives, drives[:, None], rule)
        votes = state.votes[rows, response.slot]
        listening = reached & (rows < state.layer.active)
        return opinion(votes, response.familiar, listening.astype(jnp.float32))

    @jax.jit
    def grow(state: VoteState, samples: Samples, key: Array | None) -> VoteState:
        samples = _in_order(samples, key)
        used = samples.asked & ~withheld(samples)

        def one(state: VoteState, item: tuple[Samples, Array]):
            sample, votes = item
            return cast(state, sample.query, sample.gold, votes), None

        return lax.scan(one, state, (samples, used.astype(jnp.float32)))[0]

    trials = tuple({"gain": float(8**power)} for power in range(8))
    return Learner(init, learn, answer, {"empty": None, "grown": grow}, trials, chunk=64)


# --- two layers


class TwoLayerState(NamedTuple):
    """`grownet_two_layer`'s state. A question is a (derived attribute, value): M = 2 DERIVED.

    Attributes:
      memory: the facts stated; all that learning a sample changes.
      readers: layers with leading [M, P]: for each question and each of P sets of attributes one,
        of neurons that share a memory (`growth.listen`) of the values recalled.
      votes: f32[M, P, N, S, 3], answers that were right when those values were recalled.
      right: f32[M, P], times that a reader foresaw the answer before it was told.
      told: f32[M], answers told.
      focus: f32[], how much more a reader is trusted that was right more often.
      steps: i32[], passes over a sample.
    """

    memory: Memory
    readers: Layer
    votes: Array
    right: Array
    told: Array
    focus: Array
    steps: Array


QUESTIONS = 2 * DERIVED


def grownet_two_layer(
    entities: int = ENTITIES,
    neurons: int = 6,
    slots: int = 16,
    reach: int = 2,
    canvas: tuple[int, int] | None = None,
    novelty: bool = True,
    told_unknown: bool = True,
) -> Learner:
    """Recalls facts as `grownet_lookup` does, and judges what can't be stated by grown readers.

    A reader looks at two attributes in the frame that the memory recalls; there is one for every
    pair. The values that it finds, one of which may be 'nothing recalled', are the place of an
    event in an ORIGIN layer, and a slot counts the answers that were right there. A place without
    a slot is novel, and that reader says UNKNOWN. Readers that foresaw more answers while they
    grew weigh more.

    What was recalled answers itself, and somebody whom the memory doesn't recognise is unknown.

    Args:
      entities: how many entities there is room for.
      neurons: room for neurons in each reader; it starts with one, and with room for no more it
        doesn't grow. Two attributes have up to 81 places, which 6 neurons of 16 slots hold.
      slots: room for slots in each neuron.
      reach: attributes that a reader looks at, 1 or 2. With 2 some reader sees all that a rule of
        two conditions depends on.
      canvas: (rows, columns) of a family laid out in space, whose readers of two look at
        cells that touch, see `_within_windows`; by default at any two attributes.
      novelty: whether a reader that finds no slot says UNKNOWN, or nothing.
      told_unknown: whether readers, while they grow, are also told of questions whose answer is
        UNKNOWN; if not, a place without a slot is all that makes them say so.
    """
    rule = LayerRule(
        SlotRule(slots, (100.0, 100.0), anchor="origin", spatial=True), neurons, 1, patience=1
    )
    if reach not in (1, 2):
        raise ValueError(f"reach={reach}: a place has two axes, so a reader can look at 1 or 2")
    if canvas is not None and reach != 2:
        raise ValueError(f"reach={reach}: with a canvas readers look at 2 attributes")
    # i32[P, 2]; an attribute beside itself is a reader of that attribute alone.
    if canvas is not None:
        attributes = _within_windows(canvas)
    else:
        pairs = np.triu_indices(BASE) if reach == 2 else [np.arange(BASE)] * 2
        attributes = np.stack(pairs, axis=-1)
    each, rows = np.arange(len(attributes)), np.arange(neurons)

    def init(key: Array) -> TwoLayerState:
        sizes = (QUESTIONS, len(attributes))
        readers = jax.tree.map(lambda x: jnp.broadcast_to(x, sizes + x.shape), growth.empty(rule))
        return TwoLayerState(
            memory=memory.empty(entities),
            readers=readers,
            votes=jnp.zeros((*sizes, neurons, slots, 3)),
            right=jnp.zeros(sizes),
            told=jnp.zeros(QUESTIONS),
            focus=jnp.float32(32),
            steps=jnp.int32(1),
        )

    def learn(state: TwoLayerState, sample: Sample) -> TwoLayerState:
        held = _passes(state.steps, lambda held: _remember_all(held, sample), state.memory)
        return state._replace(memory=held)

    def places(frame: Array) -> Array:
        """Where the recalled frame puts each reader's event, f32[P, 2]: 0 or 1 + value."""
        held = frame[:BASE]
        found = jnp.where(held.any(-1), 1 + jnp.argmax(held, -1), 0)
        return found[attributes].astype(jnp.float32)

    def find(reader: Layer, place: Array) -> tuple[Array, Array, Array]:
        """Neuron and slot of a place in one reader, and whether it has any."""
        everywhere = jnp.broadcast_to(place, (neurons, 2))
        response = growth.probe(reader, jnp.ones(neurons), everywhere, rule)
        row = jnp.argmax(response.familiar)
        return row, response.slot[row], response.familiar[row]

    def judge(state: TwoLayerState, question: Array, frame: Array) -> Array:
        """Scores f32[3] of a question i32[] before a recalled frame."""
        readers = jax.tree.map(lambda leaf: leaf[question], state.readers)
        row, slot, familiar = jax.vmap(find)(readers, places(frame))
        record = state.right[question] / jnp.maximum(state.told[question], 1)
        weight = jnp.exp(state.focus * (record - record.max()))
        if not novelty:
            weight *= familiar
        return opinion(state.votes[question, each, row, slot], familiar, weight)

    def answer(state: TwoLayerState, query: Statement) -> Array:
        recalled, frame = _look_up(state.memory, query)
        question = _question(query)
        judged = judge(state, jnp.maximum(question, 0), frame)
        return jnp.where((question >= 0) & frame.any(), judged, recalled)

    def tell(carry: tuple[Layer, Array, Array], event: tuple[Array, Array]):
        """Each reader of one question foresees an answer, then is told it."""
        readers, votes, right = carry
        place, gold = event
        row, slot, familiar = jax.vmap(find)(readers, place)
        foreseen = jnp.argmax(votes[each, row, slot], -1)
        foreseen = jnp.where(familiar, foreseen, int(Answer.UNKNOWN))
        readers, heard = jax.vmap(lambda r, p: growth.listen(r, jnp.float32(1), p, rule))(
            readers, place
        )
        votes = votes.at[each[:, None], rows, heard.slot, gold].add(heard.landed)
        return jax.vmap(growth.end_tick)(readers), votes, right + (foreseen == gold)

    @jax.jit
    def grow(state: TwoLayerState, samples: Samples, key: Array | None) -> TwoLayerState:
        samples = _in_order(samples, key)

        def recalled(sample: Sample) -> Array:
            held = _remember_all(memory.empty(1), sample)
            return memory.recall(held, sample.exposure.entity[0])

        frames = lax.map(recalled, samples, batch_size=256)
        asked = samples.asked & ~withheld(samples)
        if not told_unknown:
            asked &= samples.gold != int(Answer.UNKNOWN)
        question = jnp.where(asked, _question(samples.query), -1)

        def one(events: tuple[Array, ...]):
            """All samples that ask one question, in order."""
            number, *carry = events
            asks = question == number  # at most once in a sample
            gold = jnp.where(asks, samples.gold, 0).max(-1)

            def tick(carry, item):
                frame, gold, told = item
                event = places(frame), gold
                return lax.cond(told, tell, lambda same, _: same, carry, event), None

            return lax.scan(tick, tuple(carry), (frames, gold, asks.any(-1)))[0], asks.sum()

        carry = state.readers, state.votes, state.right
        (readers, votes, right), told = for_each(one, (jnp.arange(QUESTIONS), *carry))
        return state._replace(readers=readers, votes=votes, right=right, told=state.told + told)

    trials = tuple({"focus": float(4**power)} for power in range(8))
    return Learner(init, learn, answer, {"empty": None, "grown": grow}, trials, chunk=8)


def _within_windows(canvas: tuple[int, int]) -> np.ndarray:
    """What readers look at where a grid feeds them, i32[P, 2]: two cells that the core's windowed
    wiring would carry to one centre, or one attribute alone (beside itself).

    Args:
      canvas: (rows, columns) of the first attributes; a window is 2 x 2, or as much of it as fits.
    """
    rows, columns = canvas
    reaches = windows(canvas, (min(rows, 2), min(columns, 2))).astype(int)
    together = np.argwhere(np.triu(reaches @ reaches.T, 1))
    alone = np.stack([np.arange(BASE)] * 2, axis=-1)
    return np.concatenate([alone, together])


def grownet_windowed(canvas: tuple[int, int]) -> Learner:
    """`grownet_two_layer` whose readers of two look at cells that touch alone: an ablation."""
    return _grown_alone(grownet_two_layer(canvas=canvas))


def grownet_without_novelty() -> Learner:
    """`grownet_two_layer` whose readers say nothing where they find no slot: an ablation."""
    return _grown_alone(grownet_two_layer(novelty=False))


def grownet_never_told_unknown() -> Learner:
    """`grownet_two_layer` grown on settled questions alone, so that its readers say UNKNOWN for
    novelty and nothing else: an ablation.
    """
    return _grown_alone(grownet_two_layer(told_unknown=False))


def grownet_no_growth() -> Learner:
    """`grownet_two_layer` whose readers never grow a neuron: an ablation."""
    return _grown_alone(grownet_two_layer(neurons=1))


def grownet_one_attribute() -> Learner:
    """`grownet_two_layer` whose readers look at one attribute each: an ablation."""
    return _grown_alone(grownet_two_layer(reach=1))


def grownet_unweighted() -> Learner:
    """`grownet_two_layer` whose readers weigh alike, whatever their record: an ablation."""
    return _grown_alone(grownet_two_layer())._replace(trials=({"focus": 0.0},))


def _grown_alone(learner: Learner) -> Learner:
    return learner._replace(bases={"grown": learner.bases["grown"]})


def _question(query: Statement) -> Array:
    """Which of the QUESTIONS a query asks; -1 if it asks about what can be stated."""
    derived = (query.attribute >= BASE) & (query.value < 2)
    return jnp.where(derived, 2 * (query.attribute - BASE) + query.value, -1)


# --- growth over time


class History(NamedTuple):
    """How a base state grew; T points in time, and the axes of the state's layers after it.

    Attributes:
      samples: i32[T], samples of the pretraining split heard so far.
      neurons: i32[T, ...], neurons in use.
      slots: i32[T, ...], slots that exist in them.
    """

    samples: Array
    neurons: Array
    slots: Array


def growth_history(
    learner: Learner,
    state: VoteState | TwoLayerState,
    samples: Samples,
    key: Array | None,
    parts: int,
) -> tuple[History, VoteState | TwoLayerState]:
    """Make the base state `grown` in instalments, and count what has grown before and after each.

    Most grows at once, so the first part is cut finer: after 1, 2, 4, 8 samples and so on.

    Args:
      learner: one with a base state `grown`.
      state: its state before.
      samples: the pretraining split, [N, ...] leaves; N a multiple of `parts`.
      key: as for `learner.bases["grown"]`: decides the order; None keeps the samples' own.
      parts: into how many of one size the samples are cut.

    Returns:
      The history, and the state grown, which is what growing at once would have made.
    """
    grow: Any = learner.bases["grown"]
    size, rest = divmod(samples.label.shape[0], parts)
    if rest:
        raise ValueError(f"parts={parts}: {samples.label.shape[0]} samples can't be shared out")
    samples = _in_order(samples, key)
    heard = [0, *(2**power for power in range(size.bit_length()) if 2**power < size)]
    heard += [size * part for part in range(1, parts + 1)]
    counts = []
    for start, end in zip([0, *heard], heard, strict=False):
        # One program for all: what was heard before, or will be later, asks nothing.
        first = start // size * size
        part = jax.tree.map(lambda leaf, at=first: leaf[at : at + size], samples)
        now = (jnp.arange(size) >= start - first) & (jnp.arange(size) < end - first)
        if end > start:
            state = grow(state, part._replace(asked=part.asked & now[:, None]), None)
        layer = state.layer if isinstance(state, VoteState) else state.readers
        counts.append((layer.active, layer.neurons.used.sum(-1)))
    neurons, used = zip(*counts, strict=True)
    return History(jnp.array(heard), jnp.stack(neurons), jnp.stack(used)), state
