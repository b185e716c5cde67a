/** Runs `work` and returns the processor time that this process used during the call, in milliseconds. */
export function measureProcessorMs(work: () => void): number {
  const usageBefore = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(usageBefore);
  return (user + system) / 1_000;
}
