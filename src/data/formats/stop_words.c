/* English words that occur in every text and do not tell what it is about: articles, pronouns,
 * prepositions, conjunctions, auxiliary verbs and their contractions, and a few adverbs. In the form that
 * the tokenizer produces (data/formats/tokenizer.h): lower case, with a straight apostrophe. */
#include "data/words.h"

const char pwi_words_english[] =
    "a\nan\nthe\nand\nor\nbut\nnor\nso\nyet\nif\nthan\nthen\nthough\nalthough\nbecause\nwhile\nwhereas\nunless\nuntil\n"
    "till\nsince\n"
    "as\nat\nby\nfor\nfrom\nin\ninto\nof\noff\non\nonto\nout\nover\nto\ntoward\ntowards\nunder\nup\nupon\nwith\nwithin"
    "\nwithout\n"
    "about\nabove\nacross\nafter\nagainst\nalong\namong\naround\nbefore\nbehind\nbelow\nbeneath\nbeside\nbesides\nbetwe"
    "en\nbeyond\n"
    "down\nduring\nexcept\nnear\nper\nthrough\nthroughout\nvia\n"
    "i\nme\nmy\nmine\nmyself\nwe\nus\nour\nours\nourselves\nyou\nyour\nyours\nyourself\nyourselves\nhe\nhim\nhis\nhimse"
    "lf\nshe\nher\n"
    "hers\nherself\nit\nits\nitself\nthey\nthem\ntheir\ntheirs\nthemselves\none\nones\n"
    "this\nthat\nthese\nthose\nwho\nwhom\nwhose\nwhich\nwhat\nwhatever\nwhen\nwhere\nwhy\nhow\nhere\nthere\n"
    "all\nany\nanother\nboth\neach\neither\nenough\nevery\nfew\nfewer\nless\nlittle\nmany\nmore\nmost\nmuch\nneither\nn"
    "o\nnone\nother\n"
    "others\nown\nsame\nseveral\nsome\nsuch\n"
    "am\nare\nis\nwas\nwere\nbe\nbeen\nbeing\nhave\nhas\nhad\nhaving\ndo\ndoes\ndid\ndoing\ndone\ncan\ncould\nmay\nmigh"
    "t\nmust\nshall\n"
    "should\nwill\nwould\nought\ncannot\n"
    "not\nnever\nalso\nagain\nalready\nalways\neven\never\njust\nonly\noften\nonce\nperhaps\nquite\nrather\nreally\nsti"
    "ll\nthus\n"
    "therefore\nhowever\ntoo\nvery\nnow\netc\n"
    "i'm\ni've\ni'd\ni'll\nyou're\nyou've\nyou'd\nyou'll\nhe's\nhe'd\nhe'll\nshe's\nshe'd\nshe'll\nit's\nit'd\nit'"
    "ll\nwe're\nwe've\n"
    "we'd\nwe'll\nthey're\nthey've\nthey'd\nthey'll\nthat's\nthat'll\nthere's\nhere's\nwhat's\nwho's\nwhere's\nhow'"
    "s\nlet's\nisn't\n"
    "aren't\nwasn't\nweren't\nhasn't\nhaven't\nhadn't\ndoesn't\ndon't\ndidn't\ncan't\ncouldn't\nmustn't\nshan'"
    "t\nshouldn't\nwon't\n"
    "wouldn't\nmightn't\nneedn't\nain't\n"
    "im\nive\ndont\ndoesnt\ndidnt\ncant\nwont\nisnt\narent\nwasnt\nyoure\nthats\n";
