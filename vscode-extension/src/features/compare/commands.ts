import * as vscode from 'vscode';

import { isTrustedFor } from '../../trust/ask';
import { chooseFile } from '../files';
import { nameOf, type Tools, uriOf } from '../tools';
import { compare } from './comparing';

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
  const old = both ? both[0] : uri && (await chooseOther(uri));
  if (uri && old) {
    await compare(tools, uri, { kind: 'file', uri: old });
  }
}

/** git reads settings of the repository, which can name programs: it is run in folders that are trusted. */
function mayRunGit(): Promise<boolean> {
  return isTrustedFor(
    vscode.l10n.t('What changed since a commit is told by git, which is not run in a folder that is not trusted.'),
  );
}

function target(given: unknown): vscode.Uri | undefined {
  const uri = uriOf(given);
  if (!uri) {
    void vscode.window.showInformationMessage(vscode.l10n.t('Open the config to compare first.'));
  }
  return uri;
}

function chooseOther(uri: vscode.Uri): Promise<vscode.Uri | undefined> {
  return chooseFile(uri, {
    title: vscode.l10n.t('Compare {0} with…', nameOf(uri)),
    placeHolder: vscode.l10n.t('The file that it changed from'),
    kind: vscode.l10n.t('Configs'),
    endings: ['json', 'jsonc', 'hjson'],
  });
}
