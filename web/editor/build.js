// Bundle editor.js and what it uses into ../static/editor.js, their licences beside it.
import { build } from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";

const { metafile } = await build({
  entryPoints: ["editor.js"],
  outfile: "../static/editor.js",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2020",
  metafile: true,
  banner: { js: "/* Built from web/editor; licences in editor-licences.txt */" },
});
const used = Object.keys(metafile.inputs).map((path) => path.match(/node_modules\/((@[^/]+\/)?[^/]+)/)?.[1]);
const licences = [...new Set(used)].filter(Boolean).sort().map((name) => {
  const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`));
  return `${name} ${version}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}\n`;
});
writeFileSync("../static/editor-licences.txt", licences.join(`\n${"-".repeat(72)}\n\n`));
