import * as vscode from 'vscode';

import type { Starter } from './answers';
import { type Tools } from './tools';

const NAME = 'ds_config';

/** Begin a new config: choose a starter, get an unsaved file with its numbers to be tabbed through. */
export async function newConfig(tools: Tools, given?: unknown): Promise<void> {
  const folder = await folderFor(given);
  const starters = await tools.session.execute<Starter[]>('dsmigrate.starters', [folder?.toString() ?? '']);
  const chosen = await vscode.window.showQuickPick(rows(starters), {
    title: vscode.l10n.t('New DeepSpeed Config'),
    placeHolder: vscode.l10n.t('What it starts from'),
    matchOnDetail: true,
  });
  if (!chosen?.snippet) {
    return;
  }
  const document = folder
    ? await vscode.workspace.openTextDocument((await freeName(folder)).with({ scheme: 'untitled' }))
    : await vscode.workspace.openTextDocument({ language: 'json' });
  const editor = await vscode.window.showTextDocument(document);
  await editor.insertSnippet(new vscode.SnippetString(chosen.snippet));
}

interface Row extends vscode.QuickPickItem {
  snippet?: string;
}

/** Starters with a headline above those of each consumer. */
function rows(starters: readonly Starter[]): Row[] {
  const found: Row[] = [];
  let consumer: string | null = null;
  for (const starter of starters) {
    if (starter.consumer !== consumer) {
      consumer = starter.consumer;
      found.push({ label: consumer ?? '', kind: vscode.QuickPickItemKind.Separator });
    }
    found.push({ label: starter.label, detail: starter.summary, snippet: starter.snippet });
  }
  return found;
}

async function folderFor(given: unknown): Promise<vscode.Uri | undefined> {
  if (given instanceof vscode.Uri) {
    const { type } = await vscode.workspace.fs.stat(given);
    return type & vscode.FileType.Directory ? given : vscode.Uri.joinPath(given, '..');
  }
  const active = vscode.window.activeTextEditor?.document.uri;
  if (active?.scheme === 'file' && vscode.workspace.getWorkspaceFolder(active)) {
    return vscode.Uri.joinPath(active, '..');
  }
  return vscode.workspace.workspaceFolders?.[0]?.uri;
}

/** The first of `ds_config.json`, `ds_config_2.json` … that is neither on the disk nor open. */
async function freeName(folder: vscode.Uri): Promise<vscode.Uri> {
  for (let number = 1; ; number++) {
    const uri = vscode.Uri.joinPath(folder, `${NAME}${number > 1 ? `_${number}` : ''}.json`);
    const isOpen = vscode.workspace.textDocuments.some((document) => document.uri.path === uri.path);
    if (!isOpen && !(await exists(uri))) {
      return uri;
    }
  }
}

async function exists(uri: vscode.Uri): Promise<boolean> {
  try {
    await vscode.workspace.fs.stat(uri);
    return true;
  } catch {
    return false;
  }
}
