#!/bin/sh
# Reads from the ELF files how they were hardened: whatever a flag was meant to do, this is what the programs have.
# Usage: hardening_test.sh COMPILER
set -eu
compiler=$1
cd "$PAWL_BUILD"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
wrong() {
  echo "hardening: $*"
  failed=1
}

# has FILE WHAT PATTERN READELF-OPTION...: readelf's output has a line that matches.
has() {
  file=$1 what=$2 pattern=$3
  shift 3
  readelf -W "$@" "$file" >"$work/out"
  grep -Eq -- "$pattern" "$work/out" || wrong "$file has no $what"
}

# Which note says that indirect jumps and returns are guarded; empty where the processor or the compiler has no such thing.
guard=
case $(uname -m) in
x86_64) guard='IBT, SHSTK' flag=-fcf-protection=full ;;
aarch64) guard='BTI, PAC' flag=-mbranch-protection=standard ;;
esac
if [ -n "$guard" ]; then
  echo 'int nothing(void) { return 0; }' >"$work/one.c"
  if ! "$compiler" -Werror "$flag" -c -o "$work/one.o" "$work/one.c" 2>/dev/null; then guard=; fi
fi

common() {
  has "$1" 'segment that is read-only after relocation' 'GNU_RELRO' -l
  has "$1" 'immediate binding' 'BIND_NOW|FLAGS.*NOW' -d
  has "$1" 'stack that cannot be executed' 'GNU_STACK.* RW ' -l
  has "$1" 'position-independent code' 'Type: *DYN' -h
}

checked=0
for file in pawl libpawl.so examples/hello examples/functions/countmin.so; do
  [ -e "$file" ] || {
    wrong "$file was not built"
    continue
  }
  common "$file"
  checked=$((checked + 1))
done
# __stack_chk_fail is not a checked call: it comes with the stack protector.
for file in pawl libpawl.so; do
  has "$file" 'stack protector' 'UND __stack_chk_fail' --dyn-syms
  has "$file" 'checked calls of the C library' 'UND __(mem|str|v?s?n?printf|v?fprintf)[a-z]*_chk' --dyn-syms
done

# The linker keeps the note of guarded jumps only if every object has it, those of the C library too: so the objects are asked.
if [ -n "$guard" ]; then
  (cd "$work" && ar x "$PAWL_BUILD/libpawl.a")
  for object in "$work"/pawl_one*; do has "$object" "guarded jumps ($guard)" "$guard" -n; done
fi
[ "$checked" -gt 0 ] || wrong 'nothing was there to look at'
[ $failed = 0 ] && echo "$checked files: read-only relocations, immediate binding, stack protector, checked calls${guard:+, $guard}"
exit $failed
