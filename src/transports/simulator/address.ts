/** The simulator's addresses, recognised. Pure; also used where mail is accepted (`suppressed` ends there). */

const DOMAIN = 'simulator.postrider.test';

export type SimulatorKind = 'success' | 'bounce' | 'defer' | 'complaint' | 'suppressed';

/** Every local part the simulator knows. */
export const SIMULATOR_KINDS: readonly SimulatorKind[] = ['success', 'bounce', 'defer', 'complaint', 'suppressed'];

/** True for any address at the simulator's domain, known or not: none of them may leave the service. */
export function isSimulated(address: string): boolean {
  const at = address.length - DOMAIN.length - 1;
  return at >= 0 && address.charAt(at) === '@' && address.slice(at + 1).toLowerCase() === DOMAIN;
}

/** Which of the simulator's addresses this is (case and `+label` aside), or null where it is none. */
export function simulatorKind(address: string): SimulatorKind | null {
  if (!isSimulated(address)) return null;
  const local = address.slice(0, address.length - DOMAIN.length - 1).toLowerCase();
  const plus = local.indexOf('+');
  const name = plus < 0 ? local : local.slice(0, plus);
  return SIMULATOR_KINDS.find((kind) => kind === name) ?? null;
}
