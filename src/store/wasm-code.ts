/** What every thread of the store needs before it is started. */
import { setFlagsFromString } from 'node:v8';

/**
 * Each thread strips types with WebAssembly of Node's own, and V8 shares compiled wrappers among threads. V8 13.6 (Node 24)
 * frees one twice where a thread takes it while another ends a collection of dead WebAssembly code, and aborts the process
 * with `Check failed: jit_page.has_value()`. Without collections the code stays until the process ends; figures in
 * docs/decisions/embedded-store.md.
 */
export function keepWebAssemblyCode(): void {
  setFlagsFromString('--no-wasm-code-gc');
}
