// @ts-check
// The workspace of the UI tests: a config with a history, a script that converts, one of several files, and one that
// is refused.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { root } from '../support/profile.mjs';

export const CONFIG = 'ds_config.json';
export const SCRIPT = 'pretrain/train.py';
/** A script whose loop and helpers are in modules of its own. */
export const SEVERAL = 'mae/main_pretrain.py';
export const REFUSED = 'finetune/second_order.py';

const EDITS = /** @type {const} */ ([
  ['"train_micro_batch_size_per_gpu": 4', '"train_micro_batch_size_per_gpu": 8'],
  ['"stage": 2', '"stage": 3'],
  ['"reduce_bucket_size": 5e8', '"reduce_bucket_size": 5e8,\n    "offload_optimizer": { "device": "cpu" }'],
]);

/** A script whose optimizer is stepped by a helper that the conversion cannot follow. */
const REFUSED_SCRIPT = `import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
local_rank = int(os.environ["LOCAL_RANK"])
model = DDP(torch.nn.Linear(8, 1).to(local_rank), device_ids=[local_rank])
optimizer = torch.optim.LBFGS(model.parameters())

for _ in range(10):
    x = torch.randn(16, 8, device=local_rank)

    def closure():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)
`;

/**
 * Commit the fixture and change its config as a person would who runs out of memory.
 * @param {string} folder
 */
export function prepare(folder) {
  const [script, refused] = [join(folder, SCRIPT), join(folder, REFUSED)];
  mkdirSync(dirname(script), { recursive: true });
  mkdirSync(dirname(refused), { recursive: true });
  cpSync(join(root, '..', 'examples', 'no_sync_accum.py'), script);
  cpSync(join(root, '..', 'examples', 'mae_engine'), dirname(join(folder, SEVERAL)), { recursive: true });
  writeFileSync(refused, REFUSED_SCRIPT);
  git(folder, 'init', '-q', '-b', 'main');
  writeFileSync(join(folder, '.git', 'info', 'exclude'), '.vscode\n');
  git(folder, 'add', '.');
  git(folder, 'commit', '-q', '-m', 'Train with ZeRO-2');
  const config = join(folder, CONFIG);
  writeFileSync(config, EDITS.reduce((text, [old, now]) => text.replace(old, now), readFileSync(config, 'utf8')));
}

/** @param {string} folder @param {string[]} args */
function git(folder, ...args) {
  const who = ['-c', 'user.name=Test', '-c', 'user.email=test@example.org', '-c', 'commit.gpgsign=false'];
  const { status, stderr } = spawnSync('git', ['-C', folder, ...who, ...args], { encoding: 'utf8' });
  if (status !== 0) {
    throw new Error(`git ${args.join(' ')}: ${stderr}`);
  }
}
