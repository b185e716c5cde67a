import { expect, test } from 'vitest';
import { watchHealth } from '../../../src/store/commits.ts';
import { createVirtualClock } from '../../rig/clock.ts';

const FAULT = 'the store cannot commit';

function createHealthRig() {
  const clock = createVirtualClock(1_000_000);
  const disk = { broken: false, probes: 0 };
  const write = async () => {
    if (disk.broken) throw new Error('disk I/O error at /secret/path');
    return 'written';
  };
  const probe = async () => {
    disk.probes += 1;
    await write();
  };
  const health = watchHealth({ probe }, clock);
  return { clock, disk, health, commit: health.observeCall(write) };
}

test('a failed commit makes the store unhealthy immediately, rejects the call, and is reported without internal details', async () => {
  const { disk, health, commit } = createHealthRig();
  expect(health.findFault()).toBeNull();
  disk.broken = true;
  await expect(commit()).rejects.toThrow('disk I/O error');
  expect(health.findFault()).toBe(FAULT);
});

test('an unhealthy store is probed repeatedly and becomes healthy without requests', async () => {
  const { clock, disk, health, commit } = createHealthRig();
  disk.broken = true;
  await expect(commit()).rejects.toThrow();
  await clock.advance(5_000);
  expect([disk.probes, health.findFault()]).toEqual([5, FAULT]);
  disk.broken = false;
  await clock.advance(1_000);
  expect(health.findFault()).toBeNull();
  const { probes } = disk;
  await clock.advance(10_000);
  expect(disk.probes).toBe(probes);
});

test('no probe starts after `stop`', async () => {
  const { clock, disk, health, commit } = createHealthRig();
  disk.broken = true;
  await expect(commit()).rejects.toThrow();
  await clock.advance(3_000);
  health.stop();
  const { probes } = disk;
  await clock.advance(60_000);
  expect([disk.probes, health.findFault()]).toEqual([probes, FAULT]);
});
