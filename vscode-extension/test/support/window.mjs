// @ts-check
// Windows of VS Code in Debian's Chromium.
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const FLAGS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync', '--disable-dev-shm-usage', '--font-render-hinting=none'],
];

/** @returns {Promise<import('playwright-core').Browser>} */
export function browser() {
  const executablePath = process.env.CHROMIUM || BROWSERS.find((path) => existsSync(path));
  if (!executablePath) {
    throw new Error('no Chromium is installed; CHROMIUM may name one');
  }
  return chromium.launch({ executablePath, headless: true, args: FLAGS });
}

/**
 * Return the address of a window of VS Code.
 * @param {import('./profile.mjs').Profile} profile
 * @param {Record<string, string>} [payload] what VS Code takes from a test: `openFile`, `extensionTestsPath`, …
 * @param {string} [folder] another folder than the workspace; "" for none
 */
export function address(profile, payload = {}, folder = profile.workspace) {
  const host = new URL(profile.url).host;
  const entries = Object.entries(payload).map(([name, path]) => [name, `vscode-remote://${host}${path}`]);
  const parameters = new URLSearchParams({ payload: JSON.stringify([...entries, ['skipWelcome', 'true']]) });
  if (folder) {
    parameters.set('folder', folder);
  } else {
    parameters.set('ew', 'true');
  }
  return `${profile.url}/?${parameters}`;
}
