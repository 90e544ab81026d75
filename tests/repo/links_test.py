#!/usr/bin/env python3
"""Checks what the documentation points at.

  links_test.py          checks the pages of $PAWL_SOURCE, then that planted mistakes are found
  links_test.py ROOT     checks the pages below ROOT only

Pages are README.md, CONTRIBUTING.md, docs/*.md, and the README.md of each folder below src/, apps/ and examples/.

  - A relative link leads to a file or folder that exists.
  - A link with #anchor leads to a heading of that page, spelled as GitHub makes anchors from headings.
  - `folder/file.c`, in backquotes, is a file: below the root, src/, include/, or beside the page.
  - `file.c` is a file in the folder of that README.md; on other pages, one of that name is somewhere in the tree.
  - The README.md of a folder names every .c and .h in it, tests apart; `file.h` stands for file.c as well.
  - `folder/file.c:function` is a function that is defined in that file. architecture.md follows a push and a training
    round by such names.
  - docs/faults.md: below "Which test shows it", `folder.name` is a test, and `words_with_underscores` in the parentheses
    behind it are functions of that test; above, `word.word` is an event that a source logs.

Prints one line for each mistake and exits 1 if there is any.
"""
import os
import re
import sys
import tempfile
from pathlib import Path

LINK = re.compile(r'\]\(([^()\s]+)(?:\s+"[^"]*")?\)')  # its text may have begun in the line before
CODE = re.compile(r'`([^`\s]+)`')
SOURCE = re.compile(r'^([\w./-]+\.(?:c|h|md|py|sh))(?::(\w+))?$')
TEST = re.compile(r'`([a-z0-9_]+(?:\.[a-z0-9_]+)+)`(?: \(([^()]*)\))?')
FUNCTION = re.compile(r'`([a-z0-9]+(?:_[a-z0-9]+)+)`')
EVENT = re.compile(r'`([a-z]+\.[a-z_]+)[ `]')
WALK_MIN = 30  # names of functions in docs/architecture.md: fewer mean that they are no longer written so


def pages(root):
    found = [root / 'README.md', root / 'CONTRIBUTING.md', *sorted((root / 'docs').glob('*.md'))]
    for top in ('src', 'apps', 'examples'):
        found += sorted((root / top).rglob('README.md'))
    return [page for page in found if page.is_file()]


def lines_of(page):
    """Its lines with their numbers and whether they are inside of a block of code."""
    fenced = False
    for number, line in enumerate(page.read_text(encoding='utf-8').splitlines(), 1):
        if line.lstrip().startswith('```'):
            fenced = not fenced
            continue
        yield number, line, fenced


def anchors_of(page):
    anchors = set()
    for _, line, fenced in lines_of(page):
        if fenced or not re.match(r'#{1,6} ', line):
            continue
        title = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', line.lstrip('#').strip())
        slug = re.sub(r'[^\w\- ]', '', title.lower()).replace(' ', '-')
        anchor, again = slug, 0
        while anchor in anchors:
            again += 1
            anchor = f'{slug}-{again}'
        anchors.add(anchor)
    return anchors


def defines(path, function):
    text = path.read_text(encoding='utf-8')
    return re.search(rf'^[A-Za-z_][\w \t*]*\b{function}\([^;{{}}]*\)\s*\{{', text, re.MULTILINE) is not None


def check_link(page, target):
    if re.match(r'[a-z]+:', target):
        return None
    name, _, anchor = target.partition('#')
    there = (page.parent / name).resolve() if name else page
    if not there.exists():
        return f'{target}: no such file'
    if anchor and there.suffix == '.md' and anchor not in anchors_of(there):
        return f'{target}: no such heading'
    return None


def names_of_sources(root):
    names = set()
    for top in ('src', 'include', 'apps', 'tests', 'bench', 'fuzz', 'examples', 'python', 'docs', '.'):
        found = (root / top).glob('*') if top == '.' else (root / top).rglob('*')
        names.update(path.name for path in found)
    return names


def find_source(root, page, name):
    beside = page.name == 'README.md' and page.parent != root
    places = [page.parent] if beside else []
    places += [root, root / 'src', root / 'include'] if '/' in name else []
    return next((place / name for place in places if (place / name).is_file()), None)


def check_source(root, names, page, text):
    match = SOURCE.match(text)
    if not match:
        return None
    path = find_source(root, page, match.group(1))
    if not path and (page.name == 'README.md' and page.parent != root or text not in names):
        return f'{text}: no such file'
    if not path:
        return None
    if match.group(2) and not defines(path, match.group(2)):
        return f'{text}: no such function'
    return None


def check_listing(root, page):
    """A folder's README.md names its sources."""
    if page.name != 'README.md' or page.parent in (root, root / 'docs'):
        return []
    stems = {Path(name).stem for name in re.findall(r'[\w./-]+\.[ch]\b', page.read_text(encoding='utf-8'))
             if '/' not in name}
    found = sorted(path.name for path in page.parent.glob('*.[ch]') if not re.search(r'_test(ing)?\.[ch]$', path.name))
    return [f'{page.relative_to(root)}: does not name {name}' for name in found if Path(name).stem not in stems]


def find_test(root, name):
    stem = name.replace('.', '/')
    places = [root / top / (stem + end) for top in ('src', 'tests', 'apps') for end in ('_test.c', '_test.sh', '_test.py')]
    return next((place for place in places if place.is_file()), None)


def check_faults(root):
    """The tests and events that the promises about faults name."""
    page = root / 'docs/faults.md'
    if not page.is_file():
        return []
    promises, _, tests = page.read_text(encoding='utf-8').partition('## Which test shows it')
    mistakes = [] if TEST.search(tests) else ['docs/faults.md: no test is named']
    for name, inside in TEST.findall(tests):
        path = find_test(root, name)
        if not path:
            mistakes.append(f'docs/faults.md: {name}: no such test')
            continue
        text = path.read_text(encoding='utf-8')
        mistakes += [f'docs/faults.md: {name}: no test {function}' for function in FUNCTION.findall(inside)
                     if f'test_{function}(' not in text]
    sources = ''.join(path.read_text(encoding='utf-8') for path in sorted((root / 'src').rglob('*.c')))
    mistakes += [f'docs/faults.md: {event}: no such event' for event in EVENT.findall(promises)
                 if f'"{event}"' not in sources and not find_test(root, event)]
    return mistakes


def check(root):
    mistakes, functions, names = [], 0, names_of_sources(root)
    for page in pages(root):
        name = page.relative_to(root)
        mistakes += check_listing(root, page)
        for number, line, fenced in lines_of(page):
            if fenced:
                continue
            found = [check_link(page, target) for target in LINK.findall(re.sub(r'`[^`]*`', '', line))]
            for text in CODE.findall(line):
                found.append(check_source(root, names, page, text))
                functions += str(name) == 'docs/architecture.md' and re.match(r'.+\.c:\w+$', text) is not None
            mistakes += [f'{name}:{number}: {mistake}' for mistake in found if mistake]
    mistakes += check_faults(root)
    if functions < WALK_MIN:
        mistakes.append(f'docs/architecture.md: {functions} functions are named, fewer than {WALK_MIN}')
    return mistakes


PLANTED = {
    'README.md': '# Top\n[a](docs/a.md#the-first-part) [`b`](docs/b.md)\n```\n[c](docs/c.md)\n```\n',
    'docs/a.md': '# A\n## The first, `part`\n[x\ny](#nowhere) [z](../README.md#top) `src/m/one.c` `m/two.c` `six.c` `one.c`\n',
    'docs/architecture.md': '`src/m/one.c:there`\n' * WALK_MIN + '`src/m/one.c:declared`\n',
    'docs/faults.md': '# F\n`m.gone` `m.here why=X`\n## Which test shows it\n`m.four` (`it_works`,\n`it_fails`), `m.five`\n',
    'src/m/README.md': '`one.c` `three.c`\n',
    'src/m/four.c': 'int four;\n',
    'src/m/four_test.c': 'void test_it_works(void);\n',
    'src/m/one.c': '// "m.here"\nint declared(void);\nstatic int there(int a,\n                 int b) {\n  return a + b;\n}\n',
}
EXPECTED = [
    'README.md:2: docs/b.md: no such file',
    'docs/a.md:4: #nowhere: no such heading',
    'docs/a.md:4: m/two.c: no such file',
    'docs/a.md:4: six.c: no such file',
    f'docs/architecture.md:{WALK_MIN + 1}: src/m/one.c:declared: no such function',
    'src/m/README.md: does not name four.c',
    'src/m/README.md:1: three.c: no such file',
    'docs/faults.md: m.four: no test it_fails',
    'docs/faults.md: m.five: no such test',
    'docs/faults.md: m.gone: no such event',
]


def check_planted():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name, text in PLANTED.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding='utf-8')
        found = check(root)
        if found != EXPECTED:
            return ['the planted mistakes were not found as they should be:', *found]
        (root / 'docs/architecture.md').write_text('nothing\n', encoding='utf-8')
        return [] if any('fewer than' in line for line in check(root)) else ['a page without functions was accepted']


def main():
    if len(sys.argv) > 1:
        mistakes = check(Path(sys.argv[1]).resolve())
    else:
        mistakes = check(Path(os.environ['PAWL_SOURCE']).resolve()) + check_planted()
    print('\n'.join(mistakes) if mistakes else 'every link, heading, file and function exists')
    return 1 if mistakes else 0


sys.exit(main())
