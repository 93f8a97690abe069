"""Flat surfaces: where things are laid out rather than stand."""

from __future__ import annotations

from crosslens.synth.backdrops.backdrop import Brush, backdrop


@backdrop(
    "white paper", "surface", at="on white paper", also="on an empty page", riddle="on a field without a footprint"
)
def white_paper(brush: Brush) -> None:
    """Hardly anything."""
    brush.sky(100, (252, 252, 250), (244, 244, 240))


@backdrop("graph paper", "surface", at="on graph paper", also="on a sheet of little squares",
          riddle="on an engineer's favourite ground")  # fmt: skip
def graph_paper(brush: Brush) -> None:
    """A fine grid."""
    brush.sky(100, (250, 252, 254), (246, 250, 252))
    for step in range(0, 101, 5):
        width = 0.7 if step % 25 == 0 else 0.35
        brush.line([(step, 0), (step, 100)], width, (170, 204, 228))
        brush.line([(0, step), (100, step)], width, (170, 204, 228))


@backdrop("wooden board", "surface", at="on a wooden board", also="on bare planks", riddle="on what was once a tree")
def wooden_board(brush: Brush) -> None:
    """Planks with grain."""
    for row in range(5):
        tint = round(brush.between(-8, 8))
        brush.box(0, row * 20, 100, row * 20 + 20, (206 + tint, 166 + tint, 114 + tint))
        brush.line([(0, row * 20), (100, row * 20)], 0.6, (150, 110, 66))
        for _ in range(3):
            x, y = brush.between(0, 80), row * 20 + brush.between(4, 16)
            brush.curve([(x, y), (x + 8, y + 1), (x + 18, y - 0.5)], 0.5, (176, 134, 84))


@backdrop("brick wall", "surface", at="against a brick wall", also="before a wall of bricks",
          riddle="before a mason's patient work")  # fmt: skip
def brick_wall(brush: Brush) -> None:
    """Rows of bricks."""
    brush.sky(100, (222, 206, 192), (214, 198, 184))
    for row in range(13):
        for column in range(-1, 7):
            tint = round(brush.between(-12, 12))
            x = column * 17 + (8.5 if row % 2 else 0)
            brush.box(x, row * 8, x + 16, row * 8 + 7, (188 + tint, 118 + tint, 96 + tint))


@backdrop("striped wallpaper", "surface", at="on striped wallpaper", also="in front of a wall with stripes",
          riddle="on a wall dressed like a deckchair")  # fmt: skip
def striped_wallpaper(brush: Brush) -> None:
    """Two pale tones."""
    first, second = [
        ((250, 236, 210), (240, 214, 176)),
        ((224, 238, 246), (198, 222, 238)),
        ((236, 226, 244), (218, 202, 232)),
    ][int(brush.random.integers(3))]
    brush.sky(100, first, first)
    for x in range(0, 100, 20):
        brush.box(x, 0, x + 10, 100, second)


@backdrop("dotted wallpaper", "surface", at="on dotted wallpaper", also="in front of a wall with dots",
          riddle="on a wall that seems to have measles")  # fmt: skip
def dotted_wallpaper(brush: Brush) -> None:
    """Small dots on a pale ground."""
    first, second = [
        ((250, 226, 230), (240, 190, 204)),
        ((226, 244, 232), (186, 220, 198)),
        ((250, 244, 214), (236, 218, 160)),
    ][int(brush.random.integers(3))]
    brush.sky(100, first, first)
    for row in range(13):
        for column in range(12):
            brush.disc(column * 9 + (4.5 if row % 2 else 0), row * 8 + 3, 1.4, second)


@backdrop(
    "tiled wall", "surface", at="on a tiled wall", also="on glazed tiles", riddle="on a wall that is easy to wipe"
)
def tiled_wall(brush: Brush) -> None:
    """Square tiles."""
    brush.sky(100, (216, 226, 228), (216, 226, 228))
    for row in range(6):
        for column in range(6):
            tint = round(brush.between(-5, 5))
            brush.box(
                column * 17 + 0.6,
                row * 17 + 0.6,
                column * 17 + 16.4,
                row * 17 + 16.4,
                (236 + tint, 244 + tint, 244 + tint),
            )


@backdrop("blue carpet", "surface", at="on a blue carpet", also="on a woven blue rug", riddle="on a floor soft as moss")
def blue_carpet(brush: Brush) -> None:
    """Short threads on blue."""
    brush.sky(100, (150, 176, 206), (134, 160, 194))
    brush.box(3, 3, 97, 97, (118, 146, 184))
    brush.box(6, 6, 94, 94, (146, 172, 204))
    for _ in range(90):
        x, y = brush.between(7, 92), brush.between(8, 92)
        brush.line([(x, y), (x + 1.2, y + 0.6)], 0.4, (168, 192, 220))
