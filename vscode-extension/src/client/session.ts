import * as vscode from 'vscode';
import type { LanguageClient } from 'vscode-languageclient/node';

import type { Connection } from './connect';
import { Crashes } from './crashes';
import { Problem } from '../server/problem';
import type { Server } from '../server/server';

/** What the language server is doing: never asked for yet, on its way, there, or missing with a reason. */
export type State = 'idle' | 'starting' | 'running' | 'failed';

/** How a server is started and connected with; the module that does it is loaded when the first server starts. */
export type Connect = (server: Server, session: Session, token: vscode.CancellationToken) => Promise<Connection>;

/** How a server is found; rejects with a Problem where there is none. */
export type Find = (progress: vscode.CancellationToken) => Promise<Server>;

/**
 * The one connection with the language server: started when something first needs it, and again after a change.
 * Commands of the server are not registered as commands of VS Code: who offers one calls `execute`.
 */
export class Session implements vscode.Disposable {
  private running: Connection | undefined;
  private starting: Promise<LanguageClient> | undefined;
  private stopping: Promise<void> = Promise.resolve();
  private attempt: vscode.CancellationTokenSource | undefined;
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly failing = new vscode.EventEmitter<Problem>();

  /** Fires when the server starts, runs, fails or stops. */
  readonly onDidChange = this.changed.event;
  /** Fires when the server cannot be started, or fails too often. */
  readonly onDidFail = this.failing.event;

  readonly crashes = new Crashes();
  /** Where the server comes from that runs now or ran last. */
  server: Server | undefined;
  /** Why there is no server, after a failure. */
  problem: Problem | undefined;

  constructor(
    readonly log: vscode.LogOutputChannel,
    private readonly find: Find,
    private readonly connect: Connect,
  ) {}

  /** The client while the server runs. */
  get client(): LanguageClient | undefined {
    return this.running?.client;
  }

  get state(): State {
    if (this.running) {
      return 'running';
    }
    if (this.starting) {
      return 'starting';
    }
    return this.problem ? 'failed' : 'idle';
  }

  /** Return the client of a running server; starts one if need be, and rejects with a Problem if that fails. */
  start(): Promise<LanguageClient> {
    if (this.running) {
      return Promise.resolve(this.running.client);
    }
    this.starting ??= this.stopping.then(() => this.begin());
    return this.starting;
  }

  /** Stop the server, if one runs or starts; its process has gone when the promise is settled. */
  stop(): Promise<void> {
    this.attempt?.cancel();
    const [connection, starting, stopping] = [this.running, this.starting, this.stopping];
    this.running = this.starting = this.problem = undefined;
    this.stopping = (async () => {
      await stopping;
      await starting?.catch(() => undefined);
      await connection?.end();
    })();
    this.changed.fire();
    return this.stopping;
  }

  /** Stop the server and start it anew, as the settings have it now. */
  async restart(): Promise<void> {
    await this.stop();
    this.crashes.forget();
    await this.start().catch(() => undefined);
  }

  /** Send a request of the protocol; starts the server if need be. */
  async request<Answer>(method: string, params: unknown, token?: vscode.CancellationToken): Promise<Answer> {
    const client = await this.start();
    return token ? client.sendRequest<Answer>(method, params, token) : client.sendRequest<Answer>(method, params);
  }

  /** Have the server run one of its commands (`dsmigrate.explain`, …) and return its answer. */
  execute<Answer>(command: string, args: readonly unknown[] = [], token?: vscode.CancellationToken): Promise<Answer> {
    return this.request<Answer>('workspace/executeCommand', { command, arguments: args }, token);
  }

  /** Return whether the server takes an open document for a DeepSpeed config. */
  async isConfig(document: vscode.TextDocument): Promise<boolean> {
    if (!this.running) {
      return false;
    }
    const answer = await this.execute<object | null>('dsmigrate.status', [document.uri.toString()]);
    return answer !== null;
  }

  /** A client has come up, or gone down. */
  moved(client: LanguageClient): void {
    if (this.running?.client === client && !client.isRunning()) {
      this.lost(this.running);
    }
    this.changed.fire();
  }

  /** The server has ended by itself: it is started again, unless that happens too often. */
  private lost(connection: Connection): void {
    this.running = undefined;
    const { stopping } = this;
    this.stopping = stopping.then(() => connection.end());
    const isWorthIt = this.crashes.note(Date.now());
    this.log.warn(`the language server has ended, ${this.crashes.count} in the last three minutes`);
    if (isWorthIt) {
      this.start().catch(() => undefined); // told as any other start that fails
      return;
    }
    this.failed(
      new Problem(vscode.l10n.t('The DeepSpeed language server crashed {0} times in three minutes.', this.crashes.count), [
        'restart',
        'log',
        'report',
      ]),
    );
  }

  dispose(): void {
    this.attempt?.cancel();
    this.changed.dispose();
    this.failing.dispose();
  }

  private async begin(): Promise<LanguageClient> {
    const attempt = new vscode.CancellationTokenSource();
    this.attempt = attempt;
    this.problem = undefined;
    this.changed.fire();
    try {
      const server = await this.find(attempt.token);
      this.server = server;
      this.log.info(`${server.version} from ${server.origin}: ${[server.command, ...server.args].join(' ')}`);
      throwIf(attempt.token);
      const connection = await this.connect(server, this, attempt.token);
      if (attempt.token.isCancellationRequested) {
        await connection.end();
      }
      throwIf(attempt.token);
      this.running = connection;
      this.starting = undefined;
      this.changed.fire();
      return connection.client;
    } catch (error) {
      if (this.attempt === attempt && !attempt.token.isCancellationRequested) {
        this.starting = undefined;
        this.failed(Problem.of(error));
      }
      throw error;
    }
  }

  /** There is no server, for a reason. */
  failed(problem: Problem): void {
    this.problem = problem;
    this.log.error(problem.message, problem.detail ?? '');
    this.changed.fire();
    this.failing.fire(problem);
  }
}

function throwIf({ isCancellationRequested }: vscode.CancellationToken): void {
  if (isCancellationRequested) {
    throw new vscode.CancellationError();
  }
}
