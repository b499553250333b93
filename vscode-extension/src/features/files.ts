import * as vscode from 'vscode';

import { nameOf } from './tools';

const NOT_IN = '**/{node_modules,.git,.venv,venv,site-packages}/**';
const MOST = 500;

/** What a file is chosen for. */
export interface Wanted {
  title: string;
  placeHolder: string;
  /** What the files are called together, for the dialog of the system. */
  kind: string;
  endings: readonly string[];
}

/** Have another file than `uri` chosen: those of the workspace, nearest first, or any. */
export async function chooseFile(uri: vscode.Uri, wanted: Wanted): Promise<vscode.Uri | undefined> {
  const { title, placeHolder, kind, endings } = wanted;
  const pattern = endings.length > 1 ? `{${endings.join(',')}}` : String(endings[0]);
  const found = await vscode.workspace.findFiles(`**/*.${pattern}`, NOT_IN, MOST);
  const others = found.filter((other) => other.toString() !== uri.toString());
  const browse = { label: vscode.l10n.t('$(folder-opened) Browse…'), uri: undefined };
  const files = others
    .map((other) => ({ label: nameOf(other), description: folderOf(other), uri: other }))
    .sort((one, other) => nearness(other.uri, uri) - nearness(one.uri, uri) || one.label.localeCompare(other.label));
  const options = { title, placeHolder, matchOnDescription: true };
  const chosen = await vscode.window.showQuickPick([...files, browse], options);
  if (chosen !== browse) {
    return chosen?.uri;
  }
  const opened = await vscode.window.showOpenDialog({
    defaultUri: vscode.Uri.joinPath(uri, '..'),
    filters: { [kind]: [...endings] },
  });
  return opened?.[0];
}

function folderOf(uri: vscode.Uri): string {
  const path = vscode.workspace.asRelativePath(uri);
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

/** How many folders two files share, so that those nearby come first. */
function nearness(one: vscode.Uri, other: vscode.Uri): number {
  const [left, right] = [one.path.split('/'), other.path.split('/')];
  const parted = left.findIndex((name, index) => name !== right[index]);
  return parted < 0 ? left.length : parted;
}
