import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';

import type { Server } from '../server/server';

/** Milliseconds that a server which was said goodbye to has for leaving. */
const GRACE = 2000;

/** The process of a server. Whatever becomes of the client that speaks with it, `end` leaves nothing running. */
export class ServerProcess {
  private child: ChildProcessWithoutNullStreams | undefined;
  private gone: Promise<void> = Promise.resolve();

  constructor(
    private readonly server: Server,
    private readonly cwd: string,
  ) {}

  /** Start it; rejects when the program cannot be started. */
  async start(): Promise<ChildProcessWithoutNullStreams> {
    const env = { ...process.env, PYTHONSAFEPATH: '1' };
    const child = spawn(this.server.command, this.server.args, { cwd: this.cwd, env, windowsHide: true });
    this.child = child;
    this.gone = new Promise((resolve) => {
      child.once('exit', () => resolve());
      child.once('error', () => resolve());
    });
    await new Promise((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    child.on('error', () => undefined); // that it could not be killed: it has gone
    return child;
  }

  /** End it now, without a goodbye. */
  kill(): void {
    this.child?.kill('SIGKILL');
  }

  /** Wait until it has gone, and see to it that it goes. */
  async end(): Promise<void> {
    const timer = setTimeout(() => this.kill(), GRACE);
    await this.gone;
    clearTimeout(timer);
  }
}
