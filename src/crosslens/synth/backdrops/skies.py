"""Skies over flat ground: where landmarks stand."""

from __future__ import annotations

from crosslens.synth.backdrops.backdrop import Brush, backdrop

_FLOOR = 78.0


@backdrop("blue sky", "sky", at="under a blue sky", also="on a fine day", riddle="in weather made for postcards",
          floor=_FLOOR)  # fmt: skip
def blue_sky(brush: Brush) -> None:
    """Clear, grass below."""
    brush.sky(80, (84, 158, 226), (206, 230, 246))
    brush.disc(brush.between(10, 90), brush.between(8, 18), 6, (255, 228, 120))
    brush.ground(78, (132, 176, 96), (108, 152, 78))


@backdrop("sunset", "sky", at="at sunset", also="in the evening light", riddle="while the day says goodbye",
          floor=_FLOOR)  # fmt: skip
def sunset(brush: Brush) -> None:
    """Orange towards the ground."""
    brush.sky(80, (116, 74, 140), (252, 168, 92))
    brush.disc(brush.between(20, 80), 74, 10, (255, 214, 120))
    brush.ground(78, (92, 72, 84), (66, 52, 66))


@backdrop("starry night", "sky", at="under a starry sky", also="in the middle of the night",
          riddle="while the town is asleep", floor=_FLOOR)  # fmt: skip
def starry_night(brush: Brush) -> None:
    """Stars and a moon."""
    brush.sky(80, (16, 22, 58), (52, 62, 116))
    brush.disc(brush.between(12, 88), brush.between(10, 20), 6, (246, 242, 214))
    for _ in range(44):
        brush.disc(brush.between(0, 100), brush.between(0, 70), brush.between(0.3, 0.7), (240, 240, 250))
    brush.ground(78, (44, 52, 74), (32, 38, 58))


@backdrop("cloudy sky", "sky", at="under grey clouds", also="on an overcast day", riddle="while rain makes up its mind",
          floor=_FLOOR)  # fmt: skip
def cloudy_sky(brush: Brush) -> None:
    """Heavy clouds."""
    brush.sky(80, (156, 164, 174), (206, 212, 218))
    for step in range(7):
        shade = 170 + 8 * (step % 3)
        brush.cloudlet(step * 17 + brush.between(-5, 5), brush.between(6, 26), 9, (shade, shade + 4, shade + 10))
    brush.ground(78, (126, 144, 110), (104, 122, 92))


@backdrop("rain", "sky", at="in the rain", also="in wet weather", riddle="while the gutters sing", floor=_FLOOR)
def rain(brush: Brush) -> None:
    """Slanting drops."""
    brush.sky(80, (104, 118, 140), (164, 176, 190))
    brush.ground(78, (96, 110, 112), (76, 90, 96))
    for _ in range(70):
        x, y = brush.between(0, 104), brush.between(0, 96)
        brush.line([(x, y), (x - 1.2, y + 4)], 0.5, (206, 222, 240))
