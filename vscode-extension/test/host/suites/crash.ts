import { strict as assert } from 'node:assert';
import { readdirSync, readFileSync } from 'node:fs';

import { closeAll, codeOf, pause, problem, problems, session, show, until } from '../support/editor';

describe('a server that crashes', () => {
  before(async () => (await session()).restart()); // what other suites have changed may still be starting one
  after(async () => {
    await (await session()).restart();
    await closeAll();
  });

  it('is started again, and nothing is doubled', async () => {
    const { document } = await show('crash/ds_config.json', '{"train_batch_size": 8, "zero_optimizatoin": {"stage": 2}}\n');
    await problem(document.uri, 'DS101');
    const first = await kill();
    await until(() => servers().some((pid) => pid !== first), 'another server');
    await until(async () => (await session()).client?.isRunning(), 'its answer');
    await problem(document.uri, 'DS101');
    assert.equal(problems(document.uri).filter((item) => codeOf(item) === 'DS101').length, 1);
  });

  it('is left alone when it happens again and again, and says so', async () => {
    const running = await session();
    await running.restart();
    for (let times = 0; times < 4; times++) {
      const before = running.crashes.count;
      await kill();
      await until(() => running.crashes.count > before, 'the news of a crash');
      if (times < 3) {
        await until(() => running.client?.isRunning() && servers().length === 1, 'another server');
      }
    }
    await until(() => running.state === 'failed', 'giving up');
    assert.deepEqual(running.problem?.remedies, ['restart', 'log', 'report']);
    assert.match(running.problem?.message ?? '', /crashed 4 times/);
    assert.deepEqual(servers(), []);
  });

  it('comes back when somebody asks for it', async () => {
    const { document } = await show('back/ds_config.json', '{"train_batch_size": 8, "zero_optimizatoin": {"stage": 2}}\n');
    await (await session()).restart();
    await problem(document.uri, 'DS101');
    assert.equal(problems(document.uri).filter((item) => codeOf(item) === 'DS101').length, 1);
  });

  it('leaves no process behind when it is stopped', async () => {
    const running = await session();
    await running.stop();
    assert.deepEqual(servers(), []);
    assert.equal(running.state, 'idle');
  });

  it('leaves none behind when it is stopped while it comes up again', async () => {
    const running = await session();
    await running.restart();
    const first = await kill();
    await until(() => servers().some((pid) => pid !== first), 'another server');
    await running.stop();
    assert.deepEqual(servers(), []);
    await pause(500);
    assert.deepEqual([servers(), running.state], [[], 'idle']);
  });

  it('leaves none behind when it dies while it is started, and one is enough afterwards', async () => {
    const running = await session();
    const starting = running.restart();
    await kill();
    await starting;
    assert.equal(running.state, 'failed');
    assert.deepEqual(servers(), []);
    await running.restart();
    assert.deepEqual([running.state, servers().length], ['running', 1]);
  });

  it('is killed when it does not answer, and another one serves', async () => {
    const running = await session();
    await running.start();
    const pid = await until(() => servers()[0], 'a server');
    process.kill(pid, 'SIGSTOP');
    await running.restart();
    assert.equal(running.state, 'running');
    assert.equal(servers().length, 1);
    assert(!servers().includes(pid));
  });
});

/** Kill the server without a warning, and return which process it was. */
async function kill(): Promise<number> {
  const pid = await until(() => servers()[0], 'a server');
  process.kill(pid, 'SIGKILL');
  await until(() => !servers().includes(pid), 'its end');
  return pid;
}

/** Return the servers that this extension host runs. */
function servers(): number[] {
  const isServer = (pid: string): boolean => {
    try {
      const parent = /^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      return parent === String(process.pid) && command.includes('dsmigrate') && command.includes('server');
    } catch {
      return false; // gone meanwhile
    }
  };
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isServer(name)).map(Number);
}
