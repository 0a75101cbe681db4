import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence.answers import Answer, read

NO, UNKNOWN, YES, INVALID = Answer.NO, Answer.UNKNOWN, Answer.YES, Answer.INVALID

CONTRACT = [
    ("YES", YES),
    ("no", NO),
    (" Unknown.\n", UNKNOWN),
    ("**Yes**", YES),
    ('"NO"', NO),
    ("`UNKNOWN`", UNKNOWN),
    ("YES!", YES),
    ("\u200bYES\ufeff", YES),
    ("ＹＥＳ", YES),
    ("“No”", NO),
    ("<think>Is it yes? No, wait.</think>\nUNKNOWN", UNKNOWN),
    ('{"answer": "YES"}', YES),
    ('{"answer": "unknown", "confidence": 0.3}', UNKNOWN),
    ('```json\n{"answer": "NO", "reason": "the facts say yes elsewhere"}\n```', NO),
]

# Every one of these is misread by a search for YES, then NO, anywhere in the reply.
TRAPS = [
    ("I do not know", UNKNOWN),
    ("I don't know.", UNKNOWN),
    ("I don’t know", UNKNOWN),
    ("Cannot be determined", UNKNOWN),
    ("It can't be determined from the facts.", UNKNOWN),
    ("Not enough information", UNKNOWN),
    ("There isn't enough information to say.", UNKNOWN),
    ("I am not sure", UNKNOWN),
    ("I'm not certain about that.", UNKNOWN),
    ("Unknown. The facts do not say YES or NO.", UNKNOWN),
    ("The facts do not mention the capital.", UNKNOWN),
    ("Insufficient evidence.", UNKNOWN),
    ("No information is given about the river.", UNKNOWN),
    ("No evidence regarding this claim.", UNKNOWN),
    ("I have no idea", UNKNOWN),
    ("It is unclear.", UNKNOWN),
    ("I am unable to determine this.", UNKNOWN),
    ("UNKNOWN - nothing is said of it", UNKNOWN),
    ("NOT YES", INVALID),
    ("", INVALID),
    ("   \n", INVALID),
    ("yes or no", INVALID),
    ("YES / NO / UNKNOWN", INVALID),
    ("YES|NO", INVALID),
    ("Yes and no.", INVALID),
    ("Yes, and no.", INVALID),
    ("Yes?", INVALID),
    ("Note: Norway is north of Nottingham.", INVALID),
    ("Yesterday the river rose.", INVALID),
    ("Nobody lives there", INVALID),
    ("No-one can live there", INVALID),
    ("No river flows there", INVALID),
    ("The capital of France is Paris.", INVALID),
    ("Not unknown", INVALID),
    ("Yes, but there is not enough information.", INVALID),
    ("No. I do not know.", INVALID),
    ("The answer is not yes", INVALID),
    ("Answer: YES or NO", INVALID),
    ("Answer: no information", INVALID),
    ("Answer: YES\nAnswer: NO", INVALID),
    ("The answer is YES if the facts state it, NO if they rule it", INVALID),
    ("YES if the facts state it, NO if they do neither.", INVALID),
    ("Oui", INVALID),
    ("NO, wait, YES", INVALID),
    ("No. Hmm, actually: yes!", INVALID),
    ("Yes, no", INVALID),
    ("Yes, yes.", YES),
    ("YES. It is not NO.", YES),
    ("NO - wait. The answer is YES", YES),
    (r"\boxed{YES}", YES),
    (r"So we get $\boxed{\text{No}}$.", NO),
    (r"The answer is no. \boxed{YES}", YES),
    (r"\boxed{YES}, or rather \boxed{NO}", INVALID),
    (r"Final answer: NO. \boxed{YES}", INVALID),
    (r"\boxed{yesterday}", INVALID),
    ("Y", INVALID),
    ("TRUE", INVALID),
    ("1", INVALID),
    ("null", INVALID),
    ("<html><body>502 Bad Gateway. No server is available.</body></html>", INVALID),
    ("Yes, it is.", YES),
    ("Yes - the facts state it.", YES),
    ("No, Lyon is not the capital of France.", NO),
    ("No. Paris is; the facts say so.", NO),
    ("No because a country has one capital.", NO),
    ("YES\n\nThe first fact says so.", YES),
    ("The facts do not mention Lyon as a capital, but they name Paris.\nFinal answer: NO", NO),
    ("Is it yes or no? Let us see. It is stated. So the answer is **YES**.", YES),
    ("First I thought: answer: yes. Final answer: no.", NO),
    ("I do not know of any evidence against it, therefore yes.", YES),
    ("Step 1: no mention of Bonn.\nStep 2: one capital only.\n\nNO", NO),
    ("The answer is UNKNOWN, since nothing says yes or no.", UNKNOWN),
    ('{"answer": "maybe"}', INVALID),
    ('{"answer": true}', INVALID),
    ('{"answer": "YES"', INVALID),
    ('{"answer": "YES", "answer": "NO"}', INVALID),
    ('{"verdict": "YES"}', INVALID),
    ('["YES"]', INVALID),
    ('{"answer": ["YES", "NO"]}', INVALID),
    ('{"error": {"message": "no such model"}}', INVALID),
]


@pytest.mark.parametrize("reply, answer", CONTRACT)
def test_replies_that_keep_the_contract(reply, answer):
    reading = read(reply)
    assert reading.answer is answer
    assert reading.rule in ("word", "json")


@pytest.mark.parametrize("reply, answer", TRAPS)
def test_replies_that_do_not(reply, answer):
    assert read(reply).answer is answer


@pytest.mark.parametrize(
    "stated, kept", [("0.25", 0.25), ("1", 1.0), ("1.2", None), ("-1", None), ("true", None),
                     ('"high"', None), ("NaN", None), ("null", None)],
)  # fmt: skip
def test_a_json_confidence_is_kept_only_when_it_is_a_probability(stated, kept):
    assert read(f'{{"answer": "NO", "confidence": {stated}}}').confidence == kept


@given(st.text(max_size=300))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_without_an_exception_and_never_as_an_error(text):
    assert read(text).answer in (NO, UNKNOWN, YES, INVALID)


VERDICT = st.sampled_from(["yes", "no", "unknown"])
# Letters glued to an answer word make another word of it.
LETTERS = st.text(alphabet="abcdefghijklmnopqrstuvwxyzäéøж", min_size=1, max_size=5)


@given(VERDICT, LETTERS, LETTERS)
@settings(max_examples=300, deadline=None)
def test_an_answer_word_inside_another_word_is_not_an_answer(word, before, after):
    for glued in (before + word, word + after, before + word + after):
        if glued in ("yes", "no", "unknown"):
            continue
        assert read(glued).answer is INVALID


@given(VERDICT, st.sampled_from(["{}", " {}. ", "**{}**", "'{}'", "\n{}\n", "Answer: {}"]))
@settings(deadline=None)
def test_decoration_and_case_do_not_change_an_answer(word, frame):
    for cased in (word, word.upper(), word.title()):
        assert read(frame.format(cased)).answer.name == word.upper()


@given(VERDICT, st.floats(0, 1))
@settings(deadline=None)
def test_a_json_reply_round_trips(word, confidence):
    reading = read(json.dumps({"answer": word.upper(), "confidence": confidence}))
    assert (reading.answer.name, reading.confidence) == (word.upper(), confidence)


@pytest.mark.parametrize(
    "reply", ["no " * 100_000, "answer " * 50_000, "(" * 300_000, "{" * 300_000, "can" * 100_000,
              "whether " * 40_000, "<think>" * 40_000,
              "yes" + ", " * 100_000, r"\\boxed{" * 40_000],
)  # fmt: skip
def test_a_hostile_reply_is_read_in_linear_time(reply):
    start = time.process_time()
    read(reply)
    assert time.process_time() - start < 1.0
