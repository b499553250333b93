import * as vscode from 'vscode';

import { commandLine, familyOf, isTypable } from './quote';

/** Milliseconds that a shell which does not tell when it is ready gets for its prompt. */
const PROMPT = 2000;

/** Type a command into a new terminal in a folder; the person presses Enter. */
export async function typeInTerminal(command: string, cwd: vscode.Uri, shellPath?: string): Promise<void> {
  if (!isTypable(command)) {
    throw new Error(vscode.l10n.t('a name has characters that a terminal takes for keys'));
  }
  const terminal = vscode.window.createTerminal({ name: 'DeepSpeed', cwd, ...(shellPath && { shellPath }) });
  terminal.show();
  await prompt(terminal);
  terminal.sendText(command, false);
}

/** VS Code hears from shells that they are ready, from release 1.93 on. */
type Window = typeof vscode.window & {
  readonly onDidChangeTerminalShellIntegration?: vscode.Event<{ readonly terminal: vscode.Terminal }>;
};

/** Wait for the prompt of a new terminal: what is typed before it is shown twice. */
function prompt(terminal: vscode.Terminal): Promise<void> {
  return new Promise((resolve) => {
    const listening: vscode.Disposable[] = [];
    const done = (): void => {
      clearTimeout(timer);
      vscode.Disposable.from(...listening).dispose();
      resolve();
    };
    const timer = setTimeout(done, PROMPT);
    const window: Window = vscode.window;
    const ready = window.onDidChangeTerminalShellIntegration?.((event) => event.terminal === terminal && done());
    listening.push(...(ready ? [ready] : []), vscode.window.onDidCloseTerminal((closed) => closed === terminal && done()));
  });
}

/** Type a program with its arguments into a new terminal, written as its shell takes them. */
export async function typeProgram(words: readonly string[], cwd: vscode.Uri): Promise<void> {
  const [shell, family] = shellOf(vscode.env.shell);
  if (!words.every(isTypable)) {
    throw new Error(vscode.l10n.t('a name has characters that a terminal takes for keys'));
  }
  await typeInTerminal(commandLine(words, family), cwd, shell);
}

/** The person's shell with its family; where its rules are not known, one whose rules are. */
function shellOf(theirs: string): [string, NonNullable<ReturnType<typeof familyOf>>] {
  const family = familyOf(theirs);
  if (family) {
    return [theirs, family];
  }
  return process.platform === 'win32' ? ['powershell.exe', 'powershell'] : ['/bin/sh', 'posix'];
}
