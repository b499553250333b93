import { posix } from 'node:path';
import * as vscode from 'vscode';

import type { Session } from '../client/session';
import type { VirtualTexts } from './virtual';

/** What every feature works with. */
export interface Tools {
  context: vscode.ExtensionContext;
  session: Session;
  texts: VirtualTexts;
  /** Fires when a setting was changed for the session, which the server does not tell. */
  facts: vscode.EventEmitter<void>;
  /** The config that the status bar is about. */
  shown?: vscode.Uri | undefined;
}

/** Call a function when calls have stopped for `ms` milliseconds. */
export function debounced(ms: number, call: () => unknown): vscode.Disposable & { later(): void } {
  let timer: NodeJS.Timeout | undefined;
  return {
    later() {
      clearTimeout(timer);
      timer = setTimeout(() => void call(), ms);
    },
    dispose: () => clearTimeout(timer),
  };
}

export function nameOf(uri: vscode.Uri): string {
  return posix.basename(uri.path);
}

/** The file a command is about: what a menu hands over (a file, a change of source control), else the active editor's. */
export function uriOf(given: unknown): vscode.Uri | undefined {
  if (given instanceof vscode.Uri) {
    return onDisk(given);
  }
  if (typeof given === 'string') {
    return vscode.Uri.parse(given, true);
  }
  const inside = (given as { resourceUri?: unknown } | undefined)?.resourceUri;
  if (inside instanceof vscode.Uri) {
    return onDisk(inside);
  }
  const active = vscode.window.activeTextEditor?.document.uri;
  return active && onDisk(active);
}

/** The file behind an address of another state of it, as source control has them (`git:`); others as they are. */
function onDisk(uri: vscode.Uri): vscode.Uri {
  return uri.scheme === 'git' ? vscode.Uri.file(uri.path) : uri;
}

/** Show a place of a document in a column, and put the cursor there. `line` counts from 1. */
export async function goTo(uri: vscode.Uri, column: vscode.ViewColumn, line: number, end = line): Promise<void> {
  const document = await vscode.workspace.openTextDocument(uri);
  const last = document.lineAt(Math.min(end, document.lineCount) - 1);
  const selection = new vscode.Range(line - 1, last.firstNonWhitespaceCharacterIndex, last.lineNumber, last.text.length);
  const start = document.lineAt(Math.min(line, document.lineCount) - 1);
  await vscode.window.showTextDocument(document, {
    viewColumn: column,
    selection: selection.with(new vscode.Position(start.lineNumber, start.firstNonWhitespaceCharacterIndex)),
    preview: true,
  });
}
