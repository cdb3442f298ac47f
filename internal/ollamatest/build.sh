#!/usr/bin/env bash
# build.sh DIR puts a real Ollama into DIR/ollama: a link to the one on the
# PATH, else a build of the module that ollama.mod names. It does nothing when
# DIR/ollama is up to date. STOPGAP_BUILD_OLLAMA=1 ignores the PATH.
#
# Ollama's module archive lacks three headers of other projects: nlohmann/json
# and stb come from Debian's packages (installed, or unpacked below DIR where
# that needs no root), miniaudio from the module malgo.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
go=${GO:-go}
mod=$here/ollama.mod

say() { echo "ollama: $*" >&2; }
die() {
	say "$1"
	[ $# -lt 2 ] || echo "hint: $2" >&2
	exit 1
}

[ $# = 1 ] || die "usage: build.sh DIR"
mkdir -p "$1"
dir=$(cd "$1" && pwd)
binary=$dir/ollama
stamp=$dir/ollama.stamp

# compiles HEADER [FLAG...] reports whether the C++ compiler finds the header.
compiles() {
	local header=$1
	shift
	echo "#include <$header>" | $cxx "$@" -x c++ -fsyntax-only - 2>/dev/null
}

headers_found() { compiles nlohmann/json.hpp "$@" && compiles stb/stb_image.h "$@"; }

# unpack_headers fetches the packages and unpacks them into $1, without root:
# apt keeps its lists below $1 instead of the system's folders.
unpack_headers() {
	local into=$1
	local apt=(apt-get -qq -o "Dir::State=$into/apt" -o "Dir::Cache=$into/apt/cache"
		-o Dir::State::status=/var/lib/dpkg/status -o Debug::NoLocking=1)
	mkdir -p "$into/apt/lists/partial" "$into/apt/cache/archives/partial"
	(
		cd "$into"
		"${apt[@]}" update
		"${apt[@]}" download nlohmann-json3-dev libstb-dev
		for p in ./*.deb; do dpkg -x "$p" .; done
		rm -rf ./*.deb apt
	) >&2
}

# find_headers makes nlohmann/json and stb known to the compiler.
find_headers() {
	if headers_found; then
		return
	fi
	if ! command -v apt-get >/dev/null; then
		die "the headers nlohmann/json.hpp and stb/stb_image.h are missing" \
			"install nlohmann-json and stb, or put an ollama on the PATH"
	fi
	if [ "$(id -u)" = 0 ]; then
		say "installing nlohmann-json3-dev and libstb-dev"
		export DEBIAN_FRONTEND=noninteractive
		{ apt-get -qq update && apt-get -qq install -y --no-install-recommends nlohmann-json3-dev libstb-dev; } >&2 || true
		if headers_found; then
			return
		fi
	fi
	local deps=$dir/deps/debian
	if ! headers_found "-I$deps/usr/include"; then
		say "unpacking nlohmann-json3-dev and libstb-dev into $deps"
		unpack_headers "$deps" || true
	fi
	flags+=("-I$deps/usr/include")
	headers_found "${flags[@]}" || die "the headers nlohmann/json.hpp and stb/stb_image.h are missing" \
		"sudo apt-get install nlohmann-json3-dev libstb-dev"
}

# find_miniaudio gives the compiler the folder of malgo under the name that
# Ollama includes it by.
find_miniaudio() {
	cd "$root"
	"$go" mod download -modfile="$mod" github.com/gen2brain/malgo
	mkdir -p "$dir/deps/include"
	ln -sfn "$("$go" list -modfile="$mod" -m -f '{{.Dir}}' github.com/gen2brain/malgo)" "$dir/deps/include/miniaudio"
	flags+=("-I$dir/deps/include")
}

# build compiles Ollama and tells about it; the whole log is in DIR/ollama.log.
build() {
	local began=$SECONDS
	say "building $version from its Go module: about 6 minutes on two cores, once"
	cd "$root"
	CGO_ENABLED=1 CGO_CPPFLAGS="${flags[*]} ${CGO_CPPFLAGS:-}" \
		"$go" build -v -mod=readonly -modfile="$mod" -o "$binary.new" github.com/ollama/ollama 2>&1 |
		while IFS= read -r line; do
			echo "$line"
			[[ $line != github.com/ollama/* ]] || printf '%6d s  %s\n' $((SECONDS - began)) "$line" >&2
		done >"$dir/ollama.log" || {
		tail -n 30 "$dir/ollama.log" >&2
		die "the build failed; the whole log is in $dir/ollama.log"
	}
	mv "$binary.new" "$binary"
	echo "$wanted" >"$stamp"
	say "built $version in $((SECONDS - began)) s"
}

found=$(command -v ollama || true)
# DIR itself may be on the PATH: what was built there is not found but ours.
if [ "${STOPGAP_BUILD_OLLAMA:-}" != 1 ] && [ -n "$found" ] && { [ -L "$binary" ] || [ ! "$found" -ef "$binary" ]; }; then
	ln -sfn "$(readlink -f "$found")" "$binary"
	rm -f "$stamp"
	say "using $found"
	exit 0
fi

command -v "$go" >/dev/null || die "there is no Go: $go"
version="$(awk '$1 == "github.com/ollama/ollama" { print "Ollama " $2 }' "$mod")"
wanted="$version $(cksum <"$mod") $("$go" env GOVERSION GOOS GOARCH | tr '\n' ' ')"
if [ -x "$binary" ] && [ ! -L "$binary" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
	exit 0
fi
cc=$("$go" env CC)
cxx=$("$go" env CXX)
for c in "$cc" "$cxx"; do
	command -v "${c%% *}" >/dev/null || die "there is no C++ compiler: $c" \
		"install one (apt-get install g++), or put an ollama on the PATH"
done
flags=()
find_headers
find_miniaudio
build
