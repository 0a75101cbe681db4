"""Frames, the eye that grows before them, and what each of GrowNet's ideas does to its answers."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evidence.answers import Answer
from kubku import protocol
from kubku.base_states import Training
from kubku.grownet import eye, growth, readers, slots
from kubku.grownet.eye import Switches
from kubku.grownet.growth import LayerRule
from kubku.grownet.history import growth_history
from kubku.grownet.slots import SlotRule
from kubku.halo import BASE, DARK, FRAME, LIT, Statement, decide, features, token_features, veiled
from kubku.learners import patterns, registry
from kubku.tasks import FAMILIES, generate, pictures

NO, UNKNOWN, YES = (int(answer) for answer in (Answer.NO, Answer.UNKNOWN, Answer.YES))
FRAMES = FAMILIES["frames"]
ON = Switches(*(jnp.bool_(True) for _ in Switches._fields))
grow, see = jax.jit(eye.grow), jax.jit(jax.vmap(eye.see, (None, None, 0)))


def picture(*lit):
    """A frame without noise of the lit pixels, by row and column."""
    grey = np.full(FRAME, DARK)
    grey[tuple(np.array(lit).T)] = LIT
    return np.round(255 * grey).astype(np.uint8)


# Two cues above, two patterns below for each; every pixel is lit in one of them at most.
CUES = [[(0, 0), (1, 2), (2, 4), (3, 6)], [(0, 1), (1, 3), (2, 5), (3, 7)]]
PATTERNS = [[(4, 0), (5, 2), (6, 4), (7, 6)], [(4, 1), (5, 3), (6, 5), (7, 7)]]
NOVEL = [(0, 2), (1, 4), (2, 6), (3, 0)]
SHOWN = np.stack([picture(*cue, *pattern) for cue in CUES for pattern in PATTERNS])


@pytest.fixture(scope="module")
def opened():
    """An eye that saw the four frames in turn, 512 in all."""
    return grow(eye.blank(), ON, jnp.asarray(np.tile(SHOWN, (128, 1, 1))))


def test_an_eye_grows_a_neuron_for_each_pattern_and_knows_no_other(opened):
    assert opened.upper.any(-1).sum() == 2
    assert opened.lower.any(-1).sum(-1).tolist()[:3] == [2, 2, 0]
    # Each neuron has slots where its pattern is lit, and nowhere else.
    lit = (SHOWN.reshape(4, -1) > 128)[[0, 2], :]
    halves = np.where(np.arange(64) < 32, lit, False)
    np.testing.assert_array_equal(np.asarray(opened.upper[:2]) > 0, halves)
    seen = see(opened, ON, jnp.asarray(SHOWN))
    assert seen.known.all()
    assert seen.upper.tolist() == [0, 0, 1, 1] and seen.lower.tolist() == [0, 1, 0, 1]
    strange = np.stack([picture(*NOVEL, *PATTERNS[0]), picture(*CUES[0]), picture()])
    assert not see(opened, ON, jnp.asarray(strange)).known.any()


def test_a_pixel_missed_and_one_astray_are_forgiven_by_hand(opened):
    """Three of four slots and one event elsewhere: a cosine of 3 / (2 * 2), above the vigilance;
    one slot of four: 1 / (2 * 1) as a single event, 1 / (2 * 2) among four, below it.
    """
    near = picture(*CUES[0][:3], (3, 3), *PATTERNS[0])
    far = picture(CUES[0][0], *NOVEL[1:], *PATTERNS[0])
    assert see(opened, ON, jnp.asarray(np.stack([near, far]))).known.tolist() == [True, False]


@pytest.mark.parametrize("off", ["homeostasis", "growth"])
def test_an_eye_that_cannot_adapt_or_grow_confuses_or_misses_patterns(off):
    off = ON._replace(**{off: jnp.bool_(False)})
    seen = see(grow(eye.blank(), off, jnp.asarray(np.tile(SHOWN, (128, 1, 1)))), off, SHOWN)
    told_apart = len(set(zip(seen.upper.tolist(), seen.lower.tolist(), strict=True)))
    assert told_apart < 4 or not seen.known.all()


def test_strength_by_hits_is_what_the_core_makes_of_them():
    neuron, rule = slots.empty(SlotRule(limit=1)), SlotRule(limit=1)
    one = jnp.float32(1)

    def hit(neuron, _):
        choice = slots.choose(neuron, one[None], rule)
        neuron, _ = slots.imprint(neuron, choice, one, one[None], rule, 1.0)
        return neuron, neuron.strength[0]

    found = jax.lax.scan(hit, neuron, length=600)[1]
    table = slots.strengths()
    np.testing.assert_allclose(found[:255], table[1:], rtol=1e-5)
    np.testing.assert_allclose(found[255:], table[-1], rtol=1e-5)


@pytest.mark.parametrize("grows", [True, False])
def test_a_readers_table_is_a_layer_that_shares_a_memory(grows):
    """Event by event as `growth.listen` has it: what finds a slot of its own, there and then."""
    rule = LayerRule(
        SlotRule(readers.SLOTS, (100.0, 100.0), anchor="origin", spatial=True),
        readers.NEURONS if grows else 1,
        1,
        patience=1,
    )
    rng = np.random.default_rng(0)
    at = rng.integers(0, 9, (300, 2)).astype(np.float32)

    def hear(layer, place):
        layer, heard = growth.listen(layer, jnp.float32(1), place, rule)
        return growth.end_tick(layer), heard.landed.any()

    layer, landed = jax.lax.scan(hear, growth.empty(rule), jnp.asarray(at))
    held = readers.blank()
    switches = ON._replace(growth=jnp.bool_(grows))
    place = (at[:, :1] * 9 + at[:, 1:]).astype(np.int32) + np.zeros(len(readers.PAIRS), np.int32)
    zeros = jnp.zeros(300, jnp.int32)
    events = zeros, jnp.asarray(place), zeros, jnp.ones(300, bool)
    held = jax.jit(readers.tell_all)(held, switches, events)
    seen = len(set(place[:, 0].tolist()))
    assert int(held.used[0, 0]) == int(layer.neurons.used.sum()) == (seen if grows else 16)
    hits = np.bincount(place[np.asarray(landed), 0], minlength=81)
    np.testing.assert_array_equal(held.hits[0, 0, :, 0], hits)


def test_frames_are_of_what_is_stated(drawn):
    """Four pixels a cue, four a value, and the noise and distractors that are told of."""
    samples = drawn("frames", n=512)
    shapes = FRAMES.rules(jax.random.key(0)).shapes
    cues, values = np.asarray(shapes.cues, int), np.asarray(shapes.values, int)
    assert (cues.sum(-1) == 4).all() and (values.sum(-1) == 4).all()
    assert (cues @ cues.T - 4 * np.eye(len(cues), dtype=int)).max() <= 1
    assert (values.sum(1) == 1).all()
    lit = np.asarray(pictures.clean(shapes, samples.query)).reshape(*samples.gold.shape, 64)
    grey = samples.query.frame.reshape(lit.shape) / 255
    assert abs(grey[lit].mean() - LIT) < 0.02
    # Of the 56 that are dark, the distractors light two less what they share.
    assert abs(grey[~lit].mean() - (DARK + (LIT - DARK) / 32)) < 0.02
    told = drawn("stories", n=512)
    for left, right in zip(told.query[:4], samples.query[:4], strict=True):
        np.testing.assert_array_equal(left, right)


def test_nobody_but_the_oracle_can_read_what_a_frame_shows(drawn):
    """Other numbers behind the same frames change no learner's answers, and the oracle's."""
    samples = jax.tree.map(lambda leaf: leaf[:16], drawn("frames", n=512))
    hidden = veiled(samples)
    for said in (hidden.exposure, hidden.query):
        assert not said.attribute.any() and not said.value.any()
    assert not hidden.latents.any()
    turned = samples._replace(
        exposure=samples.exposure._replace(value=(samples.exposure.value + 1) % 3),
        query=samples.query._replace(attribute=(samples.query.attribute + 1) % BASE),
        latents=samples.latents * 0,
    )
    for name in ("grownet", "dictionary", "nearest_neighbour", "mlp", "generator_oracle"):
        learner = registry.make(name, FRAMES, Training(updates=1, batch=1))
        state = learner.init(jax.random.key(0))
        if name in ("grownet", "dictionary", "nearest_neighbour"):
            state = learner.bases[list(learner.bases)[-1]](state, hidden, jax.random.key(1))
        one, other = (protocol.reset_to_base(learner, state, s).after for s in (samples, turned))
        assert np.array_equal(one, other) == (name != "generator_oracle")
    unveiled = [
        name
        for name, entry in registry.LEARNERS.items()
        if entry.can_handle(FRAMES)
        and registry.make(name, FRAMES, Training(updates=1, batch=1)).unveiled
    ]
    assert unveiled == ["generator_oracle"]


def test_frames_take_the_room_of_words(drawn):
    """Networks need no other shapes for them, and every pixel is in both encodings."""
    shown, told = drawn("frames", n=512).query, drawn("stories", n=512).query
    for encode in (features, token_features):
        of_frames, of_words = encode(veiled(drawn("frames", n=512)).query), encode(told)
        assert of_frames.shape == of_words.shape
        pixels = shown.frame.reshape(-1, 64) / 255 - DARK
        rows = np.asarray(of_frames).reshape(len(pixels), -1)
        for pixel in range(0, 64, 9):
            assert (np.abs(rows - pixels[:, pixel, None]).max(0) < 1e-6).any()


def test_nearest_patterns_are_those_that_were_drawn(drawn):
    """Of clear frames: each drawn pattern has one number, and no two share it."""
    shapes = FRAMES.rules(jax.random.key(0)).shapes
    rng = np.random.default_rng(0)
    attribute, value = rng.integers(0, 8, 1600), rng.integers(0, 4, 1600)
    said = Statement(*(jnp.asarray(x) for x in (0 * value, 0 * value, attribute, value)))
    frames = pictures.frame(shapes, jax.random.key(1), said)
    book = jax.jit(patterns.fitted)(frames)
    read = patterns.read(book, said._replace(frame=frames))
    common = np.array([attribute * 8 + value, np.asarray(read[2]) * 8 + np.asarray(read[3])]).T
    own = sorted(set(common[:, 0].tolist()))
    most = [np.bincount(common[common[:, 0] == one, 1]).argmax() for one in own]
    assert len(set(most)) == 32
    right = [np.mean(common[common[:, 0] == one, 1] == m) for one, m in zip(own, most, strict=True)]
    assert min(right) > 0.9


def test_few_frames_in_instalments_grow_what_all_grow_at_once():
    """Each instalment is 4 samples, and the eye that it goes by the one that all 32 grow."""
    heard = veiled(generate(FRAMES, jax.random.key(5), 32, "pretrain"))
    learner, key = registry.grownet(True), jax.random.key(1)
    blank = learner.init(jax.random.key(0))
    at_once = learner.bases["grown"](blank, heard, key)
    history, later = growth_history(learner, blank, heard, key, parts=8)
    assert history.slots[-1].sum() == at_once.readers.used.sum() > history.slots[1].sum() > 0
    chex.assert_trees_all_equal(later.eye, at_once.eye)


ABLATED = ("homeostasis", "growth", "windows", "novelty", "strength")


def test_each_idea_moves_answers_on_frames(drawn):
    """T0 aside, which the first frame's dark ground makes idle: leaving anything out changes some
    answers at the same settings, and neither thresholds, growth nor windows can be spared.
    """
    heard = veiled(drawn("frames", "pretrain", 512))
    test = jax.tree.map(lambda leaf: leaf[:128], drawn("frames", n=512))
    said = {}
    for off in (None, *ABLATED):
        learner = registry.grownet(True, Switches(**({off: False} if off else {})))
        state = learner.bases["grown"](learner.init(jax.random.key(0)), heard, jax.random.key(1))
        scores = protocol.reset_to_base(learner, state, test).after
        said[off] = np.asarray(decide(scores, 0.5))
    right = {off: np.mean((answers == test.gold)[:, :4]) for off, answers in said.items()}
    for off in ABLATED:
        assert np.mean(said[off] != said[None]) > 0.001, off
    for off in ("homeostasis", "growth", "windows"):
        assert right[off] < right[None] - 0.2, off
