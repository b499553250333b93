// @ts-check
// Writes THIRD_PARTY.md: every package whose code is bundled into dist/, with its licence. `--check` only compares.
import { build } from 'esbuild';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
process.chdir(root);
const FILE = 'THIRD_PARTY.md';

const { metafile } = await build({
  entryPoints: ['src/extension.ts', 'src/client/connect.ts', 'src/webview/main.ts'],
  outdir: 'out/licenses',
  bundle: true,
  write: false,
  metafile: true,
  platform: 'node',
  external: ['vscode'],
  logLevel: 'error',
});
const packages = new Set(
  Object.keys(metafile.inputs).flatMap((path) => {
    const found = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path);
    return found?.[1] ? [found[1]] : [];
  }),
);

const sections = [...packages].sort().map((folder) => {
  const { name, version, license, repository } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file || !license) {
    throw new Error(`${folder} has no licence`);
  }
  const url = typeof repository === 'string' ? repository : (repository?.url ?? '');
  const text = readFileSync(join(folder, file), 'utf8').replace(/\r/g, '').trim();
  return `## ${name} ${version} (${license})\n\n${url.replace(/^git\+/, '')}\n\n\`\`\`text\n${text}\n\`\`\`\n`;
});
const text = [
  '<!-- Made by scripts/licenses.mjs. -->',
  '# Code of others in this extension\n',
  'The Python packages that the language server needs are not part of it; they come from your package index.\n',
  ...sections,
].join('\n');

if (process.argv.includes('--check')) {
  const isCurrent = existsSync(FILE) && readFileSync(FILE, 'utf8') === text;
  console.log(isCurrent ? `${packages.size} packages` : `${FILE} is stale: npm run licenses`);
  process.exit(isCurrent ? 0 : 1);
}
writeFileSync(FILE, text);
console.log(`${FILE}: ${[...packages].map((folder) => folder.replace(/.*node_modules\//, '')).join(', ')}`);
