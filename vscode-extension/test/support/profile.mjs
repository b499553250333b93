// @ts-check
// A profile of the real VS Code: an empty home, our .vsix installed, and a server that serves windows of it.
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { install } from '../install.mjs';

/** A Python that has dsmigrate. */
export const python = process.env.DSMIGRATE_TEST_PYTHON ?? '';
if (!python) {
  throw new Error('DSMIGRATE_TEST_PYTHON has to name a Python that has dsmigrate');
}
export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/**
 * @typedef {object} Wanted
 * @property {Record<string, unknown>} [settings] user settings of the machine that VS Code runs on
 * @property {boolean} [trust] whether folders have to be trusted first
 * @property {string} [fixture] folder below test/fixtures that becomes the workspace
 * @property {Record<string, string | undefined>} [env] variables for VS Code; undefined takes one away
 * @property {boolean} [bare] whether our extension is left out
 */

/**
 * @typedef {object} Profile
 * @property {string} url
 * @property {string} workspace
 * @property {string} state folder of everything that VS Code writes
 * @property {() => Promise<void>} close
 */

const QUIET = {
  'telemetry.telemetryLevel': 'off',
  'chat.disableAIFeatures': true,
  'security.workspace.trust.startupPrompt': 'never',
  'security.workspace.trust.banner': 'never',
  'git.openRepositoryInParentFolders': 'never',
  'git.enabled': true,
  'workbench.startupEditor': 'none',
  'workbench.tips.enabled': false,
  'update.mode': 'none',
  'extensions.ignoreRecommendations': true,
};

/**
 * Start VS Code's server with a profile of its own.
 * @param {Wanted} wanted
 * @returns {Promise<Profile>}
 */
export async function start(wanted = {}) {
  const { node, root: vscode } = install();
  const state = mkdtempSync(join(tmpdir(), 'dsmigrate-vscode-'));
  const workspace = join(state, 'workspace');
  for (const folder of ['home', 'extensions', 'data/Machine', 'data/User']) {
    mkdirSync(join(state, folder), { recursive: true });
  }
  mkdirSync(workspace);
  const fixture = join(root, 'test', 'fixtures', wanted.fixture ?? 'main');
  if (existsSync(fixture)) {
    cpSync(fixture, workspace, { recursive: true });
  }
  writeFileSync(join(state, 'data/Machine/settings.json'), JSON.stringify({ ...QUIET, ...wanted.settings }, null, 2));
  const env = {
    ...process.env,
    HOME: join(state, 'home'),
    XDG_CACHE_HOME: process.env.XDG_CACHE_HOME ?? join(process.env.HOME ?? '', '.cache'),
    EXTENSIONS_GALLERY: '{"serviceUrl":""}',
    VSCODE_CLI: '1', // or VS Code asks a login shell for the variables, and PATH is another one
    ...wanted.env,
  };
  const folders = [
    ...['--accept-server-license-terms', '--server-data-dir', join(state, 'server')],
    ...['--user-data-dir', join(state, 'data'), '--extensions-dir', join(state, 'extensions')],
  ];
  const main = join(vscode, 'out', 'server-main.js');
  if (!wanted.bare) {
    const vsix = join(root, 'dsmigrate.vsix');
    const installed = spawnSync(node, [main, ...folders, '--install-extension', vsix, '--force'], { env, encoding: 'utf8' });
    if (installed.status !== 0) {
      throw new Error(`${vsix} could not be installed:\n${installed.stdout}${installed.stderr}`);
    }
  }
  const port = await freePort();
  const log = join(state, 'server.log');
  const flags = ['--host', '127.0.0.1', '--port', String(port), '--without-connection-token'];
  flags.push('--enable-smoke-test-driver', '--telemetry-level', 'off'); // without the driver no tests are run
  if (!wanted.trust) {
    flags.push('--disable-workspace-trust');
  }
  const output = openSync(log, 'w');
  const server = spawn(node, [main, ...folders, ...flags], { env, stdio: ['ignore', output, output], detached: true });
  /** @returns {Promise<void>} */
  const close = async () => {
    await new Promise((resolve) => {
      server.on('exit', resolve);
      if (server.exitCode !== null || server.pid === undefined) {
        resolve(undefined);
      } else {
        process.kill(-server.pid, 'SIGTERM');
      }
    });
    if (!process.env.DSMIGRATE_KEEP) {
      rmSync(state, { recursive: true, force: true, maxRetries: 5 });
    }
  };
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; ; tries++) {
    const answered = await fetch(url).then((answer) => answer.ok, () => false);
    if (answered) {
      return { url, workspace, state, close };
    }
    if (server.exitCode !== null || tries > 300) {
      await close();
      throw new Error(`VS Code's server does not answer:\n${readFileSync(log, 'utf8')}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
