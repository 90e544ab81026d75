#!/bin/sh
# Installs pawl to a scratch prefix and uses it as a stranger would: a program is built against the shared and the static
# library, by pkg-config and by CMake, and the installed command is run from there. Neither library may offer a symbol
# that is not pawl_*.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix
consumer=$PAWL_SOURCE/tests/install
compiler=${CC:-cc}

fail() {
  echo "$*"
  exit 1
}

cmake --install "$PAWL_BUILD" --prefix "$prefix" >"$scratch/install.log" || fail "$(cat "$scratch/install.log")"
libdir=$(dirname "$(find "$prefix" -name libpawl.a)")
PKG_CONFIG_PATH=$libdir/pkgconfig
export PKG_CONFIG_PATH
version=$(pkg-config --modversion pawl)

for file in bin/pawl include/pawl/pawl.h share/man/man1/pawl.1; do
  test -s "$prefix/$file" || fail "$file was not installed"
done
# The documentation with the pages that README.md links to, and completion for three shells.
for file in share/doc/pawl/README.md share/doc/pawl/LICENSE share/doc/pawl/CHANGELOG.md share/doc/pawl/docs/README.md \
  share/doc/pawl/docs/security.md share/bash-completion/completions/pawl share/zsh/site-functions/_pawl \
  share/fish/vendor_completions.d/pawl.fish; do
  test -s "$prefix/$file" || fail "$file was not installed"
done
"$prefix/bin/pawl" version | grep -q "$version" || fail "the installed command does not say that it is $version"
if find "$prefix/include" -type f ! -path '*/include/pawl/*.h' | grep .; then fail "headers that are not public"; fi

# The symbols that a library offers and that do not begin with pawl_.
strangers() { awk 'NF == 3 && $3 !~ /^pawl_/ { print $3 }' "$1"; }
for library in "$libdir/libpawl.so" "$libdir/libpawl.a"; do
  case $library in *.so) table=-D ;; *) table=-g ;; esac
  nm $table --defined-only --extern-only "$library" >"$scratch/symbols"
  grep -q ' pawl_version$' "$scratch/symbols" || fail "$library does not offer pawl_version"
  test -z "$(strangers "$scratch/symbols")" || fail "$library offers $(strangers "$scratch/symbols")"
  echo "$(basename "$library") offers $(grep -c ' pawl_' "$scratch/symbols") symbols, all of them pawl_*"
done

# Runs one of the programs, and checks by what it asks of the loader that it is linked the way it should be.
try() {
  way=$1 program=$2
  said=$(LD_LIBRARY_PATH=$libdir "$program") || fail "$program failed"
  test "$said" = "$version" || fail "$program says '$said', not $version"
  needs=no
  if readelf -d "$program" | grep -q 'NEEDED.*libpawl'; then needs=yes; fi
  case $way-$needs in
  shared-yes | static-no) echo "$(basename "$(dirname "$program")"), $way: $said" ;;
  *) fail "$program is not linked with the $way library" ;;
  esac
}

mkdir "$scratch/pkg-config"
build() { "$compiler" -Wall -Wextra -Werror "$consumer/consumer.c" -o "$@"; }
# shellcheck disable=SC2046 # options are words
build "$scratch/pkg-config/shared" $(pkg-config --cflags --libs pawl)
try shared "$scratch/pkg-config/shared"
# shellcheck disable=SC2046
build "$scratch/pkg-config/static" $(pkg-config --static --cflags --libs pawl | sed 's/-lpawl/-l:libpawl.a/')
try static "$scratch/pkg-config/static"

cmake -S "$consumer" -B "$scratch/cmake" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$compiler" \
  >"$scratch/cmake.log" 2>&1 || fail "$(cat "$scratch/cmake.log")"
cmake --build "$scratch/cmake" >"$scratch/cmake.log" 2>&1 || fail "$(cat "$scratch/cmake.log")"
try shared "$scratch/cmake/shared"
try static "$scratch/cmake/static"
