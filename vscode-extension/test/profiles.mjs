// @ts-check
// The profiles that suites run in.
import { join } from 'node:path';

import { python, root } from './support/profile.mjs';

/**
 * @typedef {import('./support/profile.mjs').Wanted & {
 *   suites: string[],
 *   extension?: string,
 *   watch?: (page: import('playwright-core').Page) => Promise<void>,
 * }} HostProfile
 */

/**
 * The variables for a uv of the tests.
 * @param {'works' | 'fails'} how
 */
function withUv(how) {
  const UV_CALLS = join(root, 'out', `uv-${how}.calls`);
  return { PATH: `${join(root, 'test', 'programs')}:${process.env.PATH}`, UV_CALLS, UV_FAILS: how === 'fails' ? '1' : '' };
}

/** @type {Record<string, HostProfile>} */
export const PROFILES = {
  /** A trusted folder, and a Python that the settings name. */
  main: {
    suites: ['activation', 'diagnostics', 'reading', 'actions', 'beside', 'settings', 'crash'],
    settings: { 'dsmigrate.server.interpreter': python },
  },

  /** Nothing, and a uv that fails: the private environment, made with pip, is the only server. */
  private: {
    suites: ['private'],
    env: withUv('fails'),
    watch: async (page) => {
      await press(page, 'private environment', 'Create Environment');
    },
  },

  /** Nothing but a uv on PATH. */
  uv: { suites: ['uv'], env: withUv('works') },

  /** What the commands do. */
  features: {
    suites: ['comparing', 'converting', 'features', 'verifying'],
    settings: { 'dsmigrate.server.interpreter': python },
  },

  /** A folder that names a program of its own, and that nobody has trusted until the last test. */
  untrusted: {
    suites: ['untrusted'],
    fixture: 'untrusted',
    trust: true,
    settings: { 'dsmigrate.server.interpreter': python },
    watch: async (page) => {
      for (const said of ['told by git', 'trains the script']) {
        await press(page, said, 'Manage Trust');
      }
      await page.locator('.workspace-trust-editor').waitFor({ timeout: 60_000 });
      await page.locator('.workspace-trust-editor .monaco-button', { hasText: 'Trust' }).first().click();
    },
  },

  /** The Python extension, as far as its public API goes. */
  python: { suites: ['python'], extension: 'python' },
};

/**
 * Press the button of a message.
 * @param {import('playwright-core').Page} page
 * @param {string} said what stands in the message
 * @param {string} title
 */
async function press(page, said, title) {
  const center = page.locator('.notifications-center.visible'); // while tests run, VS Code puts messages there at once
  const message = center.locator('.monaco-list-row', { hasText: said });
  const button = message.locator('.monaco-button', { hasText: title }).first();
  const end = Date.now() + 120_000;
  while (Date.now() < end && !(await button.isVisible())) {
    if (!(await center.isVisible())) {
      await page.locator('#status\\.notifications').click({ timeout: 60_000 });
    }
    await page.waitForTimeout(300);
  }
  await button.press('Enter'); // a hover may lie above it
}
