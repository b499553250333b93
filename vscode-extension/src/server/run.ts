import { spawn } from 'node:child_process';
import type * as vscode from 'vscode';

/** How a process ended: its exit code, null when it was killed, and what it wrote. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  /** Where it runs: never a folder of the workspace, which Python would import from. */
  readonly cwd: string;
  /** Milliseconds after which it is killed. */
  readonly timeout: number;
  readonly token?: vscode.CancellationToken | undefined;
  /** Gets each line of its output as it comes. */
  readonly onLine?: ((line: string) => void) | undefined;
  readonly env?: Readonly<Record<string, string>>;
}

/** Run a program by its absolute path, without a shell; rejects when it cannot be started. */
export function run(command: string, args: readonly string[], options: RunOptions): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: { ...process.env, PYTHONSAFEPATH: '1', PYTHONUTF8: '1', ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      windowsHide: true,
    });
    const cancelling = options.token?.onCancellationRequested(() => child.kill());
    const timer = setTimeout(() => child.kill('SIGKILL'), options.timeout);
    const texts = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      let rest = '';
      child[name].setEncoding('utf8');
      child[name].on('data', (text: string) => {
        texts[name] += text;
        const lines = (rest + text).split(/\r?\n/);
        rest = lines.pop() ?? '';
        lines.forEach((line) => options.onLine?.(line));
      });
      child[name].on('end', () => rest && options.onLine?.(rest));
    }
    const done = (): void => {
      clearTimeout(timer);
      cancelling?.dispose();
    };
    child.on('error', (error) => {
      done();
      reject(error);
    });
    child.on('close', (code) => {
      done();
      resolve({ code, ...texts });
    });
  });
}
