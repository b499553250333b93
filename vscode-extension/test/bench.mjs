// @ts-check
// Measures, in the real VS Code with the .vsix installed, what the extension costs and how long a person waits:
// activation, the first diagnostic, an edit to its diagnostics; and prints the sizes of what is installed.
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { run } from './host.mjs';
import { python, root, start } from './support/profile.mjs';
import { address, browser } from './support/window.mjs';

const settings = { 'dsmigrate.server.interpreter': python };
const results = join(root, 'out', 'bench.json');

const chromium = await browser();
try {
  /** @type {import('./profiles.mjs').HostProfile} */
  const wanted = { suites: ['bench'], settings, fixture: 'none', env: { DSMIGRATE_BENCH: results } };
  const { tests, error } = await run('bench', wanted, chromium);
  if (error || tests.some(({ state }) => state === 'failed')) {
    throw new Error(error ?? tests.map((test) => test.error).join('\n'));
  }
  for (const [what, ms] of Object.entries(JSON.parse(readFileSync(results, 'utf8')))) {
    console.log(`${ms.toFixed(1).padStart(9)} ms  ${what}`);
  }
  for (const kind of ['cold', 'warm']) {
    console.log(`${(await folderToSquiggle()).toFixed(0).padStart(9)} ms  a folder opened in a new window, to the first squiggle (${kind})`);
  }
} finally {
  await chromium.close();
}
for (const file of ['dist/extension.js', 'dist/client.js', 'dsmigrate.vsix']) {
  console.log(`${(statSync(join(root, file)).size / 1024).toFixed(0).padStart(9)} KB  ${file}`);
}

/** Return how many ms pass from the address of a window to the squiggle of a config in it. */
async function folderToSquiggle() {
  const profile = await start({ settings, fixture: 'bench' });
  try {
    const page = await (await chromium.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
    const began = performance.now();
    await page.goto(address(profile, { openFile: join(profile.workspace, 'ds_config.json') }));
    await page.locator('.squiggly-error, .squiggly-warning').first().waitFor({ timeout: 60_000 });
    const passed = performance.now() - began;
    await page.close();
    return passed;
  } finally {
    await profile.close();
  }
}
