import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Mocha from 'mocha';

/** One test as it ended. */
interface Result {
  title: string;
  state: 'passed' | 'failed' | 'pending';
  ms: number;
  error?: string;
}

/** Run the suites that the environment names, and write down how each test ended; VS Code calls this. */
export function run(): Promise<void> {
  const suites = (process.env['DSMIGRATE_SUITES'] ?? '').split(',').filter(Boolean);
  const grep = process.env['DSMIGRATE_GREP'];
  const mocha = new Mocha({ ui: 'bdd', timeout: 150_000, reporter: 'min', ...(grep ? { grep } : {}) });
  suites.forEach((name) => mocha.addFile(join(__dirname, 'suites', `${name}.js`)));
  const results: Result[] = [];
  const add = (test: Mocha.Runnable, state: Result['state'], error?: Error): void => {
    results.push({ title: test.fullTitle(), state, ms: test.duration ?? 0, ...(error ? { error: error.stack ?? error.message } : {}) });
    writeFileSync(process.env['DSMIGRATE_RESULTS'] ?? 'results.json', JSON.stringify(results));
  };
  return new Promise((resolve, reject) => {
    mocha
      .run((failures) => (failures > 0 ? reject(new Error(`${failures} failed`)) : resolve()))
      .on('pass', (test) => add(test, 'passed'))
      .on('pending', (test) => add(test, 'pending'))
      .on('fail', (test, error: Error) => add(test, 'failed', error));
  });
}
