"""The words for every kind: its WordNet synset, other names, a riddle, its usual size and colours.

One row per kind: name | synset | other names | riddle | size | usual colours (empty: any).
Landmarks are all of one size and keep their own colours.
Other names and riddles end in their noun (before ``of``, ``with``, ``on``, ``in``), so that they have a plural, and
claim nothing about colour, size or pose, so that they are true of every drawing.
"""

from __future__ import annotations

CATALOGUE: dict[str, str] = {
    "animal": """
        dog | dog.n.01 | hound, canine | loyal tail wagger | 0.9 | brown, black, white, grey
        cat | cat.n.01 | kitty, feline | whiskered purrer | 0.8 | grey, black, orange, white
        horse | horse.n.01 | steed, equine | neighing hay eater | 1.3 | brown, black, white, grey
        cow | cow.n.01 | milk cow, dairy cow | mooing milk giver | 1.2 | white, brown, grey
        sheep | sheep.n.01 | woolly sheep, farmyard sheep | bleating wool grower | 1.0 | white, grey, black
        pig | hog.n.03 | hog, porker | curly-tailed grunter | 1.0 | pink, black, brown
        rabbit | rabbit.n.01 | bunny, long-eared rabbit | carrot nibbler | 0.7 | white, grey, brown
        elephant | elephant.n.01 | pachyderm, tusker | trunk-swinging giant | 1.5 | grey, blue, pink
        giraffe | giraffe.n.01 | long-necked animal, patterned giraffe | treetop browser | 1.5 | yellow, orange, brown
        zebra | zebra.n.01 | striped horse, savanna zebra | barcode-wearing grazer | 1.2 | white, yellow, pink
        lion | lion.n.01 | maned cat, jungle cat | roaring savanna king | 1.2 | yellow, orange, brown
        bear | bear.n.01 | shaggy bear, woodland bear | winter-long napper | 1.3 | brown, black, white
        deer | deer.n.01 | stag, woodland deer | antlered forest dweller | 1.2 | brown, orange, grey
        fox | fox.n.01 | bushy-tailed fox, wild fox | sly henhouse visitor | 0.9 | orange, red, grey
        bird | bird.n.01 | songbird, feathered creature | winged singer | 0.6 |
        duck | duck.n.01 | waterbird, farm duck | quacking pond sailor | 0.7 | yellow, white, brown, green
        owl | owl.n.01 | night bird, barn owl | wide-eyed night watcher | 0.7 | brown, grey, white
        penguin | penguin.n.01 | flightless bird, polar bird | tuxedoed waddler | 0.9 | black, blue, grey, purple
        chicken | chicken.n.02 | hen, farmyard bird | clucking egg layer | 0.7 | white, brown, red, black
        fish | fish.n.01 | finned fish, aquarium fish | scaly bubble blower | 0.7 |
        turtle | turtle.n.02 | tortoise, shelled reptile | slow house carrier | 0.8 | green, brown, blue
        frog | frog.n.01 | pond frog, amphibian | croaking pond jumper | 0.6 | green, brown, yellow, blue
        snake | snake.n.01 | serpent, legless reptile | hissing slitherer | 0.9 | green, yellow, red, brown, purple
        butterfly | butterfly.n.01 | winged insect, garden butterfly | former caterpillar | 0.6 |
        bee | bee.n.01 | honeybee, bumblebee | buzzing honey maker | 0.5 | yellow, orange
        spider | spider.n.01 | arachnid, eight-legged crawler | patient web weaver | 0.6 | black, brown, red, grey
        crab | crab.n.01 | crustacean, shore crab | sideways beach walker | 0.7 | red, orange, blue, brown
        snail | snail.n.01 | garden snail, shelled crawler | unhurried salad lover | 0.6 | brown, orange, pink, purple
        whale | whale.n.02 | sea mammal, ocean whale | singing ocean giant | 1.4 | blue, grey, black
        octopus | octopus.n.02 | eight-armed swimmer, sea octopus | many-armed hugger | 0.8 | purple, red, orange, pink
        dolphin | dolphin.n.02 | bottlenose dolphin, sea dolphin | clicking wave rider | 1.1 | grey, blue, pink
        bat | bat.n.01 | flying mammal, cave bat | upside-down sleeper | 0.7 | black, brown, grey, purple
    """,
    "person": """
        man | man.n.01 | guy, gentleman | grown-up fellow | 1.2 |
        woman | woman.n.01 | lady, adult woman | grown-up lady | 1.2 |
        boy | male_child.n.01 | lad, schoolboy | cap-wearing youngster | 1.0 |
        girl | female_child.n.01 | lass, schoolgirl | pigtailed youngster | 1.0 |
    """,
    "vehicle": """
        car | car.n.01 | automobile, motor car | petrol-thirsty commuter | 1.2 |
        bus | bus.n.01 | coach, passenger bus | rolling waiting room | 1.4 |
        truck | truck.n.01 | lorry, cargo truck | rumbling load bearer | 1.4 |
        bicycle | bicycle.n.01 | bike, pushbike | pedal-powered companion | 1.1 |
        motorcycle | motorcycle.n.01 | motorbike, road bike | roaring two-wheeler | 1.1 |
        train | locomotive.n.01 | steam engine, locomotive | whistling rail runner | 1.4 |
        sailboat | sailboat.n.01 | sailing boat, yacht | wind-driven traveller | 1.2 |
        ship | ship.n.01 | liner, ocean vessel | floating hotel | 1.5 |
        airplane | airplane.n.01 | plane, jet | metal cloud crosser | 1.3 |
        helicopter | helicopter.n.01 | chopper, rotor aircraft | whirring hoverer | 1.2 |
        rocket | rocket.n.01 | space rocket, spacecraft | moon-bound flyer | 1.2 |
        hot-air balloon | hot-air_balloon.n.01 | passenger balloon, basket balloon | breeze-borne drifter | 1.3 |
        tractor | tractor.n.01 | farm tractor, field tractor | tireless plough puller | 1.3 |
    """,
    "food": """
        apple | apple.n.01 | orchard fruit, crisp apple | daily doctor repeller | 0.6 | red, green, yellow
        banana | banana.n.02 | tropical banana, peelable fruit | curved monkey treat | 0.7 | yellow, green
        pear | pear.n.01 | juicy pear, stalked pear | bell-bottomed orchard gift | 0.6 | green, yellow
        strawberry | strawberry.n.01 | berry, garden strawberry | seed-dotted summer sweet | 0.5 | red, pink
        cherry | cherry.n.03 | stone fruit, ripe cherry | cake-topping sweet | 0.5 | red, purple
        bunch of grapes | grape.n.01 | cluster of grapes, grape bunch | future glass of wine | 0.6 | purple, green
        slice of watermelon | watermelon.n.02 | slice of melon, melon slice | juicy picnic wedge | 0.8 | red, yellow
        carrot | carrot.n.03 | root vegetable, garden carrot | crunchy rabbit favourite | 0.6 | orange, purple, yellow
        pizza | pizza.n.01 | Italian pie, cheese pie | cheesy Neapolitan export | 0.9 |
        cake | cake.n.03 | birthday cake, layer cake | candle-topped party piece | 0.9 |
        ice cream cone | ice-cream_cone.n.01 | cone of ice cream, frozen treat | melting summer tower | 0.7 |
        hamburger | hamburger.n.01 | burger, beef sandwich | stacked fast-food classic | 0.8 | brown, orange
        egg | egg.n.02 | boiled egg, breakfast egg | oval breakfast puzzle | 0.5 | white, brown
        mushroom | mushroom.n.05 | toadstool, dotted mushroom | elfin parasol | 0.6 | red, brown, orange
        loaf of bread | bread.n.01 | bread loaf, baked loaf | bakery morning smell | 0.8 | brown, orange
        pineapple | pineapple.n.02 | tropical fruit, spiky fruit | leaf-crowned sweet | 0.8 | yellow, orange
    """,
    "plant": """
        tree | tree.n.01 | leafy tree, garden tree | shade-giving nest holder | 1.4 | green, orange, yellow, red
        pine tree | pine.n.01 | fir, conifer | needle-coated winter guest | 1.4 | green, blue
        palm tree | palm.n.03 | coconut palm, tropical palm | island postcard regular | 1.4 | green, yellow
        flower | flower.n.01 | blossom, garden flower | bee-calling beauty | 0.7 |
        tulip | tulip.n.01 | spring flower, garden tulip | Dutch spring messenger | 0.7 |
        cactus | cactus.n.01 | desert plant, thorny plant | huggable-by-nobody plant | 1.0 | green, blue
        leaf | leaf.n.01 | foliage leaf, fallen leaf | autumn parachute | 0.6 | green, orange, yellow, red, brown
    """,
    "building": """
        house | house.n.01 | cottage, family home | roof-topped nest | 1.5 |
        castle | castle.n.02 | fortress, stronghold | fairy-tale home of knights | 1.6 |
        tent | tent.n.01 | camping tent, canvas shelter | camping bedroom | 1.2 |
        lighthouse | beacon.n.03 | light tower, coastal tower | ship-warning candle | 1.4 | red, blue, black, green
        windmill | windmill.n.01 | mill with sails, flour mill | air-stirring grain grinder | 1.4 |
        fountain | fountain.n.01 | water fountain, park fountain | splashing wish collector | 1.1 | grey, white, brown
        street lamp | streetlight.n.01 | lamppost, street light | moth-gathering night post | 1.1 | black, green, grey
        traffic light | traffic_light.n.01 | stop light, traffic signal | three-eyed guard | 1.0 | black, yellow, grey
    """,
    "thing": """
        cloud | cloud.n.02 | puffy cloud, sky cloud | drifting rain bearer | 1.0 | white, grey, pink
        snowman | snowman.n.01 | man of snow, carrot-nosed snowman | sun-fearing gentleman | 1.1 |
        snowflake | snowflake.n.01 | ice crystal, flake of snow | six-armed winter jewel | 0.6 | blue, white, grey
        planet | planet.n.01 | ringed world, ringed planet | sun-circling wanderer | 1.0 |
        ball | ball.n.06 | beach ball, toy ball | bouncing plaything | 0.6 |
        kite | kite.n.03 | toy kite, paper kite | string-led wind dancer | 0.8 |
        umbrella | umbrella.n.01 | parasol, brolly | portable rain roof | 1.0 |
        hat | hat.n.01 | top hat, felt hat | head-topping formality | 0.7 |
        shirt | shirt.n.01 | T-shirt, short-sleeved top | wardrobe staple | 0.8 |
        shoe | shoe.n.01 | sneaker, trainer | laced foot coat | 0.7 |
        bag | bag.n.04 | handbag, purse | strap-hung secret keeper | 0.7 |
        glove | glove.n.02 | knitted glove, hand warmer | five-fingered sleeve | 0.6 |
        pair of glasses | spectacles.n.01 | pair of spectacles, pair of eyeglasses | nose-riding reading aid | 0.7 |
        crown | crown.n.04 | coronet, jewelled crown | royal head ornament | 0.7 | yellow, grey, orange
        key | key.n.01 | door key, metal key | lock-opening friend | 0.6 | yellow, grey, brown
        bell | bell.n.01 | hand bell, church bell | dinner-calling clanger | 0.7 | yellow, grey, orange
        drum | drum.n.01 | snare drum, marching drum | thumping rhythm keeper | 0.8 |
        guitar | guitar.n.01 | acoustic guitar, six-string instrument | campfire serenader | 1.0 | brown, orange, red
        trumpet | cornet.n.01 | horn, brass instrument | brassy fanfare blower | 0.8 | yellow, grey, orange
        pair of scissors | scissors.n.01 | pair of shears, cutting tool | paper-splitting twin blade | 0.6 |
        hammer | hammer.n.02 | claw hammer, carpenter's tool | nail-banging helper | 0.7 |
        pencil | pencil.n.01 | writing pencil, drawing pencil | erasable thought recorder | 0.7 |
        gift | present.n.02 | present, wrapped box | ribboned birthday surprise | 0.8 |
        camera | camera.n.01 | photo camera, compact camera | one-eyed memory keeper | 0.7 | black, grey, red, brown
        skateboard | skateboard.n.01 | board on wheels, skate deck | kerb-hopping plank | 0.9 |
        robot | automaton.n.02 | android, mechanical man | battery-fed helper | 1.1 |
        teddy bear | teddy.n.01 | stuffed bear, plush bear | bedtime cuddle partner | 0.9 | brown, pink, white, blue
        medal | decoration.n.02 | award, prize medal | podium souvenir | 0.6 |
    """,
    "household": """
        chair | chair.n.01 | seat, wooden chair | four-legged back support | 1.0 |
        table | table.n.02 | desk, dining table | four-legged plate holder | 1.2 |
        sofa | sofa.n.01 | couch, settee | cushioned lounging spot | 1.3 |
        bed | bed.n.01 | single bed, bedstead | pillowed dream station | 1.4 |
        lamp | lamp.n.02 | table lamp, shaded lamp | indoor sunrise | 0.9 |
        clock | clock.n.01 | timepiece, wall clock | ticking hour teller | 0.8 |
        cup | cup.n.01 | mug, coffee cup | steaming morning comfort | 0.6 |
        teapot | teapot.n.01 | tea kettle, pot with a spout | five-o'clock pourer | 0.7 |
        bottle | bottle.n.01 | corked bottle, glass bottle | message carrier of castaways | 0.7 |
        vase | vase.n.01 | flower jar, ceramic vase | bouquet holder in waiting | 0.7 |
        bowl | bowl.n.03 | soup bowl, round dish | breakfast swimming pool | 0.7 |
        book | book.n.02 | volume, hardback | bound story vessel | 0.7 |
        candle | candle.n.01 | wax light, taper | waxen wish light | 0.7 |
        television | television_receiver.n.01 | TV, TV set | living-room storyteller | 1.0 |
        laptop | laptop.n.01 | notebook computer, portable computer | foldable office | 0.9 | grey, black, white, blue
        telephone | telephone.n.01 | phone, dial phone | ringing distance shrinker | 0.7 |
        basket | basket.n.01 | wicker basket, basket with a handle | woven picnic carrier | 0.8 | brown, yellow, orange
    """,
    "figure": """
        circle | circle.n.01 | round shape, disc | cornerless full moon | 0.9 |
        square | square.n.01 | equal-sided box, regular quadrilateral | boxy four-sided equal | 0.9 |
        rectangle | rectangle.n.01 | oblong, oblong shape | stretched-out box | 1.0 |
        triangle | triangle.n.01 | three-sided shape, three-cornered shape | paper mountain | 0.9 |
        ellipse | ellipse.n.01 | oval, oval shape | squashed ring | 1.0 |
        rhombus | rhombus.n.01 | diamond, diamond shape | tilted playing-card mark | 0.9 |
        pentagon | pentagon.n.03 | five-sided shape, five-cornered shape | five-walled house plan | 0.9 |
        hexagon | hexagon.n.01 | six-sided shape, six-cornered shape | single honeycomb cell | 0.9 |
        octagon | octagon.n.01 | eight-sided shape, eight-cornered shape | stop-sign outline | 0.9 |
        star | star.n.05 | five-pointed shape, five-pointed star | night-sky twinkler | 0.9 |
        cross | crisscross.n.01 | plus sign, plus shape | pharmacy emblem | 0.9 |
        arrow | arrow.n.01 | pointer, pointing mark | this-way marker | 0.9 |
        crescent | crescent.n.01 | moon shape, half-moon shape | nibbled moon | 0.9 |
        heart | heart.n.07 | valentine shape, love symbol | romantic symbol | 0.9 |
        trapezoid | trapezoid.n.01 | trapezium, flat-topped shape | lampshade outline | 1.0 |
        semicircle | semicircle.n.01 | half circle, half disc | sunrise outline | 1.0 |
    """,
    "panel": """
        sign | signboard.n.01 | notice board, board | roadside talker | 1.6 | green, blue, red, yellow, white
        poster | poster.n.01 | placard, wall poster | paper announcer | 1.6 | red, blue, yellow, green, purple
        billboard | billboard.n.01 | hoarding, roadside display | kerbside announcer | 1.6 | blue, red, white, yellow
        banner | banner.n.01 | cloth banner, ribbon banner | festive cloth | 1.6 | red, blue, purple, green, orange
        shop | shop.n.01 | store, corner store | penny-hungry doorway | 1.6 | red, green, blue, brown, purple
        blackboard | blackboard.n.01 | chalkboard, school board | chalk-dusted lesson | 1.9 | brown, orange, grey
        sheet of paper | sheet.n.02 | page, notebook page | inky square | 1.9 | blue, black, red
        whiteboard | display_panel.n.01 | marker board, wipeable board | squeaky lesson | 1.9 | red, blue, black, green
        computer screen | screen.n.03 | monitor, display | glowing window | 1.9 | black, grey, white, blue
    """,
    "landmark": """
        Eiffel Tower | eiffel_tower.n.01 | iron tower of Paris, tower on the Champ de Mars | iron lady of France
        Pyramids of Giza | pyramid.n.03 | ancient tombs of Egypt, tombs of the pharaohs | stone hills of the pharaohs
        Big Ben | big_ben.n.01 | clock tower of Westminster, famous clock of London | chiming giant of London
        Taj Mahal | taj_mahal.n.01 | white mausoleum of Agra, marble tomb of India | teardrop of love in Agra
        Statue of Liberty | statue_of_liberty.n.01 | torch bearer of New York, island statue | copper lady of Manhattan
        Sydney Opera House | opera.n.03 | opera of Sydney, concert hall of Sydney | stone sails of Australia
        Leaning Tower of Pisa | leaning_tower.n.01 | tilted tower of Tuscany, slanting belfry | tower with a list
        Colosseum | colosseum.n.01 | great arena of Rome, ancient amphitheatre of Rome | gladiators' old workplace
        Golden Gate Bridge | golden_gate_bridge.n.01 | bridge of San Francisco, red bridge | gate to the Pacific
        Stonehenge | stonehenge.n.01 | stone circle of Wiltshire, megaliths of England | riddle of standing stones
        Christ the Redeemer | statue.n.01 | great statue of Rio, famous statue of Brazil | wide embrace above Rio
        Parthenon | parthenon.n.01 | temple on the Acropolis, ancient temple of Athens | goddess's house on the hill
        Mount Fuji | fuji.n.02 | sacred mountain of Japan, highest peak of Japan | sleeping giant of Japan
        Arc de Triomphe | triumphal_arch.n.01 | triumphal arch of Paris, great arch of France | gate of French victories
    """,
}
"""Category → its rows."""

COLOURED: dict[str, str] = {
    "person": "{name} in {colour}",
    "snowman": "{name} with a {colour} hat and scarf",
    "pizza": "{name} on a {colour} plate",
    "lamp": "{name} with a {colour} shade",
    "clock": "{name} with a {colour} rim",
    "lighthouse": "{name} with {colour} bands",
    "pair of scissors": "{name} with {colour} handles",
    "hammer": "{name} with a {colour} handle",
    "medal": "{name} on a {colour} ribbon",
    "bed": "{name} with a {colour} blanket",
    "blackboard": "{name} with a {colour} frame",
    "computer screen": "{name} with a {colour} frame",
    "poster": "{name} with a {colour} border",
    "sheet of paper": "{name} with {colour} handwriting",
    "whiteboard": "{name} with {colour} handwriting",
}
"""How the colour is said where it is not that of the whole object, by kind or category."""
