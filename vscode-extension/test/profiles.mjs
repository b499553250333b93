// @ts-check
// The profiles that suites run in.

const python = process.env.DSMIGRATE_TEST_PYTHON ?? '';

/**
 * @typedef {import('./support/profile.mjs').Wanted & {
 *   suites: string[],
 *   extension?: string,
 *   watch?: (page: import('playwright-core').Page) => Promise<void>,
 * }} HostProfile
 */

/** @type {Record<string, HostProfile>} */
export const PROFILES = {
  /** A trusted folder, and a Python that the settings name. */
  main: {
    suites: ['activation', 'diagnostics', 'reading', 'actions', 'beside', 'settings', 'crash'],
    settings: { 'dsmigrate.server.interpreter': python },
  },

  /** Nothing: the private environment is the only server. */
  private: {
    suites: ['private'],
    watch: async (page) => {
      // while tests run, VS Code puts messages into its center at once
      const button = page.locator('.notifications-list-container .monaco-button', { hasText: 'Create Environment' });
      for (let tries = 0; tries < 60 && !(await button.first().isVisible()); tries++) {
        await page.locator('#status\\.notifications').click({ timeout: 60_000 });
        await page.waitForTimeout(1000);
      }
      await button.first().click();
    },
  },

  /** What the commands do. */
  features: {
    suites: ['comparing', 'converting', 'features'],
    settings: { 'dsmigrate.server.interpreter': python },
  },

  /** A folder that names a program of its own, and that nobody has trusted until the last test. */
  untrusted: {
    suites: ['untrusted'],
    fixture: 'untrusted',
    trust: true,
    settings: { 'dsmigrate.server.interpreter': python },
    watch: async (page) => {
      await page.locator('.workspace-trust-editor').waitFor({ timeout: 60_000 });
      await page.locator('.workspace-trust-editor .monaco-button', { hasText: 'Trust' }).first().click();
    },
  },

  /** The Python extension, as far as its public API goes. */
  python: { suites: ['python'], extension: 'python' },
};
