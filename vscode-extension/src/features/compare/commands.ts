import * as vscode from 'vscode';

import { nameOf, type Tools, uriOf } from '../tools';
import { compare } from './comparing';

const CONFIGS = '**/*.{json,jsonc,hjson}';
const NOT_IN = '**/{node_modules,.git,.venv,venv,site-packages}/**';
const MOST = 500;

/** Compare a config with its last commit. A lens of the server hands the address over as a text. */
export async function compareWithHead(tools: Tools, given: unknown): Promise<void> {
  const uri = target(given);
  if (uri && (await mayRunGit())) {
    await compare(tools, uri, { kind: 'revision', revision: 'HEAD' });
  }
}

export async function compareWithRevision(tools: Tools, given: unknown): Promise<void> {
  const uri = target(given);
  const revision =
    uri &&
    (await mayRunGit()) &&
    (await vscode.window.showInputBox({
      title: vscode.l10n.t('Compare {0} with a Revision', nameOf(uri)),
      prompt: vscode.l10n.t('A branch, tag or commit; what git understands'),
      value: 'HEAD~1',
      validateInput: (text) =>
        text.trim() === '' || text.startsWith('-') ? vscode.l10n.t('This is no revision') : undefined,
    }));
  if (uri && revision) {
    await compare(tools, uri, { kind: 'revision', revision: revision.trim() });
  }
}

export async function compareWithClipboard(tools: Tools, given: unknown): Promise<void> {
  const uri = target(given);
  if (!uri) {
    return;
  }
  const text = await vscode.env.clipboard.readText();
  if (!text.trim()) {
    void vscode.window.showInformationMessage(vscode.l10n.t('The clipboard holds no text to compare with.'));
    return;
  }
  await compare(tools, uri, { kind: 'text', name: vscode.l10n.t('clipboard'), text });
}

/** Compare with another file: the second of two that are selected in the explorer, else one that is chosen. */
export async function compareWithFile(tools: Tools, given: unknown, selected?: unknown): Promise<void> {
  const both = Array.isArray(selected) && selected.length === 2 ? (selected as vscode.Uri[]) : undefined;
  const uri = both ? both[1] : target(given);
  const old = both ? both[0] : uri && (await chooseFile(uri));
  if (uri && old) {
    await compare(tools, uri, { kind: 'file', uri: old });
  }
}

/** git reads settings of the repository, which can name programs: it is run in folders that are trusted. */
async function mayRunGit(): Promise<boolean> {
  if (!vscode.workspace.isTrusted) {
    const trust = vscode.l10n.t('Manage Trust');
    const said = vscode.l10n.t('What changed since a commit is told by git, which is not run in a folder that is not trusted.');
    if ((await vscode.window.showInformationMessage(said, trust)) === trust) {
      await vscode.commands.executeCommand('workbench.trust.manage');
    }
  }
  return vscode.workspace.isTrusted;
}

function target(given: unknown): vscode.Uri | undefined {
  const uri = uriOf(given);
  if (!uri) {
    void vscode.window.showInformationMessage(vscode.l10n.t('Open the config to compare first.'));
  }
  return uri;
}

async function chooseFile(uri: vscode.Uri): Promise<vscode.Uri | undefined> {
  const found = await vscode.workspace.findFiles(CONFIGS, NOT_IN, MOST);
  const others = found.filter((other) => other.toString() !== uri.toString());
  const browse = { label: vscode.l10n.t('$(folder-opened) Browse…'), uri: undefined };
  const files = others
    .map((other) => ({ label: nameOf(other), description: folderOf(other), uri: other }))
    .sort((one, other) => nearness(other.uri, uri) - nearness(one.uri, uri) || one.label.localeCompare(other.label));
  const chosen = await vscode.window.showQuickPick([...files, browse], {
    title: vscode.l10n.t('Compare {0} with…', nameOf(uri)),
    placeHolder: vscode.l10n.t('The file that it changed from'),
    matchOnDescription: true,
  });
  if (chosen !== browse) {
    return chosen?.uri;
  }
  const opened = await vscode.window.showOpenDialog({
    defaultUri: vscode.Uri.joinPath(uri, '..'),
    filters: { [vscode.l10n.t('Configs')]: ['json', 'jsonc', 'hjson'] },
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
