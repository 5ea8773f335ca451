"""The colours of neighbours in the stack differ, also for colour-blind eyes, in light and dark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from facts import BETWEEN_RANKS, CATEGORIES

STYLE = Path(__file__).resolve().parents[2] / "web" / "page.css"
STACK = ["outside", "nccl", *CATEGORIES, *BETWEEN_RANKS, "rounding", "cached"]

# What is left of red, green and blue for an eye without one kind of cones (Machado, Oliveira and
# Fernandes 2009, severity 1.0), in linear light.
EYES = {
    "usual": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}

Colour = tuple[float, ...]


def palette(theme: str) -> dict[str, Colour]:
    """The colours of a theme in linear light."""
    blocks = {"light": r":root \{(.*?)\n\}", "dark": r':root\[data-theme="dark"\] \{(.*?)\n\}'}
    found = re.search(blocks[theme], STYLE.read_text(), re.DOTALL)
    assert found is not None
    pairs = re.findall(r"--([\w-]+): #([0-9a-f]{6});", found[1])
    return {
        name: tuple(linear(int(hex_[at : at + 2], 16)) for at in (0, 2, 4)) for name, hex_ in pairs
    }


def linear(value: int) -> float:
    share = value / 255
    return share / 12.92 if share <= 0.04045 else float(((share + 0.055) / 1.055) ** 2.4)


def seen(colour: Colour, eye: str) -> Colour:
    """The colour in CIELAB, as that eye sees it."""
    red, green, blue = (
        min(1.0, max(0.0, sum(share * light for share, light in zip(row, colour))))
        for row in EYES[eye]
    )
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883
    fx, fy, fz = (
        float(each ** (1 / 3)) if each > 0.008856 else 7.787 * each + 16 / 116 for each in (x, y, z)
    )
    return (116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz))


def distance(one: Colour, other: Colour) -> float:
    return float(sum((a - b) ** 2 for a, b in zip(one, other)) ** 0.5)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("eye", list(EYES))
def test_neighbours_in_the_stack_can_be_told_apart(theme: str, eye: str) -> None:
    colours = palette(theme)
    for below, above in zip(STACK, STACK[1:]):
        apart = distance(seen(colours[below], eye), seen(colours[above], eye))
        assert apart > 25, (below, above, round(apart, 1))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("eye", list(EYES))
def test_no_two_categories_look_the_same(theme: str, eye: str) -> None:
    colours = palette(theme)
    for at, one in enumerate(STACK):
        for other in STACK[at + 1 :]:
            apart = distance(seen(colours[one], eye), seen(colours[other], eye))
            assert apart > 14, (one, other, round(apart, 1))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("text", ["ink", "soft", "accent", "good", "bad"])
def test_text_has_the_contrast_that_the_wcag_ask_for(theme: str, text: str) -> None:
    colours = palette(theme)

    def luminance(name: str) -> float:
        red, green, blue = colours[name]
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    for ground in ("paper", "ground"):
        low, high = sorted([luminance(text), luminance(ground)])
        assert (high + 0.05) / (low + 0.05) >= 4.5, ground
