import * as vscode from 'vscode';

/**
 * Return a setting that names a program or a place of one. In a folder that is not trusted only the user's own value
 * counts, whatever the folder says; empty values count as none.
 */
export function trusted(name: string, resource?: vscode.Uri): string | undefined {
  const settings = vscode.workspace.getConfiguration('dsmigrate', resource);
  const value = vscode.workspace.isTrusted
    ? settings.get<unknown>(name)
    : (settings.inspect<unknown>(name)?.globalValue ?? settings.inspect<unknown>(name)?.defaultValue);
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined;
}
