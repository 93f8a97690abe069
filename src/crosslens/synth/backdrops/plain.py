"""Plain backdrops: skies over flat ground, where landmarks stand, and flat surfaces, where objects are laid out."""

from __future__ import annotations

from crosslens.synth.backdrops.backdrop import Brush, backdrop


@backdrop("surface", "white paper | on white paper | on an empty page | on a field without a footprint")
def _white_paper(brush: Brush) -> None:
    brush.sky(100, (252, 252, 250), (244, 244, 240))


@backdrop("surface", "graph paper | on graph paper | on a sheet of little squares | on an engineer's favourite ground")
def _graph_paper(brush: Brush) -> None:
    brush.sky(100, (250, 252, 254), (246, 250, 252))
    for step in range(0, 101, 5):
        width = 0.7 if step % 25 == 0 else 0.35
        brush.line([(step, 0), (step, 100)], width, (170, 204, 228))
        brush.line([(0, step), (100, step)], width, (170, 204, 228))


@backdrop("surface", "wooden board | on a wooden board | on bare planks | on what was once a tree")
def _wooden_board(brush: Brush) -> None:
    for row in range(5):
        tint = round(brush.between(-8, 8))
        brush.box(0, row * 20, 100, row * 20 + 20, (206 + tint, 166 + tint, 114 + tint))
        brush.line([(0, row * 20), (100, row * 20)], 0.6, (150, 110, 66))
        for _ in range(3):
            x, y = brush.between(0, 80), row * 20 + brush.between(4, 16)
            brush.curve([(x, y), (x + 8, y + 1), (x + 18, y - 0.5)], 0.5, (176, 134, 84))


@backdrop("surface", "brick wall | against a brick wall | before a wall of bricks | before a mason's patient work")
def _brick_wall(brush: Brush) -> None:
    brush.sky(100, (222, 206, 192), (214, 198, 184))
    for row in range(13):
        for column in range(-1, 7):
            tint = round(brush.between(-12, 12))
            x = column * 17 + (8.5 if row % 2 else 0)
            brush.box(x, row * 8, x + 16, row * 8 + 7, (188 + tint, 118 + tint, 96 + tint))


@backdrop(
    "surface",
    "striped wallpaper | on striped wallpaper | in front of a wall with stripes | on a wall dressed like a deckchair",
)
def _striped_wallpaper(brush: Brush) -> None:
    first, second = [
        ((250, 236, 210), (240, 214, 176)),
        ((224, 238, 246), (198, 222, 238)),
        ((236, 226, 244), (218, 202, 232)),
    ][int(brush.random.integers(3))]
    brush.sky(100, first, first)
    for x in range(0, 100, 20):
        brush.box(x, 0, x + 10, 100, second)


@backdrop(
    "surface",
    "dotted wallpaper | on dotted wallpaper | in front of a wall with dots | on a wall that seems to have measles",
)
def _dotted_wallpaper(brush: Brush) -> None:
    first, second = [
        ((250, 226, 230), (240, 190, 204)),
        ((226, 244, 232), (186, 220, 198)),
        ((250, 244, 214), (236, 218, 160)),
    ][int(brush.random.integers(3))]
    brush.sky(100, first, first)
    for row in range(13):
        for column in range(12):
            brush.disc(column * 9 + (4.5 if row % 2 else 0), row * 8 + 3, 1.4, second)


@backdrop("surface", "tiled wall | on a tiled wall | on glazed tiles | on a wall that is easy to wipe")
def _tiled_wall(brush: Brush) -> None:
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


@backdrop("surface", "blue carpet | on a blue carpet | on a woven blue rug | on a floor soft as moss")
def _blue_carpet(brush: Brush) -> None:
    brush.sky(100, (150, 176, 206), (134, 160, 194))
    brush.box(3, 3, 97, 97, (118, 146, 184))
    brush.box(6, 6, 94, 94, (146, 172, 204))
    for _ in range(90):
        x, y = brush.between(7, 92), brush.between(8, 92)
        brush.line([(x, y), (x + 1.2, y + 0.6)], 0.4, (168, 192, 220))


@backdrop("sky", "blue sky | under a blue sky | on a fine day | in weather made for postcards", floor=78)
def _blue_sky(brush: Brush) -> None:
    brush.sky(80, (84, 158, 226), (206, 230, 246))
    brush.disc(brush.between(10, 90), brush.between(8, 18), 6, (255, 228, 120))
    brush.ground(78, (132, 176, 96), (108, 152, 78))


@backdrop("sky", "sunset | at sunset | in the evening light | while the day says goodbye", floor=78)
def _sunset(brush: Brush) -> None:
    brush.sky(80, (116, 74, 140), (252, 168, 92))
    brush.disc(brush.between(20, 80), 74, 10, (255, 214, 120))
    brush.ground(78, (92, 72, 84), (66, 52, 66))


@backdrop("sky", "starry night | under a starry sky | in the middle of the night | while the town is asleep", floor=78)
def _starry_night(brush: Brush) -> None:
    brush.sky(80, (16, 22, 58), (52, 62, 116))
    brush.disc(brush.between(12, 88), brush.between(10, 20), 6, (246, 242, 214))
    for _ in range(44):
        brush.disc(brush.between(0, 100), brush.between(0, 70), brush.between(0.3, 0.7), (240, 240, 250))
    brush.ground(78, (44, 52, 74), (32, 38, 58))


@backdrop("sky", "cloudy sky | under grey clouds | on an overcast day | while rain makes up its mind", floor=78)
def _cloudy_sky(brush: Brush) -> None:
    brush.sky(80, (156, 164, 174), (206, 212, 218))
    for step in range(7):
        shade = 170 + 8 * (step % 3)
        brush.cloudlet(step * 17 + brush.between(-5, 5), brush.between(6, 26), 9, (shade, shade + 4, shade + 10))
    brush.ground(78, (126, 144, 110), (104, 122, 92))


@backdrop("sky", "rain | in the rain | in wet weather | while the gutters sing", floor=78)
def _rain(brush: Brush) -> None:
    brush.sky(80, (104, 118, 140), (164, 176, 190))
    brush.ground(78, (96, 110, 112), (76, 90, 96))
    for _ in range(70):
        x, y = brush.between(0, 104), brush.between(0, 96)
        brush.line([(x, y), (x - 1.2, y + 4)], 0.5, (206, 222, 240))
