import { strict as assert } from 'node:assert';

import { closeAll, extension, pause, problem, session, show } from '../support/editor';

describe('activation', () => {
  after(closeAll);

  it('starts no server for JSON that is no config', async () => {
    await show('package.json', '{"name": "something", "version": "1.0.0"}\n');
    await show('colours.json', '{"red": 1, "green": [2, 3]}\n');
    await pause(700);
    if (extension().isActive) {
      assert.equal((await session()).state, 'idle');
    }
  });

  it('starts no server for a script that has nothing to do with training', async () => {
    await show('hello.py', 'print("hello")\n');
    await pause(500);
    assert.equal((await session()).state, 'idle');
  });

  it('starts the server for a config, and says where it comes from', async () => {
    const { document } = await show('ds_config.json', '{"train_batch_size": 8, "zero_optimization": {"stge": 2}}\n');
    await problem(document.uri, 'DS101');
    const running = await session();
    assert.equal(running.state, 'running');
    assert.equal(running.server?.origin, 'setting');
    assert.equal(running.server?.command, process.env['DSMIGRATE_TEST_PYTHON']);
  });
});
