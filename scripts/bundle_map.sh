#!/bin/sh
# Bundles regl-scatterplot, which draws the map of embeddings, into one file that is committed with the licences of all
# that is in it. Needs node and npm; users need neither. Run it to move to another version:
#   sh scripts/bundle_map.sh 1.16.0
set -eu
version=${1:-1.16.0}
esbuild=0.28.2
kdbush=4.0.2
simplify=1.2.4
target=$(cd "$(dirname "$0")/.." && pwd)/src/crosslens/web/map/static/vendor
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
printf '{"private": true}\n' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts "regl-scatterplot@$version" "kdbush@$kdbush" "simplify-js@$simplify" "esbuild@$esbuild"
printf 'export { default as createScatterplot } from "regl-scatterplot";\n' > entry.js
rm -f "$target"/regl-scatterplot-*
npx esbuild entry.js --bundle --minify --format=iife --global-name=ReglScatterplot --target=es2020 \
    --legal-comments=none --outfile="$target/regl-scatterplot-$version.js"
# The licences of the library and of all it depends on, which its own distribution already holds; kdbush and simplify-js are copied there.
node -e '
const fs = require("fs"), path = require("path");
const packages = fs.readdirSync("node_modules").flatMap((own) =>
  own.startsWith("@") ? fs.readdirSync("node_modules/" + own).map((part) => own + "/" + part) : [own]);
const names = packages.filter((own) => !own.startsWith(".") && !own.includes("esbuild"));
const texts = names.sort().map((own) => {
  const folder = path.join("node_modules", own), about = JSON.parse(fs.readFileSync(path.join(folder, "package.json")));
  const file = fs.readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error("no licence text in " + own);
  return own + " " + about.version + " (" + about.license + ")\n\n" + fs.readFileSync(path.join(folder, file), "utf8").trim() + "\n";
});
fs.writeFileSync(process.argv[1], texts.join("\n" + "-".repeat(80) + "\n\n"));
' "$target/regl-scatterplot-$version.LICENSES.txt"
ls -l "$target"
