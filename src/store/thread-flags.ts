/** What V8 is told before a thread is started: one of the store, or the one that reads reports. */
import { setFlagsFromString } from 'node:v8';

/**
 * Each thread strips types with WebAssembly of Node's own, and V8 shares compiled wrappers among threads. V8 13.6 (Node 24)
 * frees one twice where a thread takes it while another ends a collection of dead WebAssembly code, and aborts the process
 * with `Check failed: jit_page.has_value()`. Without collections the code stays until the process ends; figures in
 * docs/decisions/embedded-store.md.
 *
 * `npm start` bounds the main thread's young generation by `--max-semi-space-size`, which V8 puts above what a thread is given
 * for itself. The main thread keeps its bound when the flag is taken back.
 */
export function setThreadFlags(): void {
  setFlagsFromString('--no-wasm-code-gc');
  setFlagsFromString('--max-semi-space-size=0');
}
