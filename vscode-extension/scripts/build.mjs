// @ts-check
// Bundles the extension into dist/: extension.js, which VS Code loads, and client.js, which is loaded with the first
// server. `--production` minifies, `--tests` builds the suites under out/ instead, `--watch` builds again on each change.
import { build, context } from 'esbuild';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
process.chdir(root);
const flags = new Set(process.argv.slice(2));
const isProduction = flags.has('--production');

/** Keeps the language client out of extension.js: its import becomes one of the file beside it.
 * @type {import('esbuild').Plugin} */
const clientApart = {
  name: 'client-apart',
  setup({ onResolve }) {
    onResolve({ filter: /\/client\/connect$/ }, ({ kind }) =>
      kind === 'dynamic-import' ? { path: './client.js', external: true } : undefined,
    );
  },
};

/** @type {import('esbuild').BuildOptions} */
const common = {
  bundle: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  external: ['vscode'],
  sourcemap: isProduction ? false : 'linked',
  minify: isProduction,
  logLevel: 'warning',
};

/** @type {import('esbuild').BuildOptions[]} */
const builds = [
  {
    ...common,
    entryPoints: { extension: 'src/extension.ts', client: 'src/client/connect.ts' },
    outdir: 'dist',
    plugins: [clientApart],
    metafile: true,
  },
];
if (existsSync('src/webview/main.ts')) {
  builds.push({
    ...common,
    entryPoints: { webview: 'src/webview/main.ts' },
    outdir: 'dist',
    platform: 'browser',
    format: 'iife',
    target: 'es2022',
    sourcemap: false,
  });
}
if (flags.has('--tests')) {
  builds.length = 0; // what is tested is the package
  const suites = readdirSync('test/host/suites').filter((name) => name.endsWith('.ts'));
  builds.push({
    ...common,
    entryPoints: ['test/host/index.ts', ...suites.map((name) => `test/host/suites/${name}`)],
    outdir: 'out/test/host',
    outbase: 'test/host',
    external: ['vscode', 'mocha'],
    minify: false,
    sourcemap: 'inline',
  });
}

for (const options of builds) {
  if (flags.has('--watch')) {
    await (await context(options)).watch();
  } else {
    await build(options);
  }
}
if (!flags.has('--watch')) {
  for (const name of readdirSync('dist').filter((name) => name.endsWith('.js'))) {
    console.log(`dist/${name} ${(readFileSync(join('dist', name)).length / 1024).toFixed(0)} KB`);
  }
}
