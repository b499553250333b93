import { createHash } from 'node:crypto';
import { mkdir, open, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';

import type { Bundled } from './bundled';
import { Problem } from './problem';
import { run, type Ended } from './run';

const DONE = 'ready.json';
const MINUTE = 60_000;
const INSTALL_LIMIT = 10 * MINUTE;

/** What an environment is made with: an interpreter and, where there is one, uv. */
export interface Tools {
  readonly python: string | undefined;
  readonly uv: string | undefined;
}

export interface Making {
  readonly token: vscode.CancellationToken;
  readonly onLine: (line: string) => void;
  readonly onStep: (text: string) => void;
}

/**
 * The private environment: a virtual environment in the extension's storage with the package it carries. Its folder is
 * named after the package and what that needs, so that an update of the extension gets one of its own.
 */
export class PrivateEnvironment {
  constructor(
    private readonly storage: string,
    private readonly carried: Bundled,
  ) {}

  /** Return the interpreter of the finished environment; undefined while there is none. */
  async interpreter(): Promise<string | undefined> {
    const python = interpreterOf(await this.folder());
    const isThere = await Promise.all([exists(join(await this.folder(), DONE)), exists(python)]);
    return isThere.every(Boolean) ? python : undefined;
  }

  /** Return whether one was made for an earlier release, so that its owner agreed to having one. */
  async hasEarlier(): Promise<boolean> {
    const [current, others] = [await this.folder(), await this.others()];
    const done = await Promise.all(others.map((folder) => exists(join(folder, DONE))));
    return done.some(Boolean) && !(await exists(join(current, DONE)));
  }

  /**
   * Make the environment and return its interpreter; environments of earlier releases are removed. Another window that
   * is at it already is waited for. Rejects with a Problem, or a CancellationError.
   */
  async make(tools: Tools, making: Making): Promise<string> {
    const folder = await this.folder();
    await mkdir(this.storage, { recursive: true });
    const lock = new Lock(`${folder}.lock`);
    while (!(await lock.take())) {
      making.onStep(vscode.l10n.t('waiting for another window'));
      await pause(500, making.token);
      const made = await this.interpreter();
      if (made) {
        return made;
      }
    }
    try {
      await rm(folder, { recursive: true, force: true });
      await this.fill(folder, tools, making);
      await writeFile(join(folder, DONE), JSON.stringify({ version: this.carried.version }));
      await this.removeOthers();
      return interpreterOf(folder);
    } catch (error) {
      await rm(folder, { recursive: true, force: true }).catch(() => undefined);
      throw error;
    } finally {
      await lock.release();
    }
  }

  /** Remove every environment that was made, of all releases. */
  async remove(): Promise<void> {
    const all = [await this.folder(), ...(await this.others())];
    await Promise.all(all.map((folder) => rm(folder, { recursive: true, force: true })));
  }

  private async fill(folder: string, tools: Tools, making: Making): Promise<void> {
    if (tools.uv) {
      try {
        await this.fillWithUv(folder, tools.uv, tools.python, making);
        return;
      } catch (error) {
        if (error instanceof vscode.CancellationError || !tools.python) {
          throw error;
        }
        making.onLine(`uv did not manage it, pip is tried: ${String(error)}`);
        await rm(folder, { recursive: true, force: true });
      }
    }
    if (!tools.python) {
      throw new Problem(
        vscode.l10n.t('No Python 3.10 or later was found to make an environment with.'),
        ['choose', 'help', 'log'],
      );
    }
    await this.fillWithPip(folder, tools.python, making);
  }

  private async fillWithUv(folder: string, uv: string, python: string | undefined, making: Making): Promise<void> {
    making.onStep(vscode.l10n.t('making it with uv'));
    await this.step(uv, ['venv', '--no-project', '--python', python ?? '>=3.10', folder], making);
    const target = ['--python', interpreterOf(folder)];
    making.onStep(vscode.l10n.t('installing packages with uv'));
    await this.step(uv, ['pip', 'install', ...target, '--require-hashes', '-r', this.carried.requirements], making);
    await this.step(uv, ['pip', 'install', ...target, '--no-deps', '--offline', this.carried.wheel], making);
  }

  private async fillWithPip(folder: string, python: string, making: Making): Promise<void> {
    making.onStep(vscode.l10n.t('making it'));
    await this.step(python, ['-m', 'venv', folder], making);
    const pip = ['-m', 'pip', '--disable-pip-version-check', '--no-input', 'install', '--no-warn-script-location'];
    const own = interpreterOf(folder);
    making.onStep(vscode.l10n.t('installing packages'));
    await this.step(own, [...pip, '--require-hashes', '--only-binary', ':all:', '-r', this.carried.requirements], making);
    await this.step(own, [...pip, '--no-deps', '--no-index', this.carried.wheel], making);
  }

  private async step(command: string, args: readonly string[], making: Making): Promise<void> {
    making.onLine(`> ${[command, ...args].join(' ')}`);
    const { token, onLine } = making;
    const ended = await run(command, args, { cwd: this.storage, timeout: INSTALL_LIMIT, token, onLine });
    if (token.isCancellationRequested) {
      throw new vscode.CancellationError();
    }
    if (ended.code !== 0 && isOffline(`${ended.stdout}\n${ended.stderr}`)) {
      throw new Problem(
        vscode.l10n.t('The package index cannot be reached: this machine seems to be offline.'),
        ['create', 'choose', 'help', 'log'],
        [command, ...args].join(' '),
      );
    }
    if (ended.code !== 0) {
      throw new Problem(
        vscode.l10n.t('The private environment could not be made: {0}', lastWords(ended)),
        ['create', 'choose', 'log'],
        [command, ...args].join(' '),
      );
    }
  }

  private async folder(): Promise<string> {
    const hash = createHash('sha256');
    for (const file of [this.carried.wheel, this.carried.requirements]) {
      hash.update(await readFile(file));
    }
    return join(this.storage, `server-${this.carried.version}-${hash.digest('hex').slice(0, 8)}`);
  }

  private async others(): Promise<string[]> {
    const current = await this.folder();
    const names = await readdir(this.storage).catch(() => []);
    return names
      .filter((name) => name.startsWith('server-') && !name.endsWith('.lock'))
      .map((name) => join(this.storage, name))
      .filter((folder) => folder !== current);
  }

  /** Remove environments of earlier releases; one that another window still runs may stay on Windows. */
  private async removeOthers(): Promise<void> {
    for (const folder of await this.others()) {
      await rm(folder, { recursive: true, force: true }).catch(() => undefined);
    }
  }
}

/** A file that only one process can make; one that was left behind counts for eleven minutes. */
class Lock {
  constructor(private readonly file: string) {}

  async take(): Promise<boolean> {
    try {
      await (await open(this.file, 'wx')).close();
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') {
        throw error;
      }
      const made = await stat(this.file).catch(() => undefined);
      if (made && Date.now() - made.mtimeMs > INSTALL_LIMIT + MINUTE) {
        await this.release();
      }
      return false;
    }
  }

  async release(): Promise<void> {
    await rm(this.file, { force: true });
  }
}

function interpreterOf(folder: string): string {
  return process.platform === 'win32' ? join(folder, 'Scripts', 'python.exe') : join(folder, 'bin', 'python');
}

/** Return whether pip or uv failed because no address could be found or reached. */
export function isOffline(output: string): boolean {
  return /name resolution|name or service not known|getaddrinfo failed|nodename nor servname|failed to lookup address|network is unreachable|no route to host|failed to establish a new connection/i.test(output);
}

function lastWords(ended: Ended): string {
  const lines = `${ended.stdout}\n${ended.stderr}`.split('\n').map((line) => line.trim());
  const errors = lines.filter((line) => /^error\b/i.test(line));
  return (errors.length > 0 ? errors : lines.filter(Boolean)).at(-1) ?? String(ended.code);
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

function pause(milliseconds: number, token: vscode.CancellationToken): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      listening.dispose();
      resolve();
    }, milliseconds);
    const listening = token.onCancellationRequested(() => {
      clearTimeout(timer);
      listening.dispose();
      reject(new vscode.CancellationError());
    });
  });
}
