#!/usr/bin/env node
// Makes analysis/fabbbr_analysis/report/bundle: plotly.js with the trace types that our pages draw and no others.
//
//     node scripts/make-plotly.mjs
//
// It asks the package registry for the releases named here (npm's ordinary client), takes the descriptions of attributes
// out of plotly.js, which its own bundles do without too, and puts the rest together with esbuild. Run it when plotly.py
// speaks another plotly.js, or when a figure draws a trace type that is not in TRACES.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const RELEASES = { "plotly.js": "4.1.1", esbuild: "0.28.2", acorn: "8.15.0" };
const TRACES = ["scatter", "heatmap"];
const BUNDLE = fileURLToPath(new URL("../analysis/fabbbr_analysis/report/bundle/", import.meta.url));

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "make-plotly-"));
const within = (...names) => path.join(folder, ...names);

function install() {
  fs.writeFileSync(within("package.json"), JSON.stringify({ private: true, dependencies: RELEASES }));
  execFileSync("npm", ["install", "--no-audit", "--no-fund"], { cwd: folder, stdio: "inherit" });
}

/** Take the text of every `description: …` out of the attributes in these sources: a page has no use for it. */
function withoutDescriptions(sources) {
  const { parse } = createRequire(within("package.json"))("acorn");
  for (const name of fs.readdirSync(sources, { recursive: true })) {
    const file = path.join(sources, name);
    if (!name.endsWith(".js") || !/\bdescription\s*:/.test(fs.readFileSync(file, "utf8"))) continue;
    let text = fs.readFileSync(file, "utf8");
    const found = descriptions(parse(text, { ecmaVersion: "latest", allowReturnOutsideFunction: true }));
    for (const { start, end } of found.sort((a, b) => b.start - a.start)) {
      text = `${text.slice(0, start)}""${text.slice(end)}`;
    }
    fs.writeFileSync(file, text);
  }
}

function descriptions(node) {
  if (node.type === "ObjectPattern") return [];
  const isDescription = (each) =>
    each.type === "Property" && !each.computed && !each.shorthand && each.key.name === "description";
  const own = node.type === "ObjectExpression" ? node.properties.filter(isDescription) : [];
  const below = Object.values(node)
    .flat()
    .filter((child) => typeof child?.type === "string" && !own.includes(child));
  return [...own.map((each) => each.value), ...below.flatMap(descriptions)];
}

function putTogether() {
  const traces = TRACES.map((name) => `require("plotly.js/lib/${name}")`).join(", ");
  fs.writeFileSync(
    within("entry.cjs"),
    `const Plotly = require("plotly.js/lib/core"); Plotly.register([${traces}]); module.exports = Plotly;`,
  );
  const banner = `/* plotly.js ${RELEASES["plotly.js"]}, only: ${TRACES.join(", ")}. MIT licence; see LICENCES.txt beside this file. */`;
  execFileSync(
    within("node_modules", ".bin", "esbuild"),
    [
      "entry.cjs", "--bundle", "--minify", "--format=iife", "--global-name=Plotly", "--define:global=window",
      "--define:define.amd=false", "--target=es2020", "--legal-comments=none", "--outfile=plotly.min.js",
      "--metafile=parts.json", `--banner:js=${banner}`, "--log-level=error",
    ],
    { cwd: folder, stdio: "inherit" },
  );
}

/** The licences of every package that has a part in the bundle. */
function licences() {
  const { inputs } = JSON.parse(fs.readFileSync(within("parts.json"), "utf8")).outputs["plotly.min.js"];
  const used = Object.keys(inputs).filter((name) => inputs[name].bytesInOutput > 0);
  const roots = used.map((name) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(name)?.[0]);
  return [...new Set(roots.filter(Boolean))].sort().map((root) => {
    const about = JSON.parse(fs.readFileSync(within(root, "package.json"), "utf8"));
    const file = fs.readdirSync(within(root)).find((name) => /^licen[cs]e/i.test(name));
    const words = file ? fs.readFileSync(within(root, file), "utf8").trim() : "(the package has no licence file)";
    return `${about.name} ${about.version}: ${about.license ?? "see below"}\n\n${words}\n`;
  });
}

try {
  install();
  withoutDescriptions(within("node_modules", "plotly.js", "src"));
  putTogether();
  const script = fs.readFileSync(within("plotly.min.js"));
  const about = {
    "plotly.js": RELEASES["plotly.js"],
    traces: TRACES,
    sha256: createHash("sha256").update(script).digest("hex"),
  };
  fs.mkdirSync(BUNDLE, { recursive: true });
  fs.writeFileSync(path.join(BUNDLE, "plotly.min.js"), script);
  fs.writeFileSync(path.join(BUNDLE, "bundle.json"), `${JSON.stringify(about, null, 2)}\n`);
  fs.writeFileSync(path.join(BUNDLE, "LICENCES.txt"), licences().join(`\n${"-".repeat(80)}\n\n`));
} finally {
  fs.rmSync(folder, { recursive: true });
}
