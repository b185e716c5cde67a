/**
 * This file is the entry module of a store thread. store.ts starts the thread with this module; no module imports it.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { openDatabase } from './database.ts';
import type { StoreThreadOptions } from './thread.ts';
import { serveThread } from './thread.ts';

if (parentPort !== null) serveThread(parentPort, workerData as StoreThreadOptions, openDatabase);
