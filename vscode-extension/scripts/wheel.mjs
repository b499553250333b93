// @ts-check
// Builds the wheel of dsmigrate from the repository into bundled/, with the releases and checksums of what it needs.
// PYTHON chooses the interpreter that pip builds with.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const repository = join(root, '..');
const bundled = join(root, 'bundled');
/** What only building the wheel needs, which happens here. */
const BUILD_ONLY = new Set(['hatchling', 'pathspec', 'pluggy', 'tomlkit', 'trove-classifiers']);

rmSync(bundled, { recursive: true, force: true });
mkdirSync(bundled);
const python = process.env.PYTHON || (process.platform === 'win32' ? 'python' : 'python3');
const args = ['-m', 'pip', '--disable-pip-version-check', 'wheel', '--quiet', '--no-deps', '--wheel-dir', bundled];
const { status, error } = spawnSync(python, [...args, repository], {
  stdio: 'inherit',
  env: { ...process.env, SOURCE_DATE_EPOCH: '315532800' }, // the same sources make the same bytes
});
if (status !== 0) {
  console.error(`the wheel could not be built with ${python}: ${error ?? status}`);
  process.exit(1);
}

/** A requirement begins at the margin; its checksums are indented. */
const pinned = readFileSync(join(repository, '.ci', 'action-requirements.txt'), 'utf8')
  .split(/\n(?=[a-z])/i)
  .filter((block) => !block.startsWith('#') && !BUILD_ONLY.has(block.split('==')[0] ?? ''));
writeFileSync(join(bundled, 'requirements.txt'), `${pinned.join('\n').trimEnd()}\n`);

const extension = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version;
const wheel = readdirSync(bundled).find((name) => name.endsWith('.whl')) ?? '';
if (wheel.split('-')[1] !== extension) {
  console.error(`the extension is ${extension}, and the wheel is ${wheel}`);
  process.exit(1);
}
console.log(`bundled/${wheel}`);
