import * as vscode from 'vscode';

import type { Session } from '../client/session';
import { onDidChoose } from './pythonExtension';

const DECIDING = ['dsmigrate.server.interpreter', 'dsmigrate.server.source', 'dsmigrate.server.logLevel'];

/** Starts the server again when something changes that decides which one it is. */
export class Changes implements vscode.Disposable {
  private readonly listening: vscode.Disposable[];

  constructor(private readonly session: Session) {
    this.listening = [
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (DECIDING.some((name) => event.affectsConfiguration(name))) {
          this.restart('a setting has changed');
        }
      }),
      vscode.workspace.onDidGrantWorkspaceTrust(() => {
        this.restart('the folder is trusted now');
        void this.listenToPython();
      }),
      vscode.extensions.onDidChange(() => void this.listenToPython()),
    ];
    const once = session.onDidChange(() => {
      once.dispose();
      void this.listenToPython();
    });
    this.listening.push(once);
  }

  dispose(): void {
    vscode.Disposable.from(...this.listening).dispose();
  }

  private isListening = false;

  /** Hear of another chosen interpreter, once a server is wanted: the Python extension is not woken up before. */
  private async listenToPython(): Promise<void> {
    if (this.isListening || this.session.state === 'idle' || !vscode.workspace.isTrusted) {
      return;
    }
    this.isListening = true;
    const listening = await onDidChoose(() => this.restart('another interpreter is chosen'));
    this.isListening = listening !== undefined;
    this.listening.push(...(listening ? [listening] : []));
  }

  private restart(reason: string): void {
    if (this.session.state !== 'idle') {
      this.session.log.info(`${reason}: the server is started again`);
      void this.session.restart();
    }
  }
}
