// @ts-check
// Collects every text that the code shows into l10n/bundle.l10n.json, for translators: `npm run l10n`. With `--check`
// it only says whether that file is as the code has it, and whether package.json and package.nls.json name the same.
import { getL10nJson } from '@vscode/l10n-dev';
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const bundle = join(root, 'l10n', 'bundle.l10n.json');

const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .sort()
  .map((name) => ({ extension: '.ts', contents: readFileSync(join(root, 'src', name), 'utf8') }));
const found = Object.entries(await getL10nJson(sources)).sort(([one], [other]) => (one < other ? -1 : 1));
const text = `${JSON.stringify(Object.fromEntries(found), null, 2)}\n`;

const manifest = readFileSync(join(root, 'package.json'), 'utf8');
const named = new Set([...manifest.matchAll(/"%([\w.-]+)%"/g)].map(([, name]) => String(name)));
const told = new Set(Object.keys(JSON.parse(readFileSync(join(root, 'package.nls.json'), 'utf8'))));
const problems = [
  ...[...named].filter((name) => !told.has(name)).map((name) => `package.nls.json lacks ${name}`),
  ...[...told].filter((name) => !named.has(name)).map((name) => `package.json does not use ${name}`),
];
problems.push(...faultsOf(join(root, 'l10n', 'bundle.l10n.zh-cn.json'), Object.fromEntries(found)));
problems.push(...faultsOf(join(root, 'package.nls.zh-cn.json'), JSON.parse(readFileSync(join(root, 'package.nls.json'), 'utf8'))));
if (!process.argv.includes('--check')) {
  mkdirSync(dirname(bundle), { recursive: true });
  writeFileSync(bundle, text);
} else if (!existsSync(bundle) || readFileSync(bundle, 'utf8') !== text) {
  problems.push('l10n/bundle.l10n.json is not as the code has it: npm run l10n');
}
for (const problem of problems) {
  console.error(problem);
}
process.exit(problems.length > 0 ? 1 : 0);

/**
 * Say what a translation lacks, has too much, or fills in otherwise.
 * @param {string} path
 * @param {Record<string, string | { message: string }>} source
 * @returns {string[]}
 */
function faultsOf(path, source) {
  const name = basename(path);
  /** @type {Record<string, string>} */
  const translated = JSON.parse(readFileSync(path, 'utf8'));
  const filled = (/** @type {string} */ said) => [...said.matchAll(/\{\d+\}|command:[\w.]+|`[^`]+`|\$\([\w-]+\)/g)].map(String).sort().join(' ');
  return [
    ...Object.keys(source).filter((key) => !translated[key]).map((key) => `${name} lacks ${key}`),
    ...Object.keys(translated).filter((key) => !(key in source)).map((key) => `${name} has ${key}, which nothing says`),
    ...Object.entries(source).flatMap(([key, text]) => {
      const [said, other] = [typeof text === 'string' ? text : text.message, translated[key] ?? ''];
      return other && filled(said) !== filled(other) ? [`${name}: ${key} fills in other things`] : [];
    }),
  ];
}
