"""LIKE and CONTAINS take time linear in the text, whatever the text and the pattern share."""

import random
import time

import pytest

from pyengine import Selector

TEXT, PART = 400_000, 20_000


@pytest.mark.parametrize("letter", ["a", "ä", "文", "😀"])
def test_a_long_repetition_is_searched_in_linear_time(letter: str) -> None:
    """A search that starts anew at each character makes 8,000,000,000 steps."""
    text = letter * TEXT
    for part, found in (
        (letter * PART + "b", False),
        (letter * (PART // 2) + "b" + letter * 99, False),
        (letter * PART, True),
    ):
        start = time.process_time()
        assert Selector(f"a CONTAINS '{part}'", dialect="rocketmq").matches({"a": text}) is found
        assert Selector(f"a LIKE '%{part}%'").matches({"a": text}) is found
        assert time.process_time() - start < 1.5


@pytest.mark.parametrize("letters", ["ab", "aä", "a文", "a😀", "ä文😀"])
def test_finds_what_python_finds(letters: str) -> None:
    """Short and long parts of texts of few letters, whose borders are many."""
    draw = random.Random(letters)
    for _ in range(300):
        text = "".join(draw.choices(letters, k=draw.randrange(200)))
        part = "".join(draw.choices(letters, k=draw.choice([1, 2, 3, 5, 70])))
        if draw.random() < 0.7 and text:
            start = draw.randrange(len(text))
            part = text[start : start + draw.randrange(1, 120)]
        assert Selector(f"a CONTAINS '{part}'", dialect="rocketmq").matches({"a": text}) is (part in text)
        assert Selector(f"a LIKE '%{part}%'").matches({"a": text}) is (part in text)
        before, _, after = part.partition(part[len(part) // 2])
        pieces = [each for each in (before, after) if each]
        place, found = 0, True
        for piece in pieces:
            place = text.find(piece, place)
            found = found and place >= 0
            place += len(piece)
        assert Selector(f"a LIKE '%{'%'.join(pieces)}%'").matches({"a": text}) is found
