import { homedir } from 'node:os';
import * as vscode from 'vscode';

/** Return the path that a setting means: `~` and `${workspaceFolder}` stand for folders. */
export function expanded(setting: string, resource?: vscode.Uri): string {
  const folders = vscode.workspace.workspaceFolders;
  const folder = (resource && vscode.workspace.getWorkspaceFolder(resource)) ?? folders?.[0];
  return setting
    .replace(/^~(?=$|[\\/])/, homedir())
    .replaceAll('${workspaceFolder}', folder?.uri.fsPath ?? homedir());
}
