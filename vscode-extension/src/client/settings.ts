import * as vscode from 'vscode';

import { expanded } from '../server/expand';
import { chosenInterpreter } from '../server/pythonExtension';
import { trusted } from '../trust/settings';

/** Settings that only this extension reads. */
const OURS = new Set(['server', 'trace', 'comments']);

/** Return the settings that the server is told for a folder, null for each that is not set. */
export async function settingsFor(resource: vscode.Uri | undefined): Promise<Record<string, unknown>> {
  const settings = vscode.workspace.getConfiguration(undefined, resource ?? null).get<object>('dsmigrate', {});
  const told = Object.fromEntries(Object.entries(settings).filter(([name]) => !OURS.has(name)));
  return { ...told, interpreter: (await interpreterFor(resource)) ?? null };
}

/** Return the Python whose DeepSpeed counts for a folder: the one that is set, else the one chosen for it. */
export async function interpreterFor(resource: vscode.Uri | undefined): Promise<string | undefined> {
  const set = trusted('interpreter', resource);
  if (set !== undefined) {
    return expanded(set, resource);
  }
  return vscode.workspace.isTrusted ? chosenInterpreter(resource) : undefined;
}
