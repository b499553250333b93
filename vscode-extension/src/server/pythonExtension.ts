import * as vscode from 'vscode';

const ID = 'ms-python.python';

/** The part of the Python extension's public API that is used here. */
interface PythonApi {
  readonly environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(path: { readonly path: string }): Promise<Environment | undefined>;
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

interface Environment {
  readonly executable: { readonly uri?: vscode.Uri | undefined };
}

/** Return the interpreter chosen in the Python extension for a folder; undefined without the extension or a choice. */
export async function chosenInterpreter(resource: vscode.Uri | undefined): Promise<string | undefined> {
  try {
    const environments = (await pythonApi())?.environments;
    const chosen = environments?.getActiveEnvironmentPath(resource);
    return chosen && (await environments?.resolveEnvironment(chosen))?.executable.uri?.fsPath;
  } catch {
    return undefined; // its troubles are its own to tell
  }
}

/** Have `changed` called when another interpreter is chosen; returns undefined without the extension. */
export async function onDidChoose(changed: () => void): Promise<vscode.Disposable | undefined> {
  try {
    return (await pythonApi())?.environments.onDidChangeActiveEnvironmentPath(changed);
  } catch {
    return undefined;
  }
}

async function pythonApi(): Promise<PythonApi | undefined> {
  const api = await vscode.extensions.getExtension<Partial<PythonApi>>(ID)?.activate();
  return api?.environments ? (api as PythonApi) : undefined;
}
