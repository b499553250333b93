import * as vscode from 'vscode';

import { chosenInterpreter } from '../server/pythonExtension';
import { trusted } from '../trust/settings';

/** Settings that only this extension reads. */
const OURS = new Set(['server', 'trace', 'comments']);

/**
 * Return the settings that the server is told for a folder, null for each that is not set. The Python whose DeepSpeed
 * counts is, unless one is set, the interpreter chosen for the folder.
 */
export async function settingsFor(resource: vscode.Uri | undefined): Promise<Record<string, unknown>> {
  const settings = vscode.workspace.getConfiguration(undefined, resource ?? null).get<object>('dsmigrate', {});
  const told = Object.fromEntries(Object.entries(settings).filter(([name]) => !OURS.has(name)));
  const chosen = vscode.workspace.isTrusted ? await chosenInterpreter(resource) : undefined;
  return { ...told, interpreter: trusted('interpreter', resource) ?? chosen ?? null };
}
