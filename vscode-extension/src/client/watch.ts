import * as vscode from 'vscode';

import { isJson, mayConcern } from './recognise';
import type { Session } from './session';

const IN_WORKSPACE = '**/*{ds_config,deepspeed}*.{json,jsonc,hjson}';
const PAUSE = 250;

/** Starts the server once there is something for it: an open document that may be a config, or one in the workspace. */
export class Watch implements vscode.Disposable {
  private readonly listening: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly session: Session) {
    this.listening = [
      vscode.workspace.onDidOpenTextDocument((document) => this.look(document)),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.look(document), PAUSE);
      }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration('dsmigrate.enable') || event.affectsConfiguration('dsmigrate.include')) {
          this.lookAtAll();
        }
      }),
    ];
  }

  /** Look at what is open, then for a config in the workspace. */
  async begin(): Promise<void> {
    this.lookAtAll();
    const wanted = vscode.workspace.getConfiguration('dsmigrate').get<boolean>('workspaceDiagnostics', true);
    if (wanted && this.session.state === 'idle') {
      const configs = await vscode.workspace.findFiles(IN_WORKSPACE, undefined, 1);
      if (configs.some(isEnabled)) {
        this.start();
      }
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.listening).dispose();
  }

  private lookAtAll(): void {
    vscode.workspace.textDocuments.forEach((document) => this.look(document));
  }

  private look(document: vscode.TextDocument): void {
    if (this.session.state === 'idle' && isEnabled(document.uri) && (isIncluded(document) || mayConcern(document))) {
      this.start();
    }
  }

  private start(): void {
    this.session.start().catch(() => undefined); // the session tells
  }
}

function isEnabled(resource: vscode.Uri): boolean {
  return vscode.workspace.getConfiguration('dsmigrate', resource).get<boolean>('enable', true);
}

/** Whether the settings call files configs by their names: which ones is the server's to tell. */
function isIncluded(document: vscode.TextDocument): boolean {
  return isJson(document) && vscode.workspace.getConfiguration('dsmigrate', document).get<string[]>('include', []).length > 0;
}
