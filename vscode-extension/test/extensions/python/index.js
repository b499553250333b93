// The environments of the Python extension's public API, with a choice that tests make.
const vscode = require('vscode');

let chosen = process.env.DSMIGRATE_TEST_PYTHON;
const changed = new vscode.EventEmitter();

exports.activate = () => ({
  environments: {
    getActiveEnvironmentPath: () => ({ id: chosen, path: chosen }),
    resolveEnvironment: async ({ path }) => ({ id: path, path, executable: { uri: vscode.Uri.file(path) } }),
    onDidChangeActiveEnvironmentPath: changed.event,
  },
  choose(path) {
    chosen = path;
    changed.fire({ id: path, path, resource: undefined });
  },
});
