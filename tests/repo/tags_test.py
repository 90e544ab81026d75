#!/usr/bin/env python3
"""Checks that each tag means one thing: no struct, enum or union tag is defined twice in src/, apps/ and include/.

  tags_test.py          checks the sources of $PAWL_SOURCE, then that planted mistakes are found
  tags_test.py ROOT     checks the sources below ROOT only

Tags that only one source uses count as well, because readers search for a word in the whole tree. Tests are not read:
files named *_test.c, *_test.h, *_testing.h, and testing.h or watching.h of a module's tests.

Prints one line for each tag that is defined twice, with all its places, and exits 1 if there is any.
"""
import os
import re
import sys
import tempfile
from pathlib import Path

TESTS = re.compile(r'(_test\.[ch]|_testing\.h|/testing\.h|/watching\.h)$')
COMMENTS_AND_STRINGS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
DEFINITION = re.compile(r'\b(?:struct|enum|union)\s+(\w+)\s*\{')
LEAST = 500  # tags in this tree: fewer mean that they are no longer found


def tags_of(path):
    """The tags that a file defines, with the numbers of their lines."""
    text = COMMENTS_AND_STRINGS.sub(lambda match: '\n' * match.group().count('\n'), path.read_text(encoding='utf-8'))
    for match in DEFINITION.finditer(text):
        yield match.group(1), text.count('\n', 0, match.start()) + 1


def places_of_tags(root):
    places = {}
    for top in ('include', 'src', 'apps'):
        for path in sorted((root / top).rglob('*.[ch]')):
            if TESTS.search(str(path)):
                continue
            for tag, line in tags_of(path):
                places.setdefault(tag, []).append(f'{path.relative_to(root)}:{line}')
    return places


def check(places):
    return [f'{tag} is defined {len(at)} times: {", ".join(at)}' for tag, at in sorted(places.items()) if len(at) > 1]


PLANTED = {
    'src/a/one.h': 'struct alone {\n  int x;\n};\nstruct declared;\n/* struct alone { */\n',
    'src/a/one.c': '\nstruct part\n{\n  enum { OFF } state;\n};\nstruct part *part_of(struct alone *alone) {\n}\n',
    'src/b/two.c': 'enum part { LEFT, RIGHT };\n',
    'src/b/two_test.c': 'struct alone { int x; };\n',
    'src/b/testing.h': 'struct alone { int x; };\n',
    'apps/c/three.c': 'union part { int x; };\nconst char *text = "struct alone { }";\n',
}
EXPECTED = ['part is defined 3 times: src/a/one.c:2, src/b/two.c:1, apps/c/three.c:1']


def check_planted():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name, text in PLANTED.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding='utf-8')
        found = check(places_of_tags(root))
    return [] if found == EXPECTED else ['the planted mistakes were not found as they should be:', *found]


def main():
    if len(sys.argv) > 1:
        mistakes = check(places_of_tags(Path(sys.argv[1]).resolve()))
    else:
        places = places_of_tags(Path(os.environ['PAWL_SOURCE']).resolve())
        mistakes = check(places) + check_planted()
        if len(places) < LEAST:
            mistakes.append(f'only {len(places)} tags were found')
    print('\n'.join(mistakes) if mistakes else 'every tag is defined once')
    return 1 if mistakes else 0


sys.exit(main())
