"""Captions of our own writing against scenes of our own writing, graded by hand.

0: another scene altogether; 1: one thing in common; 2: the setting or the kind of action in common; 3: the scene with a
mistake; 4: the scene.
"""

from __future__ import annotations

SCENES: tuple[tuple[tuple[str, ...], tuple[tuple[int, str], ...]], ...] = (
    (
        (
            "A baker in a white apron pulls loaves from a brick oven.",
            "A man takes fresh bread out of an oven.",
            "Someone in an apron is baking bread in a bakery.",
            "Brown loaves come out of a brick oven on a wooden paddle.",
            "The baker uses a long paddle to lift bread from the oven.",
        ),
        (
            (4, "A man in an apron is taking loaves of bread out of the oven."),
            (4, "A baker removes bread from a brick oven with a paddle."),
            (3, "A woman in an apron takes a pizza out of a brick oven."),
            (2, "A cook is preparing food in a kitchen."),
            (1, "A man in a white shirt stands by a wall."),
            (0, "Two swans glide over a foggy lake."),
        ),
    ),
    (
        (
            "Three children fly a red kite on a windy beach.",
            "Kids are playing with a kite near the sea.",
            "A red kite is in the air above three children on the sand.",
            "Children run along the shore holding the string of a kite.",
            "Three kids with a kite at the seaside.",
        ),
        (
            (4, "Three kids are flying a red kite at the beach."),
            (4, "Children on the sand play with a kite."),
            (3, "Two children fly a blue kite in a field."),
            (2, "A family walks along the beach at sunset."),
            (1, "Children sit at their desks in a classroom."),
            (0, "A mechanic repairs the engine of a truck."),
        ),
    ),
    (
        (
            "A grey cat sleeps on a pile of newspapers.",
            "A cat is asleep on top of some old papers.",
            "A sleeping cat curled up on newspapers by a window.",
            "On a stack of newspapers lies a grey cat.",
            "The cat naps on the papers.",
        ),
        (
            (4, "A grey cat is napping on a stack of newspapers."),
            (4, "A cat sleeps on old newspapers near a window."),
            (3, "A black dog sleeps on a pile of newspapers."),
            (2, "A kitten lies on a sofa."),
            (1, "A man reads a newspaper on a train."),
            (0, "Climbers reach the top of a snowy mountain."),
        ),
    ),
    (
        (
            "A cyclist in a yellow jersey climbs a steep mountain road.",
            "A man rides a racing bike up a hill.",
            "Spectators cheer a cyclist in yellow on a mountain road.",
            "A rider on a road bike goes uphill past a crowd.",
            "A bike racer wearing yellow pedals up the road.",
        ),
        (
            (4, "A cyclist wearing a yellow jersey rides up a mountain road."),
            (4, "A man on a racing bicycle goes uphill while people cheer."),
            (3, "A cyclist in red races down a mountain road."),
            (2, "A boy rides a bicycle in a park."),
            (1, "A crowd watches a football match."),
            (0, "A bowl of soup stands on a checked tablecloth."),
        ),
    ),
    (
        (
            "An old woman sells flowers at a market stall.",
            "A woman with a headscarf stands behind buckets of tulips.",
            "Flowers in buckets are for sale at an outdoor market.",
            "A flower seller arranges tulips at her stall.",
            "An elderly woman is selling tulips on a market.",
        ),
        (
            (4, "An elderly woman sells tulips at an outdoor market."),
            (4, "A flower seller stands at her market stall."),
            (3, "A young man sells vegetables at a market stall."),
            (2, "People stroll through a busy market."),
            (1, "A vase of flowers stands on a piano."),
            (0, "A rocket lifts off from its launch pad."),
        ),
    ),
    (
        (
            "A band plays jazz on a small stage in a dark club.",
            "Four musicians perform under blue lights.",
            "A saxophone player and a drummer play on stage.",
            "A jazz quartet gives a concert in a club.",
            "Musicians with a saxophone and a double bass on a stage.",
        ),
        (
            (4, "A jazz band with a saxophone performs on the stage of a club."),
            (4, "Four musicians play on a small stage."),
            (3, "A rock band with two guitarists plays on a huge outdoor stage."),
            (2, "A girl practises the violin in her room."),
            (1, "People sit in a dark cinema."),
            (0, "Sheep graze on a green hillside."),
        ),
    ),
)
