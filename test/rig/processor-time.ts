/** Measures processor time, which depends less on other load of the machine than the duration does. */

/** Runs `work` and returns the processor time of this process meanwhile, in milliseconds. */
export function measureProcessorMs(work: () => void): number {
  const usageBefore = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(usageBefore);
  return (user + system) / 1_000;
}
