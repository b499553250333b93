// @ts-check
// Runs the suites under test/host/suites in the extension host of the real VS Code, with the .vsix installed in an
// empty profile. `node test/host.mjs [PROFILE…] [-g PATTERN]`; DSMIGRATE_TEST_PYTHON names a Python that has dsmigrate.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { install } from './install.mjs';
import { PROFILES } from './profiles.mjs';
import { root, start } from './support/profile.mjs';
import { address, browser } from './support/window.mjs';

const LIMIT = 900_000;
/** Windows at a time: most of what they do is waiting. */
const AT_ONCE = 2;

/**
 * @typedef {{ title: string, state: 'passed' | 'failed' | 'pending', ms: number, error?: string }} Test
 * @typedef {{ profile: string, seconds: number, tests: Test[], error?: string }} Run
 */

/**
 * Run the suites of one profile.
 * @param {string} name
 * @param {import('./profiles.mjs').HostProfile} wanted
 * @param {import('playwright-core').Browser} chromium
 * @param {string} [grep]
 * @returns {Promise<Run>}
 */
export async function run(name, wanted, chromium, grep = '') {
  const began = performance.now();
  const results = join(root, 'out', `results-${name}.json`);
  mkdirSync(join(root, 'out'), { recursive: true });
  writeFileSync(results, '[]');
  const profile = await start({
    ...wanted,
    env: {
      ...wanted.env,
      DSMIGRATE_SUITES: wanted.suites.join(','),
      DSMIGRATE_RESULTS: results,
      DSMIGRATE_GREP: grep,
    },
  });
  const context = await chromium.newContext({ viewport: { width: 1280, height: 800 } });
  /** @type {string | undefined} */
  let error;
  try {
    const page = await context.newPage();
    const output = /** @type {string[]} */ ([]);
    page.on('console', (message) => output.push(message.text()));
    const done = new Promise((resolve) => page.exposeFunction('codeAutomationExit', resolve));
    await page.exposeFunction('codeAutomationLog', (/** @type {string} */ type, /** @type {unknown[]} */ args) => {
      if (process.env.DSMIGRATE_VERBOSE) {
        console.log(type, ...args);
      }
    });
    const tests = join(root, 'out', 'test', 'host', 'index.js');
    const extension = join(root, 'test', 'extensions', wanted.extension ?? 'runner');
    await page.goto(address(profile, { extensionDevelopmentPath: extension, extensionTestsPath: tests }));
    const watching = wanted.watch?.(page, profile).catch((/** @type {unknown} */ reason) => {
      console.log(`${name}: ${reason}`);
      return page.screenshot({ path: join(root, 'out', `watching-${name}.png`) });
    });
    const code = await Promise.race([done, new Promise((resolve) => setTimeout(() => resolve('too late'), LIMIT))]);
    await Promise.race([watching, new Promise((resolve) => setTimeout(resolve, 100))]);
    if (code !== 0 && code !== 1) {
      await page.screenshot({ path: join(root, 'out', `failed-${name}.png`) });
      error = `the extension host ended with ${code}\n${output.slice(-20).join('\n')}`;
    }
  } finally {
    await context.close();
    await profile.close();
  }
  const tests = JSON.parse(readFileSync(results, 'utf8'));
  return { profile: name, seconds: (performance.now() - began) / 1000, tests, ...(error ? { error } : {}) };
}

/** @param {Run} result */
function print({ profile, seconds, tests, error }) {
  console.log(`\n${profile}: ${tests.filter((test) => test.state === 'passed').length} passed in ${seconds.toFixed(1)} s`);
  for (const test of tests) {
    const mark = { passed: '✓', failed: '✗', pending: '-' }[test.state];
    console.log(`  ${mark} ${test.title} (${Math.round(test.ms)} ms)`);
    if (test.error) {
      console.log(test.error.replace(/^/gm, '      '));
    }
  }
  if (error) {
    console.log(error);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const given = process.argv.slice(2);
  const at = given.indexOf('-g');
  const grep = at >= 0 ? (given.splice(at, 2)[1] ?? '') : '';
  if (!existsSync(join(root, 'dsmigrate.vsix'))) {
    spawnSync('npm', ['run', 'package'], { cwd: root, stdio: 'inherit' });
  }
  const queue = given.length > 0 ? given : Object.keys(PROFILES);
  const unknown = queue.find((name) => !(name in PROFILES));
  if (unknown !== undefined) {
    throw new Error(`no profile ${unknown}; there are ${Object.keys(PROFILES).join(', ')}`);
  }
  install(); // once, before two want it
  const chromium = await browser();
  /** @type {Run[]} */
  const runs = [];
  const work = async () => {
    for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
      const wanted = PROFILES[name];
      if (wanted) {
        const result = await run(name, wanted, chromium, grep);
        print(result);
        runs.push(result);
      }
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  } finally {
    await chromium.close();
  }
  writeFileSync(join(root, 'out', 'host.json'), JSON.stringify(runs, null, 2));
  const failed = runs.some(({ tests, error }) => error || tests.some(({ state }) => state === 'failed'));
  const all = runs.flatMap(({ tests }) => tests);
  console.log(`\n${all.filter(({ state }) => state === 'passed').length} of ${all.length} passed`);
  process.exit(failed || (all.length === 0 && !grep) ? 1 : 0);
}
