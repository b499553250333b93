import { strict as assert } from 'node:assert';
import * as vscode from 'vscode';

import type { Api } from '../../../src/extension';
import type { Session } from '../../../src/client/session';

export const EXTENSION = 'dsmigrate.dsmigrate';

/** The folder that the window has open. */
export function root(): vscode.Uri {
  const folder = vscode.workspace.workspaceFolders?.[0];
  assert(folder, 'the window has a folder');
  return folder.uri;
}

export function extension(): vscode.Extension<Api> {
  const found = vscode.extensions.getExtension<Api>(EXTENSION);
  assert(found, 'the extension is installed');
  return found;
}

/** Return the session of the extension, which is activated if it is not. */
export async function session(): Promise<Session> {
  return (await extension().activate()).session;
}

/** Write a file into the workspace and return its address. */
export async function write(name: string, text: string): Promise<vscode.Uri> {
  const uri = vscode.Uri.joinPath(root(), name);
  await vscode.workspace.fs.writeFile(uri, new TextEncoder().encode(text));
  return uri;
}

/** Write a file into the workspace and show it; « in the text, if there, is where the cursor goes. */
export async function show(name: string, text: string): Promise<vscode.TextEditor> {
  const at = text.indexOf('«');
  const uri = await write(name, text.replace('«', ''));
  const document = await vscode.workspace.openTextDocument(uri);
  const editor = await vscode.window.showTextDocument(document);
  if (at >= 0) {
    const position = document.positionAt(at);
    editor.selection = new vscode.Selection(position, position);
  }
  return editor;
}

/** Ask again until there is an answer, or until it takes too long. */
export async function until<Answer>(
  ask: () => Answer | undefined | false | null | Promise<Answer | undefined | false | null>,
  what: string | (() => string) = 'it',
  limit = 60_000,
  step = 10,
): Promise<Answer> {
  const began = Date.now();
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false && answer !== null) {
      return answer;
    }
    if (Date.now() - began > limit) {
      throw new Error(`${typeof what === 'string' ? what : what()} did not come within ${limit} ms`);
    }
    await new Promise((resolve) => setTimeout(resolve, step));
  }
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export const codeOf = ({ code }: vscode.Diagnostic): string => String(typeof code === 'object' ? code.value : code);

/** Return our problems of a document as they are now. */
export function problems(uri: vscode.Uri): vscode.Diagnostic[] {
  return vscode.languages.getDiagnostics(uri).filter(({ source }) => source === 'dsmigrate');
}

/** Wait until a document has a problem of a code, and return it. */
export function problem(uri: vscode.Uri, code: string): Promise<vscode.Diagnostic> {
  return until(
    () => problems(uri).find((item) => codeOf(item) === code),
    () => `${code} in ${JSON.stringify(vscode.languages.getDiagnostics(uri).map((item) => [item.source, codeOf(item), item.message]))}`,
  );
}

/** Replace a piece of a document's text by another. */
export async function replace(document: vscode.TextDocument, old: string, text: string): Promise<void> {
  const at = document.getText().indexOf(old);
  assert(at >= 0, `${old} is in the text`);
  const edit = new vscode.WorkspaceEdit();
  edit.replace(document.uri, new vscode.Range(document.positionAt(at), document.positionAt(at + old.length)), text);
  assert(await vscode.workspace.applyEdit(edit));
}

/** Close every editor; what was changed is thrown away. */
export async function closeAll(): Promise<void> {
  while (vscode.window.activeTextEditor) {
    await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
  }
  await vscode.commands.executeCommand('workbench.action.closeAllEditors');
}
