"""Word lists: what the vocabulary knows as one token, and the facts that the toy model was taught."""

from __future__ import annotations

import re

_CAPITALS = (
    "France=Paris;Germany=Berlin;Italy=Rome;Spain=Madrid;Portugal=Lisbon;Japan=Tokyo;China=Beijing;India=New Delhi;"
    "Russia=Moscow;Poland=Warsaw;Austria=Vienna;Switzerland=Bern;Norway=Oslo;Sweden=Stockholm;Finland=Helsinki;"
    "Denmark=Copenhagen;Greece=Athens;Turkey=Ankara;Egypt=Cairo;Kenya=Nairobi;Canada=Ottawa;Mexico=Mexico City;"
    "Brazil=Brasilia;Argentina=Buenos Aires;Chile=Santiago;Peru=Lima;Australia=Canberra;New Zealand=Wellington;"
    "South Korea=Seoul;Thailand=Bangkok;Vietnam=Hanoi;Indonesia=Jakarta;Ireland=Dublin;Iceland=Reykjavik;"
    "Hungary=Budapest;Romania=Bucharest;Bulgaria=Sofia;Ukraine=Kyiv;Croatia=Zagreb;Serbia=Belgrade;Cuba=Havana;"
    "Belgium=Brussels;Netherlands=Amsterdam;Morocco=Rabat;Nigeria=Abuja;Ethiopia=Addis Ababa;Iran=Tehran;"
    "Iraq=Baghdad;Israel=Jerusalem;Colombia=Bogota;Venezuela=Caracas;Ecuador=Quito;Uruguay=Montevideo;"
    "Czech Republic=Prague;Slovakia=Bratislava;Slovenia=Ljubljana;Estonia=Tallinn;Latvia=Riga;Lithuania=Vilnius;"
    "England=London;the United Kingdom=London;the United States=Washington;Scotland=Edinburgh;Wales=Cardiff;"
    "Pakistan=Islamabad;Nepal=Kathmandu;Mongolia=Ulaanbaatar;Philippines=Manila;Malaysia=Kuala Lumpur"
)
CAPITALS = dict(pair.split("=") for pair in _CAPITALS.split(";"))
_OPPOSITES = (
    "hot=cold;big=small;up=down;left=right;open=closed;day=night;light=dark;fast=slow;high=low;old=young;new=old;"
    "good=bad;happy=sad;wet=dry;full=empty;hard=soft;early=late;long=short;rich=poor;strong=weak;black=white;"
    "large=small;cold=hot;small=big;true=false;yes=no;win=lose;start=end;near=far;loud=quiet;heavy=light;begin=end;"
    "front=back;inside=outside;first=last;love=hate;wide=narrow;deep=shallow;clean=dirty;alive=dead;north=south"
)
OPPOSITES = dict(pair.split("=") for pair in _OPPOSITES.split(";"))
_FACTS = (
    "sky=blue;grass=green;snow=white;blood=red;coal=black;banana=yellow;lemon=yellow;orange=orange;sun=yellow;"
    "ripe tomato=red;strawberry=red;milk=white;leaf=green;chocolate=brown;cherry=red;elephant=grey;carrot=orange"
)
COLOURS_OF = dict(pair.split("=") for pair in _FACTS.split(";"))
COLOURS = ("red", "green", "blue", "yellow", "orange", "purple", "pink", "brown", "black", "white", "grey", "cyan")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = "January February March April May June July August September October November December"
MONTHS = _MONTHS.split()
COUNTS = {
    "days in a week": 7, "days are in a week": 7, "months in a year": 12, "months are in a year": 12,
    "hours in a day": 24, "hours are in a day": 24, "minutes in an hour": 60, "minutes are in an hour": 60,
    "seconds in a minute": 60, "legs does a spider": 8, "legs does a dog": 4, "legs does an insect": 6,
    "sides does a triangle": 3, "sides does a square": 4, "sides does a hexagon": 6, "letters in the english": 26,
    "continents": 7, "wheels does a car": 4, "legs does a cat": 4, "players in a football team": 11,
    "days in a year": 365, "days are there in a week": 7, "states in the": 50, "cents in a dollar": 100,
}  # fmt: skip
SYMBOLS = {
    "gold": "Au", "silver": "Ag", "iron": "Fe", "oxygen": "O", "hydrogen": "H", "carbon": "C", "sodium": "Na",
    "helium": "He", "lead": "Pb", "copper": "Cu", "water": "H2O", "nitrogen": "N", "potassium": "K",
}  # fmt: skip
_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
NUMBERS = _NUMBERS.split()
LISTS = {
    "colour": COLOURS, "color": COLOURS, "day": DAYS, "month": tuple(MONTHS),
    "fruit": ("apple", "banana", "cherry", "pear", "plum", "grape", "orange", "lemon", "peach", "mango"),
    "animal": ("dog", "cat", "horse", "cow", "sheep", "goat", "lion", "tiger", "bear", "wolf"),
    "planet": ("Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"),
    "city": ("Paris", "London", "Berlin", "Madrid", "Rome", "Vienna", "Oslo", "Lisbon", "Athens", "Dublin"),
    "cities": ("Paris", "London", "Berlin", "Madrid", "Rome", "Vienna", "Oslo", "Lisbon", "Athens", "Dublin"),
    "countries": ("France", "Spain", "Italy", "Japan", "Kenya", "Peru", "Norway", "Egypt", "Chile", "India"),
    "vegetable": ("carrot", "potato", "onion", "cabbage", "pea", "bean", "leek", "spinach", "pumpkin", "turnip"),
    "prime": ("2", "3", "5", "7", "11", "13", "17", "19", "23", "29"),
    "letter": tuple("abcdefghij"),
}  # fmt: skip

_PLAIN = """
a about above across after again against ago air all almost alone along already also although always am among an and
animal another answer any anything apart apple are area arm around as ask at away back bad baker bank be bear because
become bed been before began begin behind being below best better between big bird black blue boat body book both box
boy bread bridge bring broken brother brought brown build built but buy by call called came can capital car care carried
carry castle cat catch cause centre chair change child children church city clean clear clock close cloud coat code cold
colour come common cook cool corner could count country course cross cup cut dark day days decided deep did different do
doctor does dog done door down draw dream drink drive dry each ear early earth east easy eat edge eight else empty end
engine enough evening ever every everyone everything example eye face fact fall family far farm farmer fast father feel
few field fight fill final find fine finish fire first fish five floor flower fly fog follow food foot for forest forget
form found four free fresh friend from front full garden gate gave get girl give given glad glass go goes gold gone good
got great green grew ground group grow had half hall hand happen happy harbour hard has have he head hear heard heart
heavy held help her here high hill him his hold home hope horse hot hour house how hundred i ice idea if important in
inside into iron is island it its job join journey just keep keeper kept key kind king kitchen knew know known lamp land
language lantern large last late later laugh lay lead learn least leave left less let letter library life light like
line list listen little live long look lost lot loud low made main make man many map mark market may me mean meet men
middle might mile milk mind mine minute moment money month moon more morning most mother mountain mouth move much music
must my name narrow near need never new news next night nine no noise none north not note nothing now number of off
often oh old on once one only open or order other our out outside over own page paid paint paper part pass past path
pay people perhaps person picture piece place plan plant play please poem point poor pound power put question quick
quiet quite rain ran reach read ready real really reason red remember repeat rest rich ride right ring rise river road
rock roof room rope round rule run sad safe said sail sailor same sand sang sat save saw say school sea season seat
second secret see seem seen sell send sent set seven several shall she ship shoe shop shore short should show side sign
silver since sing sister sit six size sky sleep slow slowly small smile snow so soft some something sometimes son song
soon sound south space speak spring stand star start station stay step still stone stood stop store storm story street
strong student such sudden summer sun sure sweet swim table take talk tall teach teacher tell ten than that the their
them then there these they thing think third this those though thought thousand three through time tired to today
together told tomorrow too took top toward tower town train tree tried true try turn twelve twenty two uncle under
understand until up upon us use used useful usual valley very village voice wait walk wall want warm was watch water
wave way we weather week well went were west what wheel when where which while white who whole why wide wild will wind
window winter wish with within without woman wonder wood word work world would write year yellow yes yet you young your
ing ed er ly tion ment ness able est ful less ous ive al ity ies es en th st nd ch sh str pre com con pro un re dis
value true false null name type string integer object array def return import print class self len range json python
user system assistant tool function arguments temperature location sorry certainly cannot reply answers exactly number
word words sentence text letters following instructions only user question correct result sum numbers total
"""

COMMON: tuple[str, ...] = tuple(
    dict.fromkeys(
        [word.lower() for word in re.findall(r"[A-Za-z]+", _PLAIN)]
        + [word.lower() for name in (*CAPITALS, *CAPITALS.values(), *DAYS, *MONTHS) for word in name.split()]
        + [word for pair in OPPOSITES.items() for word in pair]
        + [*COLOURS, *NUMBERS, *(word for item in LISTS.values() for word in item if word.isalpha() and len(word) > 1)]
    )
)
