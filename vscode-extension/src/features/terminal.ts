import * as vscode from 'vscode';

import { commandLine, familyOf, isTypable } from './quote';

/** Type a command into a new terminal in a folder; the person presses Enter. */
export function typeInTerminal(command: string, cwd: vscode.Uri, shellPath?: string): void {
  if (!isTypable(command)) {
    throw new Error(vscode.l10n.t('a name has characters that a terminal takes for keys'));
  }
  const terminal = vscode.window.createTerminal({ name: 'DeepSpeed', cwd, ...(shellPath && { shellPath }) });
  terminal.show();
  terminal.sendText(command, false);
}

/** Type a program with its arguments into a new terminal, written as its shell takes them. */
export function typeProgram(words: readonly string[], cwd: vscode.Uri): void {
  const [shell, family] = shellOf(vscode.env.shell);
  if (!words.every(isTypable)) {
    throw new Error(vscode.l10n.t('a name has characters that a terminal takes for keys'));
  }
  typeInTerminal(commandLine(words, family), cwd, shell);
}

/** The person's shell with its family; where its rules are not known, one whose rules are. */
function shellOf(theirs: string): [string, NonNullable<ReturnType<typeof familyOf>>] {
  const family = familyOf(theirs);
  if (family) {
    return [theirs, family];
  }
  return process.platform === 'win32' ? ['powershell.exe', 'powershell'] : ['/bin/sh', 'posix'];
}
