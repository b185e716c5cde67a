export function describeExit(codeOrSignal: number | string | null): string {
  return typeof codeOrSignal === 'number'
    ? `exited with status ${codeOrSignal}`
    : `was ended by ${codeOrSignal ?? 'an unknown signal'}`;
}
