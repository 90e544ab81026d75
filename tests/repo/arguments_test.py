#!/usr/bin/env python3
"""Checks that no call has an argument that may be read before another argument of the same call sets it, as in
finish(start(&task), task): C leaves the order to the compiler.

  arguments_test.py          checks the sources of $PAWL_SOURCE, then that planted mistakes are found
  arguments_test.py ROOT     checks the sources below ROOT only

Finds calls in which one argument is a variable and another one is a call that is handed its address. Prints each
with its place, and exits 1 if there is any.
"""
import os
import re
import sys
import tempfile
from pathlib import Path

COMMENTS_AND_STRINGS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
CALL = re.compile(r'\b([A-Za-z_]\w*)\s*\(')
HANDED = re.compile(r'\w\s*\([^()]*&\s*([A-Za-z_]\w*)\s*[,)]')
FOLDERS = ('include', 'src', 'apps', 'bench', 'examples', 'tests', 'fuzz')
LEAST = 50000  # calls in this tree: fewer mean that they are no longer found


def arguments_at(text, begin):
    """The arguments of the call whose parenthesis is at `begin`."""
    found, depth, start = [], 0, begin + 1
    for at in range(begin, len(text)):
        if text[at] in '([{':
            depth += 1
        elif text[at] in ')]}':
            depth -= 1
            if depth == 0:
                return found + [text[start:at]]
        elif text[at] == ',' and depth == 1:
            found.append(text[start:at])
            start = at + 1
    return found


def mistakes_in(path):
    """The number of calls, and the mistakes as pairs of a line and a sentence."""
    text = COMMENTS_AND_STRINGS.sub(lambda match: '\n' * match.group().count('\n'), path.read_text(encoding='utf-8'))
    calls, mistakes = 0, []
    for call in CALL.finditer(text):
        calls += 1
        arguments = [argument.strip() for argument in arguments_at(text, call.end() - 1)]
        for argument in arguments:
            for name in HANDED.findall(argument):
                if name in arguments:
                    line = text.count('\n', 0, call.start()) + 1
                    mistakes.append((line, f'{call.group(1)} may read {name} before another argument sets it'))
    return calls, mistakes


def check(root):
    """Returns the number of calls and the lines to print."""
    calls, lines = 0, []
    for top in FOLDERS:
        for path in sorted((root / top).rglob('*.[ch]')):
            count, mistakes = mistakes_in(path)
            calls += count
            lines += [f'{path.relative_to(root)}:{line}: {text}' for line, text in mistakes]
    return calls, lines


def check_planted():
    """Mistakes are found, and what only looks like one is not."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / 'src').mkdir()
        (Path(folder) / 'src' / 'planted.c').write_text(
            'a = finish(here, start(vector, &task), task, "clear");\n'
            'b = explain(decode(bytes,\n            &why),\n  why);\n'
            'c = bind(end, (struct sockaddr *)&address, sizeof address);\n'
            'd = start(&task); /* finish(start(&task), task) */\n'
            'e = both(first(&one), two);\n', encoding='utf-8')
        lines = check(Path(folder))[1]
        if [line.split(': ')[0] for line in lines] != ['src/planted.c:1', 'src/planted.c:2']:
            sys.exit(f'planted mistakes were not found: {lines}')


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ['PAWL_SOURCE'])
    calls, lines = check(root)
    print('\n'.join(lines))
    if lines:
        sys.exit(1)
    if len(sys.argv) == 1:
        if calls < LEAST:
            sys.exit(f'only {calls} calls were found')
        check_planted()


if __name__ == '__main__':
    main()
