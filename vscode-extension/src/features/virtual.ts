import { posix } from 'node:path';
import * as vscode from 'vscode';

const SCHEME = 'dsmigrate';

/** Texts that are on no disk, read-only: the old side of a comparison, a script as it would be, a page. */
export class VirtualTexts implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly registered = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  readonly onDidChange = this.changed.event;

  /** Put a text under an address: a state (`HEAD`) of the file `of`, whose name chooses the language. */
  put(state: string, of: vscode.Uri, text: string): vscode.Uri {
    const uri = this.uri(state, of);
    if (this.texts.get(uri.toString()) !== text) {
      this.texts.set(uri.toString(), text);
      this.changed.fire(uri);
    }
    return uri;
  }

  uri(state: string, of: vscode.Uri): vscode.Uri {
    return vscode.Uri.from({ scheme: SCHEME, path: `/${state}/${posix.basename(of.path)}`, query: of.toString() });
  }

  drop(uri: vscode.Uri): void {
    this.texts.delete(uri.toString());
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? '';
  }

  dispose(): void {
    this.registered.dispose();
    this.changed.dispose();
  }
}
