import * as vscode from 'vscode';

const inputs = (): vscode.Tab[] => vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs);

/** The text diffs that are open. */
export function diffTabs(): vscode.TabInputTextDiff[] {
  return inputs()
    .map(({ input }) => input)
    .filter((input): input is vscode.TabInputTextDiff => input instanceof vscode.TabInputTextDiff);
}

/** The panels of a type that are open; VS Code puts a word of its own before the type. */
export function panelTabs(type: string): vscode.Tab[] {
  return inputs().filter(({ input }) => input instanceof vscode.TabInputWebview && input.viewType.endsWith(type));
}
