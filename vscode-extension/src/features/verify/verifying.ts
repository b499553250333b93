import { basename, dirname, extname, relative } from 'node:path';
import * as vscode from 'vscode';

import { interpreterFor } from '../../client/settings';
import type { Server } from '../../server/server';
import { which } from '../../server/which';
import { isTrustedFor } from '../../trust/ask';
import { chooseFile } from '../files';
import { typeProgram } from '../terminal';
import { nameOf, type Tools, uriOf } from '../tools';

/** What only a script has that is converted. */
const CONVERTED = /\bdeepspeed\s*\.\s*initialize\s*\(/;

/** Return whether a script trains with an engine of DeepSpeed. */
export function isConverted(document: vscode.TextDocument): boolean {
  return document.languageId === 'python' && CONVERTED.test(document.getText());
}

/** Have a script and its conversion trained side by side, in a terminal: of two that are selected, or of one. */
export async function verifyConversion(tools: Tools, given?: unknown, selected?: unknown): Promise<void> {
  const uris = Array.isArray(selected) && selected.length === 2 ? (selected as vscode.Uri[]) : [uriOf(given)];
  const scripts = await Promise.all(uris.map(async (uri) => uri && vscode.workspace.openTextDocument(uri)));
  const [one, other] = scripts;
  if (!one || scripts.some((script) => script?.languageId !== 'python' || script.isUntitled)) {
    void vscode.window.showInformationMessage(vscode.l10n.t('Open the training script to verify first.'));
    return;
  }
  if (other) {
    const isTurned = isConverted(one) && !isConverted(other);
    await verify(tools, ...(isTurned ? ([other.uri, one.uri] as const) : ([one.uri, other.uri] as const)));
    return;
  }
  if (!isConverted(one)) {
    await verify(tools, one.uri);
    return;
  }
  if (await mayTrain()) {
    const original = await chooseOriginal(one.uri);
    await (original && verify(tools, original, one.uri));
  }
}

/** Verify a conversion that was applied: the script as it was is kept beside it, or is there already. */
export async function verifyApplied(tools: Tools, script: vscode.Uri, before: string): Promise<void> {
  if (!(await mayTrain())) {
    return;
  }
  const kept = await placeFor(script, before);
  const keep = {
    label: vscode.l10n.t('$(new-file) Keep it as {0}', nameOf(kept.uri)),
    detail: vscode.l10n.t('It is needed beside the conversion, to be trained as well.'),
  };
  const choose = { label: vscode.l10n.t('$(files) It is in another file…') };
  const title = vscode.l10n.t('{0} as It Was', nameOf(script));
  const chosen = await vscode.window.showQuickPick([keep, choose], { title });
  if (chosen === keep) {
    if (!kept.isThere) {
      await vscode.workspace.fs.writeFile(kept.uri, new TextEncoder().encode(before));
    }
    await verify(tools, kept.uri, script);
  } else if (chosen === choose) {
    const original = await chooseOriginal(script);
    await (original && verify(tools, original, script));
  }
}

/** Type the command into a terminal, for the person to add arguments to and to start; unsaved texts are saved. */
export async function verify(tools: Tools, original: vscode.Uri, converted?: vscode.Uri): Promise<void> {
  if (!(await mayTrain())) {
    return;
  }
  await tools.session.start();
  const { server } = tools.session;
  if (!server) {
    return;
  }
  const training = (await interpreterFor(original)) ?? (server.origin === 'private' ? await chooseTraining() : server.command);
  if (training === undefined) {
    return;
  }
  const scripts = converted ? [original, converted] : [original];
  for (const script of scripts) {
    await vscode.workspace.save(script);
  }
  const paths = scripts.map(({ fsPath }) => fsPath);
  await typeProgram(wordsFor(server, paths, training), vscode.Uri.file(dirname(original.fsPath)));
  vscode.window.setStatusBarMessage(
    vscode.l10n.t('$(terminal) Enter in the terminal trains both; arguments of the script go behind --'),
    10_000,
  );
}

/** Ask for the Python that trains, where nothing names one: the private environment has no torch. */
async function chooseTraining(): Promise<string | undefined> {
  const onPath = await Promise.all(['python3', 'python'].map((name) => which(name)));
  const browse = { label: vscode.l10n.t('$(folder-opened) Browse…') };
  const title = vscode.l10n.t('Python That Has torch and DeepSpeed');
  const placeHolder = vscode.l10n.t('It trains both; the setting dsmigrate.interpreter names it for good');
  const items = [...[...new Set(onPath.flat())].map((label) => ({ label })), browse];
  const chosen = await vscode.window.showQuickPick(items, { title, placeHolder });
  if (chosen !== browse) {
    return chosen?.label;
  }
  const [file] = (await vscode.window.showOpenDialog({ title })) ?? [];
  return file?.fsPath;
}

/** Verifying runs what the folder holds, unlike everything else here. */
function mayTrain(): Promise<boolean> {
  return isTrustedFor(
    vscode.l10n.t('Verifying a conversion trains the script: it runs the code of this folder, which is not trusted.'),
  );
}

function chooseOriginal(script: vscode.Uri): Promise<vscode.Uri | undefined> {
  return chooseFile(script, {
    title: vscode.l10n.t('The Original of {0}', nameOf(script)),
    placeHolder: vscode.l10n.t('The script that it was converted from'),
    kind: vscode.l10n.t('Scripts'),
    endings: ['py'],
  });
}

/** The first of `train_before.py`, `train_before_2.py` … that holds the text or is not there. */
async function placeFor(script: vscode.Uri, text: string): Promise<{ uri: vscode.Uri; isThere: boolean }> {
  const ending = extname(script.fsPath);
  const stem = basename(script.fsPath, ending);
  for (let number = 1; ; number++) {
    const uri = vscode.Uri.joinPath(script, '..', `${stem}_before${number > 1 ? `_${number}` : ''}${ending}`);
    const there = await Promise.resolve(vscode.workspace.fs.readFile(uri)).catch(() => undefined);
    if (!there || new TextDecoder().decode(there) === text) {
      return { uri, isThere: there !== undefined };
    }
  }
}

/** The program and its arguments; scripts are named from the folder of the first, where it is run. */
export function wordsFor(server: Server, scripts: readonly string[], training?: string): string[] {
  const folder = dirname(scripts[0] ?? '');
  const named = scripts.map((script) => relative(folder, script));
  return [
    ...[server.command, ...server.flags, '-m', 'dsmigrate', 'verify'],
    ...(training && training !== server.command ? ['--python', training] : []),
    ...named.map((name) => (name.startsWith('-') ? `./${name}` : name)), // or it is taken for an option
  ];
}
