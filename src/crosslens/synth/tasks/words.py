"""Words to read: English ones for signs, Chinese ones with their meaning."""

from __future__ import annotations

_SIGNS = """
OPEN | customers are welcome now
CLOSED | come back another time
BAKERY | mornings smell of fresh rolls
BREWERY | barley turns into beer
COFFEE | a beaker of wakefulness
TOFFEE | sugar boiled until it is chewy
HOTEL | a bed for one night
HOSTEL | a bunk for little money
MOTEL | a bed beside the motorway
LIBRARY | silence between the shelves
MARKET | haggling over vegetables
MUSIC | something for the ears
MUSEUM | old things behind glass
SALE | prices on their way down
SALT | what the soup was missing
STOP | not one step further
SHOP | a place to spend money
SLOW | no need to hurry
EXIT | the way out
TAXI | a ride for a fare
BUS | a ride with many strangers
BANK | where savings sleep
PARK | benches under trees
DARK | what lies where no lamp is lit
SCHOOL | homework begins here
POOL | swimmers go round in lanes
FIRE | call the brigade
FIVE | one more than four
NINE | one short of ten
WINE | what grapes dream of becoming
FISH | the catch of the day
DISH | served on a plate
BOOKS | stories by the shelf
BOOTS | shoes for rainy days
FLOWERS | a bouquet for somebody
PIZZA | a greeting from Naples
PIANO | eighty-eight keys
RADIO | voices from far away
STUDIO | an artist at work
GARAGE | where cars are mended
GARDEN | where roses are watered
WELCOME | come on in
THANKS | a word of gratitude
HELLO | the first word on the phone
DANGER | better turn back
RANGER | keeper of the woods
POLICE | the law is near
OFFICE | desks and deadlines
CINEMA | popcorn and a big screen
THEATRE | the curtain rises
STATION | trains leave on time
AIRPORT | wheels leave the ground
HARBOUR | ships come home
BRIDGE | the way across the river
SUMMER | long hot days
WINTER | scarves and icicles
SPRING | buds on every branch
STRING | something to tie parcels with
MONDAY | the weekend is over
SUNDAY | church bells and late breakfasts
FRIDAY | the weekend is near
TODAY | neither yesterday nor tomorrow
BUTTER | it melts on toast
LETTER | an envelope with a stamp
LEATHER | what good shoes are made of
WEATHER | everyone's small talk
HOUSE | four walls and a roof
HORSE | a jockey's partner
MOUSE | the cheese thief
MOUTH | where the teeth live
TRAIN | carriages in a row
BRAIN | the organ of thought
BREAD | the baker's daily work
DREAM | a film behind closed eyes
CREAM | the top of the milk
TEA | leaves in hot water
SEA | salt water to the horizon
ZOO | a walk past cages
TOYS | what fills a playroom
BOYS | sons and brothers
KEYS | they hang on a ring
MILK | what cows give
SILK | cloth from a caterpillar
SOUP | eaten with a spoon
SOAP | clean hands
GOLD | the winner's metal
COLD | better wear a coat
LEFT | the heart's side
LIFT | upstairs without steps
RIGHT | the opposite of wrong
LIGHT | a switch was turned on
NIGHT | owls wake up
"""

_CHINESE = """
水 | water | something to quench thirst | what rivers carry
火 | fire | flames | what smoke comes from
山 | mountain | a peak | what climbers look for
大海 | the sea | the ocean | what sailors call home
月亮 | the moon | earth's companion in the night sky | what wolves howl at
太阳 | the sun | our star | what brings the day
学校 | school | a place of learning | where bells end the break
医院 | hospital | a clinic | where plasters are put on
银行 | bank | a money house | where savings sleep
邮局 | post office | a place to send letters | where stamps are sold
图书馆 | library | a house of books | where people whisper
火车站 | railway station | a train stop | where platforms wait
机场 | airport | a place for planes | where holidays take off
饭店 | restaurant | a place to dine | where waiters hurry
超市 | supermarket | a big grocery store | where trolleys are pushed
公园 | park | a public garden | where benches stand under trees
博物馆 | museum | a house of exhibits | where old things live behind glass
电影院 | cinema | a film theatre | where popcorn is eaten in the dark
茶 | tea | a drink of steeped leaves | what fills the pot at five
咖啡 | coffee | a drink of roasted beans | what mornings begin with
牛奶 | milk | a drink from the dairy | what calves drink
米饭 | rice | cooked white grain | what chopsticks lift
面条 | noodles | long strings of dough | what is slurped from a bowl
苹果 | apple | a fruit of the orchard | what keeps the doctor away
西瓜 | watermelon | a giant striped fruit | what drips at picnics
鸡蛋 | egg | what a hen lays | what breaks for breakfast
猫 | cat | a feline | who purrs on the sofa
狗 | dog | a canine | who fetches the stick
马 | horse | a steed | who wears a saddle
鸟 | bird | a winged animal | who sings before dawn
鱼 | fish | a creature with fins | who never blinks
老虎 | tiger | a big striped cat | who wears stripes in the jungle
熊猫 | panda | a bamboo-eating bear | who dresses in two colours
龙 | dragon | a mythical fire-breather | who guards the treasure
红色 | red | a warm colour | what stops the traffic
蓝色 | blue | the colour of the sky | what painters use for skies
绿色 | green | the colour of leaves | what lets the traffic go
黑色 | black | the colour of coal | what is left when light goes out
春天 | spring | the season of blossoms | when buds open
夏天 | summer | the hottest season | when ice cream melts
秋天 | autumn | the season of falling leaves | when the leaves let go
冬天 | winter | the coldest season | when snowmen are born
你好 | hello | a greeting | how strangers begin
再见 | goodbye | a farewell | how meetings end
谢谢 | thank you | words of gratitude | what good manners say
对不起 | sorry | an apology | what a spilt drink asks for
欢迎 | welcome | a friendly invitation | what a doormat says
生日快乐 | happy birthday | birthday wishes | what is sung over candles
新年快乐 | happy new year | wishes for the new year | what is called out at midnight in January
我爱你 | I love you | a declaration of love | three words before a kiss
早上好 | good morning | a greeting at dawn | what the first coffee hears
晚安 | good night | a bedtime wish | the last words before the lamp goes out
入口 | entrance | the way in | where visits begin
出口 | exit | the way out | where visits end
小心 | be careful | a warning to take care | what thin ice should say
禁止吸烟 | no smoking | a ban on cigarettes | bad news for cigarettes
请安静 | please be quiet | a request for silence | what a librarian would say
停车场 | car park | a place to leave a car | where engines rest
厕所 | toilet | a washroom | where queues form in the interval
左 | left | the side of the heart | the other hand of most people
右 | right | the side opposite the heart | the hand most people write with
一 | one | the first number | the loneliest number
二 | two | a pair in numbers | what it takes to tango
三 | three | the number of a trio | the wheels of a tricycle
今天 | today | this very day | neither yesterday nor tomorrow
明天 | tomorrow | the day after this one | what procrastinators love
朋友 | friend | a companion | somebody to share secrets with
妈妈 | mum | a mother | who knows best
老师 | teacher | a schoolmaster | who marks the homework
医生 | doctor | a physician | who carries a stethoscope
"""


def _rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in row.split("|")] for row in table.strip().splitlines()]


SIGNS: dict[str, str] = dict(row for row in _rows(_SIGNS))
"""A word in capitals → a hint at it."""
CHINESE: dict[str, tuple[str, str, str]] = {
    word: (meaning, other, hint) for word, meaning, other, hint in _rows(_CHINESE)
}
"""Chinese → its meaning, the same in other words, and a hint at it."""
