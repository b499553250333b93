import * as vscode from 'vscode';

import type { Session } from './session';

/** What VS Code's own JSON support calls a comment where none may be. */
const COMMENT = 521;

/** Takes care of configs with comments, which DeepSpeed reads and language mode JSON reports as errors. */
export class Comments implements vscode.Disposable {
  private readonly listening: vscode.Disposable;
  private readonly seen = new Set<string>();

  constructor(private readonly session: Session) {
    this.listening = vscode.languages.onDidChangeDiagnostics(({ uris }) => {
      const configs = vscode.workspace.textDocuments.filter(
        (document) => document.languageId === 'json' && uris.some((uri) => uri.toString() === document.uri.toString()),
      );
      configs.forEach((document) => {
        this.look(document).catch((error: unknown) => this.session.log.warn(String(error)));
      });
    });
  }

  dispose(): void {
    this.listening.dispose();
  }

  private async look(document: vscode.TextDocument): Promise<void> {
    const uri = document.uri.toString();
    const hasComments = vscode.languages.getDiagnostics(document.uri).some(({ code }) => code === COMMENT);
    if (!hasComments || this.seen.has(uri) || !this.session.client) {
      return;
    }
    this.seen.add(uri);
    const wish = vscode.workspace.getConfiguration('dsmigrate', document).get<string>('comments', 'ask');
    if (wish === 'json' || !(await this.session.isConfig(document))) {
      this.seen.delete(uri);
    } else if (wish === 'jsonc') {
      await vscode.languages.setTextDocumentLanguage(document, 'jsonc');
    } else {
      await ask(document);
    }
  }
}

async function ask(document: vscode.TextDocument): Promise<void> {
  const [once, always, never] = [
    vscode.l10n.t('This File'),
    vscode.l10n.t('All Such Files'),
    vscode.l10n.t('Never'),
  ];
  const answer = await vscode.window.showInformationMessage(
    vscode.l10n.t(
      'DeepSpeed reads the comments of this config; language mode JSON reports them as errors. Switch to JSON with Comments?',
    ),
    once,
    always,
    never,
  );
  const settings = vscode.workspace.getConfiguration('dsmigrate', document);
  if (answer === always || answer === never) {
    await settings.update('comments', answer === always ? 'jsonc' : 'json', vscode.ConfigurationTarget.Global);
  }
  if (answer === once || answer === always) {
    await vscode.languages.setTextDocumentLanguage(document, 'jsonc');
  }
}
