/** Measures processor time, which other load on the machine hardly changes, unlike the duration. */

/** Runs `work` and returns the processor time of this process meanwhile, in milliseconds. */
export function measureProcessorMs(work: () => void): number {
  const usageBefore = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(usageBefore);
  return (user + system) / 1_000;
}
