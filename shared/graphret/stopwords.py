"""English stop words, and whether words can be a name."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

#: Grammatical words, which hold a sentence together.
FUNCTION_WORDS = frozenset(
    """
    a about above across after again against ago all almost along already also although
    always am among an and another any anybody anyone anything are around as at away
    back be became because become been before behind being below beneath beside besides
    between beyond both but by can cannot could did do does doing done down during each
    either else enough etc even ever every everybody everyone everything except few for
    from further get gets getting give given gives go goes going gone got had has have
    having he hence her here hers herself him himself his how however i if in indeed
    inside instead into is it its itself just least less let like ll made make makes
    making many may maybe me might mine more moreover most much must my myself near
    neither never no nobody none nor not nothing now of off often on once one only onto
    or other others otherwise ought our ours ourselves out outside over own per perhaps
    quite rather re really s same seem seems shall she should since so some somebody
    someone something sometimes still such t than that the their theirs them themselves
    then there therefore these they this those though through throughout thus till to
    together too toward towards two under underneath unless until up upon us ve very via
    was we well were what whatever when whenever where whereas wherever whether which
    whichever while who whoever whole whom whose why will with within without would yes
    yet you your yours yourself yourselves
""".split()
)

#: Words for common things, acts and qualities, and the common words of questions.
COMMON_WORDS = frozenset(
    """
    able act acted acting actor actors actress actresses add added age aged air allow am
    animal answer appear appeared appears apply area arm art ask asked author authors
    award awards baby bad ball band base based bed began begin beginning best better big
    bird bit black blue board boat body book books born bought box boy boys bring
    brother brothers brought build building built buy call called calls came car care
    carry case cast cat cause center certain change character characters check child
    children choose city class clear close cold color come comes common company compare
    complete contain contains cost could country countries course cover create created
    creates creator creators cross cut dark date dates daughter day days dead deal death
    decide describe described describes design designed die died different direct
    directed director directors directs dog door draw dream drive drop drug drugs early
    earth easy eat education effect end ended ends english entire episode episodes eye
    eyes face fact fall falls family famous far fast father feature featured features
    feel feet felt field figure fill film films final find fine fire first fish five
    follow food foot force form found four free friend friends full fun game games gave
    gene general genes genre genres girl girls gold good great green ground group groups
    grow guy half hand hands happen hard head hear heard heart heat help high hit hold
    home hope hot hour hours house human hundred husband idea image include included
    includes item items job keep kept key kid kids kind kinds king knew know known knows
    land language languages large last late later laugh law lay lead leader leading
    learn leave led left letter life light line list listed little live lived lives
    living local long look looks lost lot love low main make man map mark matter mean
    means meant men met middle mile mind minute miss money month months moon morning
    mother mountain move moved movie movies music name named names nation nature need
    new next nice night north note nothing notice number numbers object occupation
    office old open order page paper parent parents part particular parts party pass
    pattern pay people perform person persons piece place places plan plant play played
    player plays please plot point popular position possible power present primary
    problem produce produced producer producers product products program protein provide
    publish published put queen question questions quick ran rate rated rating ratings
    reach read ready real reason record red related relate release released releases
    remember rest result results right river road rock role roles room round rule run
    said sale saw say says school science screenplay screenplays screenwriter
    screenwriters script scripts sea season second secret see seen send sense sentence
    serve set seven several sex shape share shared shares ship short show shown shows
    side similar simple sing single sister sisters sit six size sleep small song songs
    sound south space speak special spell spoke spoken stand star starred starring stars
    start started state states stay step stood stop story stories street strong study
    subject sun sure table take taken takes talk tell ten test thank thing things think
    third thought three time times title titles today told took top topic topics total
    town train travel tree trip true try turn type types understand use used uses usual
    view voice vote votes wait walk wall want war was watch watched water way ways week
    weeks went west whole wife win wind winner wish woman women wonder word words work
    worked works world would write writer writers writes written wrote year years young
    zero
""".split()
)

#: All words that a question may have without naming anything.
STOP_WORDS = FUNCTION_WORDS | COMMON_WORDS

#: Words that make a sentence a question, and are not part of its content.
QUESTION_WORDS = frozenset(
    """
    what which who whom whose when where why how many much do does did done has have had
    were been being can could may might should would
""".split()
)

#: Words that two names may differ by and still be one. More of them would lose names of
#: films and books, such as "The Others".
NAME_STOP_WORDS = frozenset(
    "the a an of in on at to and or for by is was are with from as it its this that"
    " be".split()
)

#: Meaningless words in the names of relations: "has_genre", "is in".
RELATION_STOP_WORDS = frozenset(
    "has have is are was be by in of to from with on at the a an for and or as".split()
)


def is_informative(words: Sequence[str], stop_words: AbstractSet[str]) -> bool:
    """Whether words can be a name by themselves.

    Stop words, single letters and numbers alone cannot. Two Chinese characters or kana,
    which are a word each, are enough, and so is a code such as “P-1234”.
    """
    if sum(not word.isascii() and word.isalpha() for word in words) > 1:
        return True
    if any(
        word not in stop_words and len(word) > 1 and not word.isdigit()
        for word in words
    ):
        return True
    return (
        len(words) == 2
        and len(words[0]) == 1
        and words[0].isalpha()
        and words[1].isdigit()
        and len(words[1]) > 2
    )
