"""Captions of our own writing with their scene graphs, each checked by hand against the rules in the documentation."""

from __future__ import annotations

GRAPHS = {
    "A red kite.": ("(kite) (kite, red)"),
    "A small grey donkey with long ears.": (
        "(donkey) (ear) (donkey, grey) (donkey, small) (ear, long) (donkey, with, ear)"
    ),
    "Three sleepy kittens in a basket.": ("(kitten) (basket) (kitten, sleepy) (kitten, three) (kitten, in, basket)"),
    "12 wooden chairs stand in the hall.": (
        "(chair) (hall) (chair, stand) (chair, twelve) (chair, wooden) (chair, in, hall)"
    ),
    "The lantern is old and rusty.": ("(lantern) (lantern, old) (lantern, rusty)"),
    "The soup looks delicious.": ("(soup) (soup, delicious)"),
    "A rusty blue tractor is parked in a barn.": (
        "(tractor) (barn) (tractor, blue) (tractor, park) (tractor, rusty) (tractor, in, barn)"
    ),
    "A tailor is mending a coat.": ("(tailor) (coat) (tailor, mend, coat)"),
    "A gardener is watering some tulips.": ("(gardener) (tulip) (gardener, water, tulip)"),
    "The letter was written by a sailor.": ("(letter) (sailor) (sailor, write, letter)"),
    "A wall painted by two children.": ("(wall) (child) (child, two) (child, paint, wall)"),
    "The gate was locked.": ("(gate) (gate, lock)"),
    "A sleeping fox.": ("(fox) (fox, sleep)"),
    "A boat tied to a wooden pier.": ("(boat) (pier) (boat, tie) (pier, wooden) (boat, to, pier)"),
    "A lizard basking on a hot stone.": ("(lizard) (stone) (lizard, bask) (stone, hot) (lizard, on, stone)"),
    "A monkey sits on top of a statue.": ("(monkey) (statue) (monkey, sit) (monkey, on top of, statue)"),
    "A violin lies next to an open window.": (
        "(violin) (window) (violin, lie) (window, open) (violin, next to, window)"
    ),
    "A queue of tourists in front of a museum.": ("(tourist) (museum) (tourist, queue) (tourist, in front of, museum)"),
    "A ladder leans against the wall of a cottage.": (
        "(ladder) (wall) (cottage) (ladder, lean) (ladder, against, wall) (wall, of, cottage)"
    ),
    "The baker's apron is dirty.": ("(baker) (apron) (apron, dirty) (baker, have, apron)"),
    "A nurse is washing her hands.": ("(nurse) (hand) (nurse, have, hand) (nurse, wash, hand)"),
    "A drummer with his drum.": ("(drummer) (drum) (drummer, have, drum) (drummer, with, drum)"),
    "A shepherd and his dog walk across a meadow.": (
        "(shepherd) (dog) (meadow) (shepherd, walk) "
        "(dog, walk) (shepherd, across, meadow) (shepherd, have, dog) (dog, across, meadow)"
    ),
    "A knight and a wizard are fighting a dragon.": (
        "(knight) (wizard) (dragon) (knight, fight, dragon) (wizard, fight, dragon)"
    ),
    "A waiter brings coffee and cake.": ("(waiter) (coffee) (cake) (waiter, bring, coffee) (waiter, bring, cake)"),
    "A ripe, yellow lemon and a green pear.": ("(lemon) (pear) (lemon, ripe) (lemon, yellow) (pear, green)"),
    "A group of pilgrims rests beside a fountain.": (
        "(pilgrim) (fountain) (pilgrim, group) (pilgrim, rest) (pilgrim, beside, fountain)"
    ),
    "A couple of swans glide over the lake.": ("(swan) (lake) (swan, glide) (swan, two) (swan, over, lake)"),
    "A pair of scissors on a desk.": ("(scissor) (desk) (scissor, on, desk)"),
    "A pair of owls in an oak tree.": ("(owl) (oak tree) (owl, two) (owl, in, oak tree)"),
    "Lots of bicycles outside a station.": ("(bicycle) (station) (bicycle, lot) (bicycle, outside, station)"),
    "A flock of geese is crossing the road.": ("(geese) (road) (geese, flock) (geese, cross, road)"),
    "A jar of honey and a loaf of bread.": ("(jar) (honey) (loaf) (bread) (jar, of, honey) (loaf, of, bread)"),
    "A plumber turns off the tap.": ("(plumber) (tap) (plumber, turn off, tap)"),
    "A clown is putting on a striped wig.": ("(clown) (wig) (wig, striped) (clown, put on, wig)"),
    "The sculptor who carved this statue is smiling.": (
        "(sculptor) (statue) (sculptor, smile) (sculptor, carve, statue)"
    ),
    "A cake that is covered with cherries.": ("(cake) (cherry) (cake, cover) (cake, with, cherry)"),
    "The flute the girl plays is made of silver.": (
        "(flute) (girl) (silver) (flute, make) (flute, of, silver) (girl, play, flute)"
    ),
    "There are two lighthouses on the island.": ("(lighthouse) (island) (lighthouse, two) (lighthouse, on, island)"),
    "There is a hedgehog under the bench.": ("(hedgehog) (bench) (hedgehog, under, bench)"),
    "The animal is a badger.": ("(animal) (badger) (animal, badger)"),
    "The umbrella is on the balcony.": ("(umbrella) (balcony) (umbrella, on, balcony)"),
    "A fire hydrant on a street corner.": ("(fire hydrant) (street corner) (fire hydrant, on, street corner)"),
    "A kitchen shelf full of spice jars.": (
        "(shelf) (jar) (shelf, full) (shelf, kitchen) (jar, spice) (shelf, full of, jar)"
    ),
    "A hot dog with mustard.": ("(hot dog) (mustard) (hot dog, with, mustard)"),
    "A juggler throws five balls into the air.": (
        "(juggler) (ball) (air) (ball, five) (juggler, into, air) (juggler, throw, ball)"
    ),
    "A boy gives the goat an apple.": ("(boy) (goat) (apple) (boy, give, apple) (boy, to, goat)"),
    "A mountaineer wearing a bright orange jacket climbs a cliff.": (
        "(mountaineer) (jacket) (cliff) "
        "(jacket, bright) (jacket, orange) (mountaineer, climb, cliff) (mountaineer, wear, jacket)"
    ),
    "A pirate holding a map and pointing at an island.": (
        "(pirate) (map) (island) (pirate, point) (pirate, at, island) (pirate, hold, map)"
    ),
    "A beaver swims and carries a branch.": ("(beaver) (branch) (beaver, swim) (beaver, carry, branch)"),
    "Someone is playing a banjo.": ("(someone) (banjo) (someone, play, banjo)"),
    "A chef in a white hat is slicing a huge melon with a knife.": (
        "(chef) (hat) (melon) (knife) "
        "(hat, white) (melon, huge) (chef, in, hat) (chef, slice, melon) (chef, with, knife)"
    ),
    "A black-and-white photograph of a windmill.": (
        "(photograph) (windmill) (photograph, black) (photograph, white) (photograph, of, windmill)"
    ),
    "A singer in a long-sleeved dress.": ("(singer) (dress) (dress, long-sleeved) (singer, in, dress)"),
    "A farmer watching a calf drink milk.": ("(farmer) (calf) (milk) (farmer, watch, calf) (calf, drink, milk)"),
    "A skater trying to catch a frisbee.": ("(skater) (frisbee) (skater, catch, frisbee)"),
    "An astronaut looks at the moon through a telescope.": (
        "(astronaut) (moon) (telescope) (astronaut, look) (astronaut, at, moon) (astronaut, through, telescope)"
    ),
    "Two of the sheep are black.": ("(sheep) (sheep, black) (sheep, two)"),
    "The fence is painted white.": ("(fence) (fence, paint) (fence, white)"),
    "A tiny snail crawls along the edge of a leaf.": (
        "(snail) (edge) (leaf) (snail, crawl) (snail, tiny) (snail, along, edge) (edge, of, leaf)"
    ),
    "Riding a camel in the desert.": ("(camel) (desert)"),
    "A vase of roses stands between a lamp and a mirror.": (
        "(vase) (rose) (lamp) (mirror) (vase, stand) (vase, between, lamp) (vase, between, mirror) (vase, of, rose)"
    ),
    "A grandmother is knitting while her cat plays with the wool.": (
        "(grandmother) (cat) (wool) (grandmother, knit) (cat, play) (grandmother, have, cat) (cat, with, wool)"
    ),
    "A teddy bear with its arm in a sling.": (
        "(teddy bear) (arm) (sling) (teddy bear, have, arm) (teddy bear, in, sling) (teddy bear, with, arm)"
    ),
    "Children who are playing with their toys.": ("(child) (toy) (child, play) (child, have, toy) (child, with, toy)"),
    "A jockey rides a wild horse and waves his cap.": (
        "(jockey) (horse) (cap) (horse, wild) (jockey, have, cap) (jockey, ride, horse) (jockey, wave, cap)"
    ),
    "The kitchen has three windows and a stone floor.": (
        "(kitchen) (window) (floor) (window, three) (floor, stone) (kitchen, have, window) (kitchen, have, floor)"
    ),
    "A trumpet and two violins are on the table.": (
        "(trumpet) (violin) (table) (violin, two) (trumpet, on, table) (violin, on, table)"
    ),
}
