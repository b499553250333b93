import * as vscode from 'vscode';

import { commandLine, familyOf, isTypable } from './quote';

/** Milliseconds that a shell gets for its prompt: one that tells when it is ready, and one that does not. */
const PROMPT = { told: 8000, untold: 500 };
/** Shells that VS Code has tell it. */
const TELLING = /(?:^|[\\/])(?:bash|fish|pwsh|powershell|zsh)(?:\.exe)?$/i;

/** Type a command into a new terminal in a folder; the person presses Enter. */
export async function typeInTerminal(command: string, cwd: vscode.Uri, shellPath?: string): Promise<void> {
  if (!isTypable(command)) {
    throw new Error(vscode.l10n.t('a name has characters that a terminal takes for keys'));
  }
  const terminal = vscode.window.createTerminal({ name: 'DeepSpeed', cwd, ...(shellPath && { shellPath }) });
  terminal.show();
  await prompt(terminal, tells(shellPath ?? vscode.env.shell) ? PROMPT.told : PROMPT.untold);
  terminal.sendText(command, false);
}

/** VS Code hears from shells that they are ready, from release 1.93 on. */
type Window = typeof vscode.window & {
  readonly onDidChangeTerminalShellIntegration?: vscode.Event<{ readonly terminal: vscode.Terminal }>;
};

/** Wait for the prompt of a new terminal, `limit` milliseconds at most: what is typed before it is shown twice. */
function prompt(terminal: vscode.Terminal, limit: number): Promise<void> {
  const window: Window = vscode.window;
  return new Promise((resolve) => {
    const listening: (vscode.Disposable | undefined)[] = [];
    const done = (): void => {
      clearTimeout(timer);
      listening.forEach((listener) => void listener?.dispose());
      resolve();
    };
    const timer = setTimeout(done, limit);
    listening.push(
      window.onDidChangeTerminalShellIntegration?.((event) => event.terminal === terminal && done()),
      vscode.window.onDidCloseTerminal((closed) => closed === terminal && done()),
    );
  });
}

/** Return whether VS Code hears from a shell that it is ready. */
function tells(shell: string): boolean {
  const settings = vscode.workspace.getConfiguration('terminal.integrated.shellIntegration');
  const window: Window = vscode.window;
  return TELLING.test(shell) && settings.get<boolean>('enabled', true) && window.onDidChangeTerminalShellIntegration !== undefined;
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
