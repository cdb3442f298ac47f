#!/usr/bin/env bash
# Builds Hugging Face's tokenizers as the static library that the build tag
# hftokenizers links: build.sh FOLDER puts libtokenizers.a there.
set -euo pipefail

module=github.com/daulet/tokenizers
# Its manifest takes tiktoken-rs, which is not used here, from a branch of a
# fork. The released crate does as well.
released='tiktoken-rs = "=0.7.0"'

mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")"
go mod download "$module"
read -r version source < <(go list -m -f '{{.Version}} {{.Dir}}' "$module")
if [ -f "$folder/libtokenizers.a" ] && [ "$(cat "$folder/libtokenizers.version" 2>/dev/null)" = "$version" ]; then
	exit 0
fi
command -v cargo >/dev/null || { echo "tokenizers: Rust's cargo is not there" >&2; exit 1; }

echo "tokenizers: building $module $version, which takes some minutes" >&2
scratch=$folder/tokenizers-$version
rm -rf "$scratch"
cp -r "$source" "$scratch"
chmod -R u+w "$scratch"
cd "$scratch"
sed -i.orig "s|^tiktoken-rs = .*|$released|" Cargo.toml
awk 'BEGIN { RS = ""; ORS = "\n\n" } !/name = "tiktoken-rs"/' Cargo.lock >Cargo.lock.new
mv Cargo.lock.new Cargo.lock
cargo build --quiet --release
cp target/release/libtokenizers.a "$folder/"
echo "$version" >"$folder/libtokenizers.version"
cd "$folder"
rm -rf "$scratch"
